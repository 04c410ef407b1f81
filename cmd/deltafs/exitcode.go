package main

import (
	"errors"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/fsnode"
	"github.com/deltafs/deltafs/internal/daemon"
	"github.com/deltafs/deltafs/internal/mountpoint"
	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// Exit codes, as the README documents them.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2 // flags or arguments
	exitNotFound    = 3 // not a Delta table, or no such version
	exitUnsupported = 4 // a table feature or a storage that is not supported
	exitMountpoint  = 5 // the mount point, or what is mounted there
	exitPermission  = 6 // not permitted, FUSE included
)

// errUsage: the command line is wrong.
var errUsage = errors.New("usage error")

// errStorage: the table's URL names a storage that is not supported.
var errStorage = errors.New("storage is not supported")

// exitCodes maps sentinels to codes; the first that matches decides.
var exitCodes = []struct {
	kind error
	code int
}{
	{errUsage, exitUsage},
	{fs.ErrPermission, exitPermission},
	{errStorage, exitUnsupported},
	{snapshot.ErrColumn, exitUsage},
	{snapshot.ErrNotEmpty, exitUsage},
	{sql.ErrUnavailable, exitUnsupported},
	{snapshot.ErrUnsupported, exitUnsupported},
	{writer.ErrNoCheckpoint, exitUnsupported},
	{writer.ErrReadOnly, exitUnsupported},
	{snapshot.ErrFileGone, exitFailure},
	{snapshot.ErrNotTable, exitNotFound},
	{snapshot.ErrNoVersion, exitNotFound},
	{fsnode.ErrNoSource, exitNotFound},
	{fsnode.ErrMount, exitMountpoint},
	{fsnode.ErrBusy, exitMountpoint},
	{mountpoint.ErrNoFUSE, exitPermission},
	{mountpoint.ErrUnfit, exitMountpoint},
	{mountpoint.ErrOverlap, exitMountpoint},
	{mountpoint.ErrNotMounted, exitMountpoint},
	{mountpoint.ErrBusy, exitMountpoint},
	{store.ErrNotExist, exitNotFound},
}

// exitCode says how the process ends after err.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	// A background process that failed has decided already.
	var failure *daemon.Failure
	if errors.As(err, &failure) {
		return failure.Code
	}
	// The cli library's own: there is no help on that.
	var coder cli.ExitCoder
	if errors.As(err, &coder) {
		return exitUsage
	}
	for _, e := range exitCodes {
		if errors.Is(err, e.kind) {
			return e.code
		}
	}
	return exitFailure
}

// reported is an error whose text the user has already seen elsewhere.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

func silent(err error) bool {
	var r reported
	return errors.As(err, &r)
}
