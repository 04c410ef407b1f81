package fsnode

import (
	"context"
	"iter"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// dirHandle is an open directory and the position in it: the offset of an entry
// is its number. A reader never sees one half of a commit: the handle holds the
// listing that it began with, unless the directory never changes. Then it only
// knows the name it has come to, which costs less than a listing that pauses,
// and lists the next names while the kernel takes in the last ones.
type dirHandle struct {
	dir directory
	id  uint64

	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	pos    uint64
	// lookups is how many names of a snapshot directory had been looked up when
	// it was opened.
	lookups uint64
	// name is the last name that was delivered, if the directory is resumable,
	// and ahead what follows it.
	name  string
	ahead dirAhead
	// The rest is of other directories: the listing, what was taken from it and
	// not delivered yet, and what ended it.
	next func() (child, error, bool)
	stop func()
	held *child
	err  error
}

func (h *dirHandle) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rewind()
	h.cancel()
}

func (h *dirHandle) rewind() {
	if h.stop != nil {
		h.stop()
	}
	h.ahead.stop()
	h.pos, h.name, h.next, h.stop, h.held, h.err = 0, "", nil, nil, nil, nil
}

// read hands entries from an offset on to add, until that is full. An error
// comes alone: after what was read before it, it comes again.
func (h *dirHandle) read(off uint64, add func(child) bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.seek(off); err != nil {
		return err
	}
	for c, err := range h.rest() {
		if err != nil && h.pos == off {
			return err
		}
		if err != nil {
			return nil
		}
		if !add(c) {
			h.lookAhead(int(h.pos - off))
			return nil
		}
		h.advance(c.name)
	}
	h.ahead.stop()
	return nil
}

// seek moves to an offset: it goes on where the last read ended, or starts
// again, with a new listing, and skips.
func (h *dirHandle) seek(off uint64) error {
	if h.pos == off && off > 0 {
		return nil
	}
	h.rewind()
	for c, err := range h.rest() {
		if h.pos == off || err != nil {
			return err
		}
		h.advance(c.name)
	}
	return nil
}

// dots are the first two entries of a directory; they have no node.
var dots = [...]string{".", ".."}

// rest yields the entries from the position on. Who has delivered one calls
// advance before the next step.
func (h *dirHandle) rest() iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		for h.pos < uint64(len(dots)) {
			if !yield(child{name: dots[h.pos]}, nil) {
				return
			}
		}
		d, ok := h.dir.(resumable)
		if !ok {
			h.pull(yield)
			return
		}
		if !d.settled() {
			h.ahead.stop()
		}
		for c, ok := h.ahead.next(); ok; c, ok = h.ahead.next() {
			if !yield(c, nil) {
				return
			}
		}
		d.listAfter(h.ctx, h.name)(yield)
	}
}

// pull yields from the listing that the handle holds.
func (h *dirHandle) pull(yield func(child, error) bool) {
	if h.next == nil {
		h.next, h.stop = iter.Pull2(h.dir.list(h.ctx))
	}
	for {
		if h.held == nil && h.err == nil {
			c, err, ok := h.next()
			if !ok {
				return
			}
			h.held, h.err = &c, err
		}
		if h.err != nil {
			yield(child{}, h.err)
			return
		}
		if !yield(*h.held, nil) {
			return
		}
	}
}

// advance moves past the entry of this name.
func (h *dirHandle) advance(name string) {
	if h.pos >= uint64(len(dots)) {
		h.name = name
	}
	h.pos++
	h.held = nil
	h.ahead.delivered()
}

// OpenDir implements fuse.RawFileSystem.
func (f *FS) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	d, err := f.directory(ctx, in.NodeId)
	if err != nil {
		return f.fail(nil, "opendir", "", err)
	}
	if c, ok := d.(interface{ check(context.Context) error }); ok {
		if err := c.check(ctx); err != nil {
			return f.failAt(d, "opendir", "", err)
		}
	}
	h := &dirHandle{dir: d, id: in.NodeId, ahead: dirAhead{aheads: f.aheads}}
	if s, ok := d.(*snapshotDir); ok {
		h.lookups = s.lookups.Load()
	}
	h.ctx, h.cancel = context.WithCancel(f.ctx)
	out.Fh = f.handles.add(h)
	if isImmutable(d) {
		out.OpenFlags = fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
	}
	return fuse.OK
}

// isImmutable reports whether a node and all that is in it never change.
func isImmutable(n node) bool {
	i, ok := n.(interface{ immutable() bool })
	return ok && i.immutable()
}

// ReleaseDir implements fuse.RawFileSystem.
func (f *FS) ReleaseDir(in *fuse.ReleaseIn) { f.handles.remove(in.Fh) }

// ReadDir implements fuse.RawFileSystem.
func (f *FS) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.readDir(in, func(_ *dirHandle, e fuse.DirEntry, _ child) bool { return out.AddDirEntry(e) })
}

// ReadDirPlus implements fuse.RawFileSystem.
func (f *FS) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	return f.readDir(in, func(h *dirHandle, e fuse.DirEntry, c child) bool {
		entry := out.AddDirLookupEntry(e)
		if entry == nil {
			return false
		}
		if !h.givesAttributes(c) {
			return true // node id 0: the kernel asks when it wants to know
		}
		if err := f.enter(ctx, h.id, c, entry); err != nil {
			*entry = fuse.EntryOut{}
		}
		return true
	})
}

// attributed is how many entries of a listing have their attributes with them in
// any case. Most programs ask for all attributes after they have read all names
// (find, du, globs that open what they found), and an answer with thousands of
// them costs much less than a question for each. But the kernel keeps a
// kilobyte for each, which the names of a really large directory are not worth
// until somebody asks.
const attributed = 128 << 10

// givesAttributes decides whether a listing gives the kernel the attributes of
// an entry.
func (h *dirHandle) givesAttributes(c child) bool {
	if c.node == nil || c.ttl == never { // asked for anyway
		return false
	}
	switch n := c.node.(type) { // what costs more than a listing may
	case *textFile, *spoolFile:
		return false
	case *dataFile:
		if !n.sized() && !h.asksForSizes() {
			return false
		}
	}
	s, ok := h.dir.(*snapshotDir)
	return !ok || h.pos < attributed || s.lookups.Load() != h.lookups
}

// asksForSizes reports whether names of the directory are looked up one after
// the other while it is listed: then a listing that reads the footers of its
// files saves a question for each.
func (h *dirHandle) asksForSizes() bool {
	s, ok := h.dir.(*snapshotDir)
	return ok && s.lookups.Load() > h.lookups+1
}

// readDir hands entries from the wanted offset on to add until it is full.
func (f *FS) readDir(in *fuse.ReadIn, add func(*dirHandle, fuse.DirEntry, child) bool) fuse.Status {
	h, ok := lookupHandle[*dirHandle](&f.handles, in.Fh)
	if !ok {
		return fuse.EBADF
	}
	err := h.read(in.Offset, func(c child) bool { return add(h, h.entry(c), c) })
	return f.failAt(h.dir, "readdir", "", err)
}

// entry is the directory entry of the child at the position.
func (h *dirHandle) entry(c child) fuse.DirEntry {
	e := fuse.DirEntry{Name: c.name, Off: h.pos + 1, Mode: frozenDir.modeType()}
	switch {
	case c.name == ".":
		e.Ino = inoOf(h.id, h.dir)
	case c.node == nil: // "..": unknown
	default:
		e.Mode = c.node.kind().modeType()
		e.Ino = childIno(c.node)
	}
	return e
}

// childIno is the inode number of a node that the kernel may not know yet.
func childIno(n node) uint64 {
	if d, ok := n.(*dataFile); ok {
		return d.id
	}
	return n.key().ino()
}

// FsyncDir implements fuse.RawFileSystem: in current/ it commits the pending
// unlinks.
func (f *FS) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	h, ok := lookupHandle[*dirHandle](&f.handles, in.Fh)
	if !ok {
		return fuse.EBADF
	}
	d, ok := h.dir.(*liveDir)
	if !ok {
		return fuse.OK
	}
	return f.change(d.inc.t, "fsyncdir", d.path, func(ctx context.Context) error {
		return d.inc.live.SyncDir(ctx, d.path)
	})
}
