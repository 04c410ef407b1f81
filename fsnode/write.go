package fsnode

import (
	"context"
	"errors"
	"path"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/writer"
)

// stagedHandle is an open staged file.
type stagedHandle struct {
	node  *stagedFile
	write bool
	once  sync.Once
}

func (h *stagedHandle) release() {
	h.once.Do(func() {
		h.node.CloseHandle(h.write)
		h.node.inc.t.fs.retire(h.node)
	})
}

func (h *stagedHandle) read(_ context.Context, buf []byte, off int64) (fuse.ReadResult, error) {
	return readAt(h.node, buf, off)
}

// mayWrite says why nothing can be changed now.
func (f *FS) mayWrite() error {
	if f.opt.ReadOnly {
		return fault.New(writer.ErrReadOnly, "the mount is read-only").WithHint("mount without --read-only")
	}
	if !f.writes.open() {
		return errStopping
	}
	return nil
}

// change begins a change of a table and ends it. A signal to the caller does
// not cancel it, and the mount is not taken away before it ends.
func (f *FS) change(t *table, op, name string, do func(ctx context.Context) error) fuse.Status {
	return f.fail(t, op, name, f.changing(t, false, do))
}

// finish is change for an open staged file: what was begun may be finished
// when the mount is to be taken away.
func (f *FS) finish(h *stagedHandle, op string, do func(ctx context.Context) error) fuse.Status {
	t := h.node.inc.t
	err := f.changing(t, true, do)
	if err == nil {
		return fuse.OK
	}
	return f.fail(t, op, h.node.name(), err)
}

func (f *FS) changing(t *table, closing bool, do func(ctx context.Context) error) error {
	if err := f.writes.enter(closing); err != nil {
		return err
	}
	defer f.writes.leave()
	before := t.latest()
	err := do(f.ctx)
	if t.latest() != before {
		t.hurry()
	}
	return err
}

// latest is the newest version known, -1 if the table is not open.
func (t *table) latest() int64 {
	if inc, _ := t.state(); inc != nil {
		return inc.snap.Latest()
	}
	return -1
}

// live is the directory of current/ that a change is about; it says why a
// change elsewhere is refused.
func (f *FS) live(ctx context.Context, id uint64) (*liveDir, error) {
	n, err := f.resolve(ctx, id)
	if err != nil {
		return nil, err
	}
	d, ok := n.(*liveDir)
	if !ok {
		return nil, refusal(n)
	}
	return d, f.mayWrite()
}

// refusal says why a change in a node's directory is refused.
func refusal(n node) error {
	switch n := n.(type) {
	case *snapshotDir:
		return fault.New(errImmutable, "a snapshot cannot be changed").
			AtVersion(n.version).WithHint("write to current/")
	case *lakeDir, *tableDir:
		return fault.New(errForbidden, "files are written below current/ of a table").
			WithHint("write to <table>/current/")
	case *stageDir, *rejectedDir:
		return fault.New(errForbidden, ".stage shows what is not committed and takes no new names").
			WithHint("write to current/, under a name that starts with a dot until it is complete")
	}
	if isImmutable(n) {
		return errImmutable
	}
	return errForbidden
}

// Create implements fuse.RawFileSystem.
func (f *FS) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	d, err := f.live(ctx, in.NodeId)
	if err != nil {
		return f.failNode(in.NodeId, "create", name, err)
	}
	return f.change(d.inc.t, "create", path.Join(d.path, name), func(ctx context.Context) error {
		s, err := d.inc.live.Create(ctx, caller(&in.InHeader), d.path, name)
		if err != nil {
			return err
		}
		n := &stagedFile{d.inc, s}
		out.Fh = f.handles.add(&stagedHandle{node: n, write: true})
		if err := f.enter(ctx, in.NodeId, child{name, n, never}, &out.EntryOut); err != nil {
			f.handles.remove(out.Fh)
			return err
		}
		return nil
	})
}

// Mknod implements fuse.RawFileSystem: NFS and Samba make regular files so.
func (f *FS) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	if t := in.Mode & syscall.S_IFMT; t != syscall.S_IFREG && t != 0 {
		ctx := f.begin(cancel)
		defer ctx.end()
		_, err := f.live(ctx, in.NodeId)
		if err == nil {
			err = fault.New(errForbidden, "a table holds data files only").InFile(name)
		}
		return f.failNode(in.NodeId, "mknod", name, err)
	}
	create := fuse.CreateIn{InHeader: in.InHeader, Mode: in.Mode}
	var created fuse.CreateOut
	s := f.Create(cancel, &create, name, &created)
	if s.Ok() {
		f.handles.remove(created.Fh)
		*out = created.EntryOut
	}
	return s
}

// Tmpfile implements fuse.RawFileSystem: the file could get a name only by a
// link through /proc, which tools try and then do without.
func (f *FS) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.Status(syscall.EOPNOTSUPP)
}

func (f *FS) openStaged(ctx context.Context, in *fuse.OpenIn, n *stagedFile, wants bool, out *fuse.OpenOut) error {
	err := n.OpenHandle(ctx, wants)
	if errors.Is(err, writer.ErrSealed) || errors.Is(err, writer.ErrNotExist) {
		// It was committed or given up after the kernel looked it up.
		if file, ok := n.Committed(ctx); ok {
			if wants {
				if err := n.inc.live.WantWrite(ctx, caller(&in.InHeader), file); err != nil {
					return err
				}
			}
			return errStale
		}
	}
	if err != nil {
		return err
	}
	out.Fh = f.handles.add(&stagedHandle{node: n, write: wants})
	return nil
}

// staged returns the handle of an operation on a file open for writing.
func (f *FS) staged(fh uint64) (*stagedHandle, fuse.Status) {
	h, ok := lookupHandle[*stagedHandle](&f.handles, fh)
	if !ok || !h.write {
		return nil, fuse.EBADF
	}
	return h, fuse.OK
}

// Write implements fuse.RawFileSystem.
func (f *FS) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	h, s := f.staged(in.Fh)
	if !s.Ok() {
		return 0, s
	}
	var n int
	s = f.finish(h, "write", func(ctx context.Context) (err error) {
		n, err = h.node.WriteAt(ctx, data, int64(in.Offset))
		return err
	})
	return uint32(n), s
}

// Flush implements fuse.RawFileSystem: a complete file is committed.
func (f *FS) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	h, ok := lookupHandle[*stagedHandle](&f.handles, in.Fh)
	if !ok || !h.write {
		return fuse.OK
	}
	return f.finish(h, "flush", h.node.Flush)
}

// Fsync implements fuse.RawFileSystem.
func (f *FS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	h, ok := lookupHandle[*stagedHandle](&f.handles, in.Fh)
	if !ok {
		return fuse.OK // what is not staged is durable
	}
	return f.finish(h, "fsync", h.node.Sync)
}

// Fallocate implements fuse.RawFileSystem: space may be reserved, nothing else.
func (f *FS) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE
	h, s := f.staged(in.Fh)
	if !s.Ok() {
		return s
	}
	if in.Mode&^keepSize != 0 {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	return f.finish(h, "fallocate", func(ctx context.Context) error {
		return h.node.Allocate(ctx, int64(in.Offset), int64(in.Length), in.Mode&keepSize != 0)
	})
}

// SetAttr implements fuse.RawFileSystem. Owner and mode are not kept: changing
// them succeeds and changes nothing, as tools do it after every copy.
func (f *FS) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	n, err := f.resolve(ctx, in.NodeId)
	if err != nil {
		return f.fail(nil, "setattr", "", err)
	}
	if err = f.mayWrite(); err == nil {
		err = f.setAttr(ctx, n, in)
	}
	if err == nil {
		err = f.answerAttr(ctx, in.NodeId, n, out)
	}
	return f.failAt(n, "setattr", "", err)
}

func (f *FS) setAttr(ctx context.Context, n node, in *fuse.SetAttrIn) error {
	switch n := n.(type) {
	case *stagedFile:
		return f.changing(n.inc.t, true, func(ctx context.Context) error { return n.set(ctx, in) })
	case *dataFile:
		return n.set(ctx, in, f.passages.recent(in.Pid, in.NodeId))
	case *liveDir:
		return nil
	}
	return refusal(n)
}

// set changes size and time of a staged file.
func (s *stagedFile) set(ctx context.Context, in *fuse.SetAttrIn) error {
	if size, ok := in.GetSize(); ok {
		if err := s.Truncate(ctx, int64(size)); err != nil {
			return err
		}
	}
	if t, ok := in.GetMTime(); ok {
		s.SetModTime(t)
	}
	return nil
}

// set refuses what would change a committed file. viaCurrent says that the
// caller found it in current/, where mode, owner and times may be set and stay
// as they are.
func (d *dataFile) set(ctx context.Context, in *fuse.SetAttrIn, viaCurrent bool) error {
	live, err := d.isLive(ctx)
	if err != nil {
		return err
	}
	if !live || !viaCurrent {
		return fault.New(errImmutable, "a file of a snapshot cannot be changed").InFile(d.Name)
	}
	if size, ok := in.GetSize(); ok && int64(size) != d.Size {
		return fault.New(errForbidden, "a committed file cannot be truncated").InFile(d.Name).
			WithHint("write the whole file again, or remove it")
	}
	return nil
}
