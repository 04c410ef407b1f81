package fsnode

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// spoolFile is a generated file of a version that may be too large for memory.
// Its size is exact, so asking for it makes the file.
type spoolFile struct {
	inc     *incarnation
	version int64
	// dir is the hidden directory of the version that holds it.
	dir, name string
	make      func(context.Context, *os.File) error
	// told is the size that was shown last.
	told atomic.Int64
}

func (x *spoolFile) key() nodeKey {
	return nodeKey{kind: kindSpooled, table: x.inc.t, inc: x.inc, number: x.version, path: x.dir + "/" + x.name}
}
func (x *spoolFile) kind() statKind         { return frozenFile }
func (x *spoolFile) stale() bool            { return x.inc.stale() }
func (x *spoolFile) immutable() bool        { return true }
func (x *spoolFile) attrTTL() time.Duration { return forever }

func (x *spoolFile) stat(ctx context.Context) (stat, error) {
	e, err := x.acquire(ctx)
	if err != nil {
		return stat{}, err
	}
	defer x.inc.t.fs.spool.release(e)
	x.told.Store(e.size)
	return stat{frozenFile, e.size, x.inc.commitTime(ctx, x.version)}, nil
}

func (x *spoolFile) acquire(ctx context.Context) (*spooled, error) {
	return x.inc.t.fs.spool.acquire(ctx, x.key(), x.make)
}

// spoolHandle reads a generated file.
type spoolHandle struct {
	spool *spool
	file  *spooled
}

func (h *spoolHandle) release() { h.spool.release(h.file) }

func (h *spoolHandle) read(_ context.Context, buf []byte, off int64) (fuse.ReadResult, error) {
	return readAt(h.file.file, buf, off)
}

// openSpooled opens a generated file. If it was made again and is another one, as
// a data file turned out to have another size than the log says, the kernel has
// to take back the size that it was told.
func (f *FS) openSpooled(ctx context.Context, x *spoolFile, out *fuse.OpenOut) error {
	e, err := x.acquire(ctx)
	if err != nil {
		return err
	}
	if id, ok := f.nodes.idOf(x.key()); ok && x.told.Swap(e.size) != e.size {
		f.notifier.do(func() { f.invalidate(id) })
	}
	out.Fh = f.handles.add(&spoolHandle{f.spool, e})
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH
	return nil
}
