package fsnode

import (
	"context"
	"errors"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// logFile is a file of the table's log, shown as it is.
type logFile struct {
	inc     *incarnation
	version int64
	// dir is the hidden directory of the version that holds it, object the name
	// in the table's storage.
	dir, name string
	object    string
}

func (x *logFile) key() nodeKey {
	return nodeKey{kind: kindLogFile, table: x.inc.t, inc: x.inc, number: x.version, path: x.dir + "/" + x.name}
}
func (x *logFile) kind() statKind         { return frozenFile }
func (x *logFile) stale() bool            { return x.inc.stale() }
func (x *logFile) immutable() bool        { return true }
func (x *logFile) attrTTL() time.Duration { return forever }

func (x *logFile) stat(ctx context.Context) (stat, error) {
	info, err := x.inc.store.Head(ctx, x.object)
	if err != nil {
		return stat{}, x.gone(err)
	}
	return stat{frozenFile, info.Size, info.ModTime}, nil
}

// exists reports whether the log still has the file: log cleanup takes old ones.
func (x *logFile) exists(ctx context.Context) (bool, error) {
	_, err := x.inc.store.Head(ctx, x.object)
	if errors.Is(err, store.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (x *logFile) open(ctx context.Context) (store.Object, error) {
	object, err := x.inc.store.Open(ctx, x.object)
	return object, x.gone(err)
}

// gone explains that log cleanup took the file.
func (x *logFile) gone(err error) error {
	if errors.Is(err, store.ErrNotExist) {
		return fault.Wrap(snapshot.ErrNoVersion, err, "the log no longer holds the file").AtVersion(x.version).InFile(x.object)
	}
	return err
}

// objectHandle reads a file of the storage as it is.
type objectHandle struct{ object store.Object }

func (h *objectHandle) release() { h.object.Close() }

func (h *objectHandle) read(_ context.Context, buf []byte, off int64) (fuse.ReadResult, error) {
	return readAt(h.object, buf, off)
}

func (f *FS) openLogFile(ctx context.Context, x *logFile, out *fuse.OpenOut) error {
	object, err := x.open(ctx)
	if err != nil {
		return err
	}
	out.Fh = f.handles.add(&objectHandle{object})
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH
	return nil
}
