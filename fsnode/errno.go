package fsnode

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// Sentinels of the tree itself.
var (
	errNotFound   = errors.New("no such name")
	errImmutable  = errors.New("snapshots are read-only")
	errForbidden  = errors.New("operation not permitted here")
	errCrossArea  = errors.New("cannot move between areas of the mount")
	errStale      = errors.New("node of a table that is gone")
	errStopping   = errors.New("the mount is being taken away")
	errIsDir      = errors.New("is a directory")
	errNotDir     = errors.New("is not a directory")
	errBadRequest = errors.New("invalid request")
)

// errnoOf is one line of the mapping.
type errnoOf struct {
	name     string
	sentinel error
	errno    syscall.Errno
}

// errnos maps every sentinel of the domain to what the caller of a file
// operation sees. The first that matches wins, so an outer error (a conflict)
// comes before what may have caused it (a storage error).
func errnos() []errnoOf {
	return []errnoOf{
		{"errNotFound", errNotFound, syscall.ENOENT},
		{"errImmutable", errImmutable, syscall.EROFS},
		{"errForbidden", errForbidden, syscall.EPERM},
		{"errCrossArea", errCrossArea, syscall.EXDEV},
		{"errStale", errStale, syscall.ESTALE},
		{"errStopping", errStopping, syscall.EROFS},
		{"errIsDir", errIsDir, syscall.EISDIR},
		{"errNotDir", errNotDir, syscall.ENOTDIR},
		{"errBadRequest", errBadRequest, syscall.EINVAL},

		{"writer.ErrUnsure", writer.ErrUnsure, syscall.EIO},
		{"writer.ErrInvalid", writer.ErrInvalid, syscall.EIO},
		{"writer.ErrReadOnly", writer.ErrReadOnly, syscall.EROFS},
		{"writer.ErrAppendOnly", writer.ErrAppendOnly, syscall.EPERM},
		{"writer.ErrIncomplete", writer.ErrIncomplete, syscall.EINVAL},
		{"writer.ErrMisfit", writer.ErrMisfit, syscall.EINVAL},
		{"writer.ErrNotPartition", writer.ErrNotPartition, syscall.EINVAL},
		{"writer.ErrReserved", writer.ErrReserved, syscall.EPERM},
		{"writer.ErrSealed", writer.ErrSealed, syscall.EPERM},
		{"writer.ErrConflict", writer.ErrConflict, syscall.EBUSY},
		{"writer.ErrExist", writer.ErrExist, syscall.EEXIST},
		{"writer.ErrNotExist", writer.ErrNotExist, syscall.ENOENT},
		{"writer.ErrNotEmpty", writer.ErrNotEmpty, syscall.ENOTEMPTY},
		{"writer.ErrIsDir", writer.ErrIsDir, syscall.EISDIR},
		{"writer.ErrNotDir", writer.ErrNotDir, syscall.ENOTDIR},
		{"writer.ErrNoCheckpoint", writer.ErrNoCheckpoint, syscall.EOPNOTSUPP},

		{"snapshot.ErrNotExist", snapshot.ErrNotExist, syscall.ENOENT},
		{"snapshot.ErrAmbiguous", snapshot.ErrAmbiguous, syscall.ENOENT},
		{"snapshot.ErrNoVersion", snapshot.ErrNoVersion, syscall.ENOENT},
		{"snapshot.ErrTimestamp", snapshot.ErrTimestamp, syscall.ENOENT},
		{"snapshot.ErrPartition", snapshot.ErrPartition, syscall.EINVAL},
		{"snapshot.ErrUnsupported", snapshot.ErrUnsupported, syscall.EOPNOTSUPP},
		{"snapshot.ErrOutside", snapshot.ErrOutside, syscall.EACCES},
		{"snapshot.ErrBroken", snapshot.ErrBroken, syscall.EIO},
		{"snapshot.ErrNoRoom", snapshot.ErrNoRoom, syscall.ENOSPC},
		{"snapshot.ErrFileGone", snapshot.ErrFileGone, syscall.EIO},
		{"snapshot.ErrCorrupt", snapshot.ErrCorrupt, syscall.EIO},
		{"snapshot.ErrNotTable", snapshot.ErrNotTable, syscall.EIO},

		{"snapshot.ErrNotEmpty", snapshot.ErrNotEmpty, syscall.ENOTEMPTY},
		{"snapshot.ErrColumn", snapshot.ErrColumn, syscall.EINVAL},
		{"sql.ErrUnavailable", sql.ErrUnavailable, syscall.EOPNOTSUPP},
		{"sql.ErrCrashed", sql.ErrCrashed, syscall.EIO},
		{"sql.ErrFailed", sql.ErrFailed, syscall.EIO},

		{"store.ErrReadOnly", store.ErrReadOnly, syscall.EROFS},
		{"store.ErrOutside", store.ErrOutside, syscall.EACCES},
		// The table names the object, so its absence is a fault of the table.
		{"store.ErrNotExist", store.ErrNotExist, syscall.EIO},
		{"store.ErrExist", store.ErrExist, syscall.EIO},
	}
}

// toErrno maps an error to what the caller sees. What the operating system
// said stands when no sentinel does; "not found" from there is EIO, because
// a missing part of a table is never a missing name.
func toErrno(err error) syscall.Errno {
	if errors.Is(err, context.Canceled) {
		return syscall.EINTR
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return syscall.ETIMEDOUT
	}
	var sys syscall.Errno
	isSys := errors.As(err, &sys)
	if isSys && (sys == syscall.ENOSPC || sys == syscall.EDQUOT) {
		return sys // whatever it did to the operation, the user must make room
	}
	for _, m := range errnos() {
		if errors.Is(err, m.sentinel) {
			return m.errno
		}
	}
	switch {
	case isSys && sys == syscall.EMFILE:
		return syscall.ENFILE // the process's limit is the system's for the caller
	case isSys && sys != syscall.ENOENT && sys != syscall.ENOTDIR && sys != syscall.EPERM:
		return sys
	case errors.Is(err, fs.ErrPermission):
		return syscall.EACCES
	}
	return syscall.EIO
}

// quiet says that an errno answers a question and is no failure to report.
func quiet(e syscall.Errno) bool {
	switch e {
	case syscall.ENOENT, syscall.EEXIST, syscall.ENOTEMPTY, syscall.EISDIR, syscall.ENOTDIR,
		syscall.EINTR, syscall.ESTALE, syscall.EXDEV:
		return true
	}
	return false
}

// fail maps err for the kernel, and reports it if it is a failure: one line
// in the table's errors.jsonl and one in the log. t is nil above the tables.
func (f *FS) fail(t *table, op, name string, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	e := toErrno(err)
	if !quiet(e) {
		f.report(t, op, name, e, err)
	}
	return fuse.Status(e)
}

// failAt is fail for an operation on a node, or on a name below it.
func (f *FS) failAt(n node, op, name string, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	return f.fail(tableOf(n), op, path.Join(nodeName(n), name), err)
}

// failRename is fail for operations after which a tool explains EINVAL wrongly
// (mv says "subdirectory of itself").
func (f *FS) failRename(t *table, op, name string, err error) fuse.Status {
	s := f.fail(t, op, name, err)
	if s == fuse.EINVAL {
		return fuse.EPERM
	}
	return s
}

// report records a failure, once.
func (f *FS) report(t *table, op, name string, e syscall.Errno, err error) {
	var fe *fault.Error
	if name == "" && errors.As(err, &fe) {
		name = fe.File
	}
	table := f.opt.Source
	if t != nil {
		table = t.source
		if !t.errs.add(op, name, unix.ErrnoName(e), err) {
			return
		}
	}
	f.log.Error("operation failed", "op", op, "table", table, "path", name,
		"errno", unix.ErrnoName(e), "err", reasonOf(err), "hint", fault.Hint(err))
}
