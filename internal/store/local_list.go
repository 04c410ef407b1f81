package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
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
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return w.fail(err)
		}
		if !w.entry(d, e) {
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

// entry yields one entry or what is below it.
func (w *walk) entry(d *directory, e entry) bool {
	if strings.HasSuffix(e.key, "/") {
		switch {
		case w.fold:
			return w.yield(Info{Name: e.key, IsPrefix: true}, nil)
		case e.isLink():
			return true
		}
		return w.dir(e.key)
	}
	fi, err := w.stat(d, e)
	if gone(err) {
		return true
	}
	if err != nil {
		return w.fail(w.store.fail("cannot list", e.key, err))
	}
	if !fi.Mode().IsRegular() {
		return true
	}
	return w.yield(infoOf(e.key, fi), nil)
}

// stat follows links from the root, for they may lead out of d.
func (w *walk) stat(d *directory, e entry) (fs.FileInfo, error) {
	if e.isLink() {
		return w.root.Stat(e.key)
	}
	return w.store.calls.lstat(d, e.Name())
}

func (w *walk) fail(err error) bool {
	w.yield(Info{}, err)
	return false
}

// gone says that a name is not there, or not the directory it was taken for.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
