package fsnode

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// StatFs implements fuse.RawFileSystem: used is what the table's newest
// version holds, free is what its file system has left.
func (f *FS) StatFs(cancel <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	var below syscall.Statfs_t
	if err := syscall.Statfs(f.opt.Source, &below); err != nil {
		return f.fail(nil, "statfs", "", err)
	}
	out.FromStatfsT(&below)
	out.NameLen = 255
	ctx := f.begin(cancel)
	defer ctx.end()
	if n, err := f.resolve(ctx, h.NodeId); err == nil {
		if files, bytes, ok := tableOf(n).totals(ctx); ok && below.Frsize > 0 {
			used := (uint64(bytes) + uint64(below.Frsize) - 1) / uint64(below.Frsize)
			out.Blocks, out.Files = out.Bfree+used, out.Ffree+uint64(files)
		}
	}
	return fuse.OK
}

// totals sums up the newest version; false if there is none to read.
func (t *table) totals(ctx context.Context) (files, bytes int64, ok bool) {
	if t == nil {
		return 0, 0, false
	}
	inc, err := t.open(ctx)
	if err != nil {
		return 0, 0, false
	}
	s, err := inc.at(ctx, inc.snap.Latest())
	if err != nil {
		return 0, 0, false
	}
	sum, err := s.Totals(ctx)
	return sum.Files, sum.Bytes, err == nil
}
