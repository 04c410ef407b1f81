package fsnode

import (
	"context"
	"path"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
)

// name is how messages call a staged file.
func (s *stagedFile) name() string {
	for _, i := range s.inc.live.Staging() {
		if i.Staged == s.Staged {
			return path.Join(i.Dir, i.Name)
		}
	}
	return ""
}

// Mkdir implements fuse.RawFileSystem.
func (f *FS) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	d, err := f.live(ctx, in.NodeId)
	if err != nil {
		return f.failNode(in.NodeId, "mkdir", name, err)
	}
	return f.change(d.inc.t, "mkdir", path.Join(d.path, name), func(ctx context.Context) error {
		if err := d.inc.live.Mkdir(ctx, d.path, name); err != nil {
			return err
		}
		made := d.inc.liveDir(path.Join(d.path, name))
		return f.enter(ctx, in.NodeId, child{name, made, liveTTL}, out)
	})
}

// Rmdir implements fuse.RawFileSystem. The kernel takes the node for dead from
// now on, so a directory made again under this name is another one.
func (f *FS) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	d, err := f.live(ctx, h.NodeId)
	if err != nil {
		return f.failNode(h.NodeId, "rmdir", name, err)
	}
	return f.change(d.inc.t, "rmdir", path.Join(d.path, name), func(ctx context.Context) error {
		err := d.inc.live.Rmdir(ctx, d.path, name)
		if err == nil {
			d.inc.retire(path.Join(d.path, name))
		}
		return err
	})
}

// Unlink implements fuse.RawFileSystem.
func (f *FS) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	n, err := f.resolve(ctx, h.NodeId)
	if err != nil {
		return f.fail(nil, "unlink", name, err)
	}
	if r, ok := n.(*rejectedDir); ok {
		return f.change(r.inc.t, "unlink", name, func(ctx context.Context) error { return f.removeRejected(ctx, r, name) })
	}
	d, err := f.live(f.ctx, h.NodeId)
	if err != nil {
		return f.failAt(n, "unlink", name, err)
	}
	return f.change(d.inc.t, "unlink", path.Join(d.path, name), func(ctx context.Context) error {
		return d.inc.live.Unlink(ctx, caller(h), d.path, name)
	})
}

// removeRejected deletes a refused file and its reason. Deleting the reason
// alone changes nothing: `rm` of both names must succeed in either order.
func (f *FS) removeRejected(ctx context.Context, d *rejectedDir, name string) error {
	if err := f.mayWrite(); err != nil {
		return err
	}
	c, err := d.lookup(ctx, caller(&fuse.InHeader{}), name)
	if err != nil {
		return err
	}
	if _, ok := c.node.(*reasonFile); ok {
		return nil
	}
	return d.inc.live.RemoveRejected(ctx, name)
}

// Rename implements fuse.RawFileSystem.
func (f *FS) Rename(cancel <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	from, to, err := f.renameEnds(ctx, in)
	if err != nil {
		return f.failNode(in.NodeId, "rename", oldName, err)
	}
	noReplace := in.Flags&unix.RENAME_NOREPLACE != 0
	name := path.Join(from.path, oldName) + " -> " + path.Join(to.path, newName)
	err = f.changing(from.inc.t, false, func(ctx context.Context) error {
		c := caller(&in.InHeader)
		if err := from.inc.live.Rename(ctx, c, from.path, oldName, to.path, newName, noReplace); err != nil {
			return err
		}
		f.moveDirs(from.inc, path.Join(from.path, oldName), path.Join(to.path, newName))
		return nil
	})
	return f.failRename(from.inc.t, "rename", name, err)
}

// renameEnds returns the two directories if a rename between them is possible.
// Between areas of the mount mv copies on EXDEV.
func (f *FS) renameEnds(ctx context.Context, in *fuse.RenameIn) (from, to *liveDir, err error) {
	if in.Flags&^uint32(unix.RENAME_NOREPLACE) != 0 {
		return nil, nil, errBadRequest
	}
	src, err := f.resolve(ctx, in.NodeId)
	if err != nil {
		return nil, nil, err
	}
	dst, err := f.resolve(ctx, in.Newdir)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range []node{src, dst} {
		if isImmutable(n) {
			return nil, nil, refusal(n)
		}
	}
	from, fromLive := src.(*liveDir)
	to, toLive := dst.(*liveDir)
	switch {
	case fromLive && toLive && from.inc == to.inc:
		return from, to, f.mayWrite()
	case isLakeNode(src) || isLakeNode(dst):
		return nil, nil, refusal(src)
	}
	return nil, nil, errCrossArea
}

func isLakeNode(n node) bool {
	switch n.(type) {
	case *lakeDir, *tableDir, *controlDir:
		return true
	}
	return false
}

// moveDirs lets the nodes of a renamed directory follow it; what was at the
// target before is dead.
func (f *FS) moveDirs(inc *incarnation, old, new string) {
	if _, ok := f.nodes.idOf(inc.liveDir(old).key()); !ok {
		return
	}
	inc.retire(new)
	f.nodes.rename(inc, old, new)
	inc.retire(old)
}

// Link implements fuse.RawFileSystem: a staged file gets a second name.
func (f *FS) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	d, err := f.live(ctx, in.NodeId)
	if err != nil {
		return f.failNode(in.NodeId, "link", name, err)
	}
	n, err := f.resolve(ctx, in.Oldnodeid)
	if err != nil {
		return f.fail(d.inc.t, "link", name, err)
	}
	s, ok := n.(*stagedFile)
	if !ok || s.inc.t != d.inc.t {
		return f.fail(d.inc.t, "link", name, fault.New(errForbidden, "a committed file cannot have a second name").
			InFile(name).WithHint("copy it"))
	}
	return f.change(d.inc.t, "link", path.Join(d.path, name), func(ctx context.Context) error {
		got, err := d.inc.live.Link(ctx, caller(&in.InHeader), s.Staged, d.path, name)
		if err != nil {
			return err
		}
		c, err := d.child(name, got)
		if err != nil {
			return err
		}
		return f.enter(ctx, in.NodeId, c, out)
	})
}

// Symlink implements fuse.RawFileSystem.
func (f *FS) Symlink(cancel <-chan struct{}, h *fuse.InHeader, _ string, name string, _ *fuse.EntryOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	d, err := f.live(ctx, h.NodeId)
	if err != nil {
		return f.failNode(h.NodeId, "symlink", name, err)
	}
	return f.fail(d.inc.t, "symlink", path.Join(d.path, name),
		fault.New(errForbidden, "a table holds no symbolic links").InFile(name).WithHint("copy the file"))
}

// Lseek implements fuse.RawFileSystem: the kernel seeks by itself.
func (f *FS) Lseek(<-chan struct{}, *fuse.LseekIn, *fuse.LseekOut) fuse.Status {
	return fuse.Status(syscall.ENOSYS)
}
