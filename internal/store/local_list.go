package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// List implements Store. A directory counts as a common prefix also when it
// is empty, and is yielded when its own name, slash included, sorts after
// startAfter. A link within the root stands for what it points to, but a
// recursive listing does not descend into it; links that lead out of the root
// or nowhere, and what is neither file nor directory, are left out.
func (l *Local) List(ctx context.Context, prefix, startAfter, delimiter string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if delimiter != "" && delimiter != "/" {
			yield(Info{}, errors.New("store: the delimiter must be / or empty"))
			return
		}
		root, err := l.root()
		if err != nil {
			yield(Info{}, err)
			return
		}
		w := walk{ctx: ctx, store: l, root: root, prefix: prefix, after: startAfter, fold: delimiter == "/", yield: yield}
		dir, _ := path.Split(prefix)
		w.dir(dir)
	}
}

// walk is one listing in progress.
type walk struct {
	ctx           context.Context
	store         *Local
	root          *os.Root
	prefix, after string
	fold          bool
	yield         func(Info, error) bool
}

// entry is a directory entry with the key that it sorts by: the full name,
// and a slash after a directory's.
type entry struct {
	fs.DirEntry
	key string
}

// dir lists one directory, whose name is "" or ends in a slash. It returns
// false when the listing is over.
func (w *walk) dir(name string) bool {
	if err := w.ctx.Err(); err != nil {
		return w.fail(err)
	}
	d, err := openDir(w.root, name)
	if gone(err) {
		return true
	}
	if err != nil {
		return w.fail(w.store.fail("cannot list", name, err))
	}
	defer d.close()
	entries, err := w.entries(d, name)
	if err != nil {
		return w.fail(w.store.fail("cannot list", name, err))
	}
	for e, a := range w.ask(d, entries) {
		if err := w.ctx.Err(); err != nil {
			return w.fail(err)
		}
		if !w.entry(e, a) {
			return false
		}
	}
	return true
}

// entries reads the directory and keeps, in order, what may be yielded or
// descended into. It asks for no entry's attributes, except to follow links.
func (w *walk) entries(d *directory, name string) ([]entry, error) {
	all, err := w.store.calls.readDir(d.file)
	if err != nil {
		return nil, err
	}
	kept := make([]entry, 0, len(all))
	for _, de := range all {
		e := entry{DirEntry: de, key: name + de.Name()}
		isDir := de.IsDir()
		if e.isLink() && (w.wanted(e.key) || w.wanted(e.key+"/")) {
			fi, err := w.root.Stat(e.key)
			if w.leadsNowhere(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			isDir = fi.IsDir()
		}
		if isDir {
			e.key += "/"
		}
		if w.wanted(e.key) {
			kept = append(kept, e)
		}
	}
	slices.SortFunc(kept, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return kept, nil
}

func (e entry) isDir() bool { return strings.HasSuffix(e.key, "/") }

func (e entry) isLink() bool { return e.Type()&fs.ModeSymlink != 0 }

// leadsNowhere says that following a link failed because of the link.
func (w *walk) leadsNowhere(err error) bool {
	return gone(err) || errors.Is(err, w.store.escape) || errors.Is(err, syscall.ELOOP)
}

// wanted reports whether key, or something below it in a recursive listing,
// has the prefix and sorts after the start.
func (w *walk) wanted(key string) bool {
	if !strings.HasPrefix(key, w.prefix) {
		return false
	}
	return key > w.after || (!w.fold && strings.HasSuffix(key, "/") && strings.HasPrefix(w.after, key))
}

// answer is what the attributes of an entry say.
type answer struct {
	info    Info
	regular bool
	err     error
}

// askBatch is how many entries are asked about ahead, in a directory that has
// more: enough to keep several processors busy, and little memory.
const askBatch = 1024

// ask yields the entries with their answers. It asks for the attributes of a
// few entries when they are wanted, and for those of many side by side.
func (w *walk) ask(d *directory, entries []entry) iter.Seq2[entry, answer] {
	return func(yield func(entry, answer) bool) {
		if len(entries) <= askBatch {
			for _, e := range entries {
				if !yield(e, w.info(d, e)) {
					return
				}
			}
			return
		}
		answers := make([]answer, askBatch)
		for batch := range slices.Chunk(entries, askBatch) {
			share := len(batch)/runtime.GOMAXPROCS(0) + 1
			var asking sync.WaitGroup
			for from := 0; from < len(batch); from += share {
				asking.Go(func() {
					for i := from; i < min(from+share, len(batch)); i++ {
						answers[i] = w.info(d, batch[i])
					}
				})
			}
			asking.Wait()
			for i, e := range batch {
				if !yield(e, answers[i]) {
					return
				}
			}
		}
	}
}

// entry yields one entry or what is below it.
func (w *walk) entry(e entry, a answer) bool {
	if e.isDir() {
		switch {
		case w.fold:
			return w.yield(Info{Name: e.key, IsPrefix: true}, nil)
		case e.isLink():
			return true
		}
		return w.dir(e.key)
	}
	if gone(a.err) || a.err == nil && !a.regular {
		return true
	}
	if a.err != nil {
		return w.fail(w.store.fail("cannot list", e.key, a.err))
	}
	return w.yield(a.info, nil)
}

// info asks for the attributes of an entry, unless it is a directory. It follows
// links from the root, for they may lead out of d.
func (w *walk) info(d *directory, e entry) answer {
	if e.isDir() {
		return answer{}
	}
	if e.isLink() {
		fi, err := w.root.Stat(e.key)
		if err != nil || !fi.Mode().IsRegular() {
			return answer{err: err}
		}
		return answer{infoOf(e.key, fi), true, nil}
	}
	var st unix.Stat_t
	if err := w.store.calls.lstat(d, e.Name(), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return answer{err: err}
	}
	return answer{infoAt(e.key, &st), true, nil}
}

func (w *walk) fail(err error) bool {
	w.yield(Info{}, err)
	return false
}

// gone says that a name is not there, or not the directory it was taken for.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
