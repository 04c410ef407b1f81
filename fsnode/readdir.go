package fsnode

import (
	"context"
	"iter"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// dirHandle is an open directory. It holds the listing that it began with, so
// that a reader never sees one half of a commit, and the position in it: the
// offset of an entry is its number.
type dirHandle struct {
	dir directory
	id  uint64

	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	next   func() (child, error, bool)
	stop   func()
	pos    uint64
	held   *child // taken from the listing but not delivered
	err    error
}

func (h *dirHandle) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reset()
	h.cancel()
}

func (h *dirHandle) reset() {
	if h.stop != nil {
		h.stop()
	}
	h.next, h.stop, h.pos, h.held, h.err = nil, nil, 0, nil, nil
}

// seek moves to an offset: it goes on where the last read ended, or starts
// again, with a new listing, and skips.
func (h *dirHandle) seek(off uint64) error {
	if h.next == nil || h.pos != off {
		h.reset()
		h.next, h.stop = iter.Pull2(withDots(h.dir.list(h.ctx)))
	}
	for h.pos < off {
		c, err := h.peek()
		if err != nil || c == nil {
			return err
		}
		h.advance()
	}
	return nil
}

// withDots puts "." and ".." first; they have no node.
func withDots(list iter.Seq2[child, error]) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		if yield(child{name: "."}, nil) && yield(child{name: ".."}, nil) {
			list(yield)
		}
	}
}

// peek returns the entry at the position, nil at the end.
func (h *dirHandle) peek() (*child, error) {
	if h.held != nil || h.err != nil {
		return h.held, h.err
	}
	c, err, ok := h.next()
	if !ok {
		return nil, nil
	}
	if err != nil {
		h.err = err
		return nil, err
	}
	h.held = &c
	return h.held, nil
}

func (h *dirHandle) advance() {
	h.held = nil
	h.pos++
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
			return f.fail(tableOf(d), "opendir", nodeName(d), err)
		}
	}
	h := &dirHandle{dir: d, id: in.NodeId}
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
	return f.readDir(in, func(_ *dirHandle, e fuse.DirEntry, _ *child) bool { return out.AddDirEntry(e) })
}

// ReadDirPlus implements fuse.RawFileSystem.
func (f *FS) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	return f.readDir(in, func(h *dirHandle, e fuse.DirEntry, c *child) bool {
		entry := out.AddDirLookupEntry(e)
		if entry == nil {
			return false
		}
		if c.node == nil || isCostly(c.node) {
			return true // node id 0: the kernel asks when it wants to know
		}
		if err := f.enter(ctx, h.id, *c, entry); err != nil {
			*entry = fuse.EntryOut{}
		}
		return true
	})
}

// isCostly says that a node's attributes cost more than a listing may.
func isCostly(n node) bool {
	_, ok := n.(*textFile)
	return ok
}

// readDir hands entries from the wanted offset on to add until it is full.
func (f *FS) readDir(in *fuse.ReadIn, add func(*dirHandle, fuse.DirEntry, *child) bool) fuse.Status {
	h, ok := lookupHandle[*dirHandle](&f.handles, in.Fh)
	if !ok {
		return fuse.EBADF
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.seek(in.Offset); err != nil {
		return f.fail(tableOf(h.dir), "readdir", nodeName(h.dir), err)
	}
	for first := true; ; first = false {
		c, err := h.peek()
		if err != nil && first {
			return f.fail(tableOf(h.dir), "readdir", nodeName(h.dir), err)
		}
		if err != nil || c == nil || !add(h, h.entry(c), c) {
			return fuse.OK
		}
		h.advance()
	}
}

// entry is the directory entry of the child at the position.
func (h *dirHandle) entry(c *child) fuse.DirEntry {
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
