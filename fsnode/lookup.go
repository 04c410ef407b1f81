package fsnode

import (
	"context"
	"math"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Lookup implements fuse.RawFileSystem.
func (f *FS) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	d, err := f.directory(ctx, h.NodeId)
	if err != nil {
		return f.fail(nil, "lookup", name, err)
	}
	c, err := d.lookup(ctx, caller(h), name)
	if err == nil {
		err = f.enter(ctx, h.NodeId, c, out)
	}
	if _, live := d.(*liveDir); live && isDataFile(out.NodeId) {
		f.passages.note(h.Pid, out.NodeId)
	}
	return f.failAt(d, "lookup", name, err)
}

// enter answers a lookup: it counts it, if the node is counted, and fills in
// the attributes. Without a node the answer is "no such name", remembered.
func (f *FS) enter(ctx context.Context, parent uint64, c child, out *fuse.EntryOut) error {
	out.SetEntryTimeout(c.ttl)
	if c.node == nil {
		out.NodeId = 0
		return nil
	}
	id, n := f.nodes.enter(parent, c.name, c.node)
	st, err := n.stat(ctx)
	if err != nil {
		f.Forget(id, 1)
		return err
	}
	out.NodeId = id
	f.fill(&out.Attr, inoOf(id, n), st)
	out.SetAttrTimeout(n.attrTTL())
	return nil
}

// inoOf is the inode number of a node that has an id.
func inoOf(id uint64, n node) uint64 {
	if isDataFile(id) || id == fuse.FUSE_ROOT_ID {
		return id
	}
	return n.key().ino()
}

// Forget implements fuse.RawFileSystem.
func (f *FS) Forget(id, n uint64) {
	if k, last := f.nodes.forget(id, n); last {
		f.forgotten(k)
	}
}

// drop is Forget before the kernel says so.
func (f *FS) drop(id uint64) { f.Forget(id, math.MaxUint64) }

// forgotten gives up what only a node that is gone has needed.
func (f *FS) forgotten(k nodeKey) {
	if k.inc != nil {
		f.freeSlot(k.inc)
	}
	if k.table != nil && k.table.known.Load() == 0 {
		f.keeper.visit(k.table) // it may be closed
	}
}

// GetAttr implements fuse.RawFileSystem.
func (f *FS) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	n, err := f.resolve(ctx, in.NodeId)
	if err != nil {
		return f.fail(nil, "getattr", "", err)
	}
	return f.failAt(n, "getattr", "", f.answerAttr(ctx, in.NodeId, n, out))
}

func (f *FS) answerAttr(ctx context.Context, id uint64, n node, out *fuse.AttrOut) error {
	st, err := n.stat(ctx)
	if err != nil {
		return err
	}
	f.fill(&out.Attr, inoOf(id, n), st)
	out.SetTimeout(n.attrTTL())
	return nil
}

// Readlink implements fuse.RawFileSystem.
func (f *FS) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	ctx := f.begin(cancel)
	defer ctx.end()
	n, err := f.resolve(ctx, h.NodeId)
	if err != nil {
		return nil, f.fail(nil, "readlink", "", err)
	}
	l, ok := n.(*link)
	if !ok {
		return nil, fuse.EINVAL
	}
	return []byte(l.target()), fuse.OK
}

// Access implements fuse.RawFileSystem. The kernel asks only without
// default_permissions, when nobody but the owner gets here, so it is not the
// owner's rights that are in question but whether writing can succeed.
func (f *FS) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	n, err := f.resolve(ctx, in.NodeId)
	if err != nil {
		return f.fail(nil, "access", "", err)
	}
	isDir := n.kind() == frozenDir || n.kind() == openDir
	if in.Mask&fuse.X_OK != 0 && !isDir && n.kind() != linkStat {
		return fuse.EACCES
	}
	if in.Mask&fuse.W_OK == 0 {
		return fuse.OK
	}
	writable, err := f.writable(ctx, n)
	if err != nil {
		return f.failAt(n, "access", "", err)
	}
	if !writable {
		return fuse.Status(syscall.EROFS)
	}
	return fuse.OK
}

// writable reports whether a node may be the target of a change.
func (f *FS) writable(ctx context.Context, n node) (bool, error) {
	if f.opt.ReadOnly {
		return false, nil
	}
	switch n := n.(type) {
	case *dataFile:
		return n.isLive(ctx)
	case *liveDir, *stagedFile, *stageDir, *rejectedDir, *rejectedFile:
		return true, nil
	}
	return false, nil
}

// Ioctl implements fuse.RawFileSystem: no file here knows any, and ENOTTY is
// how a terminal is told from a file.
func (f *FS) Ioctl(<-chan struct{}, *fuse.IoctlIn, []byte, *fuse.IoctlOut, []byte) fuse.Status {
	return fuse.Status(syscall.ENOTTY)
}
