package writer

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/deltafs/deltafs/snapshot"
)

// STUB: the shape of the package for those who build on it.

var errStub = errors.New("stub")

// newLive and close are called by Open and Table.Close.
func newLive(ctx context.Context, w *Table) (*Live, error) { return &Live{}, nil }

func (l *Live) close(ctx context.Context) error { return nil }

// Live is the tree under current/: the newest snapshot overlaid with what this
// mount has not committed. Directory paths are as the caller spelled them,
// relative to current/. It is safe for concurrent use.
type Live struct{}

// Lookup resolves a name. While a replacement is being written, the name means
// the staged file for the writing process only. ErrNotExist.
func (l *Live) Lookup(ctx context.Context, c Caller, dir, name string) (Node, error) {
	return Node{}, errStub
}

// List yields the committed files and the directories of dir in order of name,
// after the given name; staged and scratch names are left out.
func (l *Live) List(ctx context.Context, dir, after string) iter.Seq2[Entry, error] { return nil }

// Version and ModTime describe current/ itself.
func (l *Live) Version() int64 { return 0 }

// Create makes a new staged file. ErrExist, ErrReadOnly, ErrReserved. The
// caller owns one write handle on it.
func (l *Live) Create(ctx context.Context, c Caller, dir, name string) (*Staged, error) {
	return nil, errStub
}

// WantWrite is called when a process opens the committed file f for writing,
// under a name that the kernel does not tell. If f is live in current/, the
// caller's next Lookup of its name there binds a fresh staged file to it and
// WantWrite returns nil (fsnode: ESTALE, the kernel looks up again). If the
// file is not live, or a second call shows that the file is being opened
// through a snapshot, it returns ErrReadOnly.
func (l *Live) WantWrite(ctx context.Context, c Caller, f snapshot.File) error { return errStub }

// Mkdir makes a partition or scratch directory, in this mount only until a
// file in it is committed. ErrNotPartition, ErrReserved, ErrExist.
func (l *Live) Mkdir(ctx context.Context, dir, name string) error { return errStub }

// Rmdir removes an empty directory, after committing the pending unlinks below
// it. ErrNotEmpty.
func (l *Live) Rmdir(ctx context.Context, dir, name string) error { return errStub }

// Unlink removes a staged file at once and a committed one with the next
// commit of a burst.
func (l *Live) Unlink(ctx context.Context, c Caller, dir, name string) error { return errStub }

// Rename moves a staged file, possibly open, or a committed file; onto a data
// name it commits. With noReplace an existing target is ErrExist.
func (l *Live) Rename(ctx context.Context, c Caller, dir, name, newDir, newName string, noReplace bool) error {
	return errStub
}

// Link gives a staged file a second name; a data name commits. The node is
// what the new name means.
func (l *Live) Link(ctx context.Context, c Caller, s *Staged, dir, name string) (Node, error) {
	return Node{}, errStub
}

// SyncDir commits pending unlinks.
func (l *Live) SyncDir(ctx context.Context, dir string) error { return errStub }

// Refreshed tells the tree that the table has new commits (of this mount or of
// another writer).
func (l *Live) Refreshed(ctx context.Context, ev snapshot.Event) {}

// Staging lists every file not committed, for .stage and status.json.
func (l *Live) Staging() []StagedInfo { return nil }

// Rejected lists the refused and interrupted files.
func (l *Live) Rejected(ctx context.Context) ([]RejectedFile, error) { return nil, errStub }

// StagedInfo describes one uncommitted file.
type StagedInfo struct {
	Dir, Name string
	Size      int64
	State     string
	Scratch   bool
	Staged    *Staged
}

// RejectedFile is a refused or interrupted file whose bytes were kept.
type RejectedFile struct {
	// Name is unique among the rejected; Path is the local file.
	Name, Path string
	Size       int64
	Time       time.Time
	// Wanted is the name it was dropped under, Reason why it was refused.
	Wanted, Reason, Hint string
}

// RemoveRejected deletes a rejected file.
func (l *Live) RemoveRejected(ctx context.Context, name string) error { return errStub }

// Staged is one file being written in this mount. It is safe for concurrent
// use. It lives, readable, while a handle or the kernel knows it, also after
// it was committed or unlinked.
type Staged struct{}

// ID is unique in this process and never 0.
func (s *Staged) ID() uint64 { return 0 }

// Attr returns size and times.
func (s *Staged) Attr() Attr { return Attr{} }

// OpenHandle counts an open; CloseHandle undoes it. Closing commits nothing.
func (s *Staged) OpenHandle(ctx context.Context, write bool) error { return errStub }

// CloseHandle undoes OpenHandle.
func (s *Staged) CloseHandle(write bool) {}

// ReadAt reads staged bytes (io.ReaderAt).
func (s *Staged) ReadAt(p []byte, off int64) (int, error) { return 0, errStub }

// WriteAt stores bytes. The write that completes the file validates it and
// makes it durable, and returns ErrMisfit or ErrIncomplete if it is refused.
func (s *Staged) WriteAt(ctx context.Context, p []byte, off int64) (int, error) { return 0, errStub }

// Truncate sets the size; a same-size truncate changes nothing.
func (s *Staged) Truncate(ctx context.Context, size int64) error { return errStub }

// Allocate reserves space (fallocate without flags or with KEEP_SIZE).
func (s *Staged) Allocate(ctx context.Context, off, length int64, keepSize bool) error {
	return errStub
}

// SetModTime keeps the writer's modification time for add.tags; after the
// commit it changes nothing.
func (s *Staged) SetModTime(t time.Time) {}

// Flush commits a complete file under a data name; empty or scratch files are
// left alone, an incomplete one with no other write handle is ErrIncomplete.
// The result of a commit is remembered and repeated.
func (s *Staged) Flush(ctx context.Context) error { return errStub }

// Sync makes the bytes durable; a complete data file is committed.
func (s *Staged) Sync(ctx context.Context) error { return errStub }
