package snapshot

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
)

// STUB: the shape of the package for those who build on it; each method moves
// into a file of its own with its implementation.

var errStub = errors.New("stub")

// Table follows the log of one table. It is safe for concurrent use.
type Table struct{}

// Open opens the table whose root is st. ErrNotTable without a log.
// A table whose latest version must be refused opens: At says why.
func Open(ctx context.Context, st store.Store, o Options) (*Table, error) { return nil, errStub }

// Close releases the index.
func (t *Table) Close() error { return nil }

// Name is Options.Name.
func (t *Table) Name() string { return "" }

// Store is the table's storage.
func (t *Table) Store() store.Store { return nil }

// Latest is the newest version known, without I/O.
func (t *Table) Latest() int64 { return 0 }

// Refresh probes the log for new commits and for a recreated table.
func (t *Table) Refresh(ctx context.Context) (Event, error) { return Event{}, errStub }

// Versions returns the versions that can be rebuilt, ascending.
func (t *Table) Versions(ctx context.Context) ([]metacache.Span, error) { return nil, errStub }

// CommitTime returns when v was committed (in-commit timestamp, else
// monotonised file time); false when v is known from a checkpoint alone.
func (t *Table) CommitTime(ctx context.Context, v int64) (time.Time, bool, error) {
	return time.Time{}, false, errStub
}

// VersionAsOf returns the newest version committed at or before when.
// ErrNoVersion before the first commit and for a time later than now; a time
// between the newest commit and now is the newest version.
func (t *Table) VersionAsOf(ctx context.Context, when time.Time) (int64, error) { return 0, errStub }

// At returns version v. ErrNoVersion, ErrUnsupported, ErrCorrupt.
func (t *Table) At(ctx context.Context, v int64) (*Snapshot, error) { return nil, errStub }

// FileByID returns a file that some snapshot has shown (Dir and Name as in the
// newest version that shows it, if they differ).
func (t *Table) FileByID(ctx context.Context, id metacache.FileID) (File, error) {
	return File{}, errStub
}

// Open opens a data file's content. ErrFileGone, ErrOutside.
func (t *Table) Open(ctx context.Context, f File) (Reader, error) { return nil, errStub }

// History yields the commits from the newest to the oldest, also those that
// can no longer be rebuilt.
func (t *Table) History(ctx context.Context) iter.Seq2[Commit, error] { return nil }

// ReadCommit returns the actions of one commit file, in order.
func (t *Table) ReadCommit(ctx context.Context, v int64) ([]action.Action, error) {
	return nil, errStub
}

// Header returns protocol and metadata of v without its files, also when the
// version's features are not supported.
func (t *Table) Header(ctx context.Context, v int64) (*action.Protocol, *action.Metadata, error) {
	return nil, nil, errStub
}

// Snapshot is one version of a table: an immutable value.
type Snapshot struct{}

// Version is the table version.
func (s *Snapshot) Version() int64 { return 0 }

// Table is the table the snapshot is of.
func (s *Snapshot) Table() *Table { return nil }

// Protocol and Metadata are shared: callers must not change them.
func (s *Snapshot) Protocol() *action.Protocol { return nil }

// Metadata is the table metadata at this version.
func (s *Snapshot) Metadata() *action.Metadata { return nil }

// Schema is the parsed schema.
func (s *Snapshot) Schema() *Schema { return nil }

// PartitionFields are the schema fields of the partition columns, in the
// order of partitionColumns.
func (s *Snapshot) PartitionFields() []Field { return nil }

// Txn returns the last version that an application recorded.
func (s *Snapshot) Txn(appID string) (int64, bool) { return 0, false }

// Domains returns the live domain metadata by domain.
func (s *Snapshot) Domains() map[string]*action.DomainMetadata { return nil }

// Totals sums up the version's files.
func (s *Snapshot) Totals(ctx context.Context) (metacache.Totals, error) {
	return metacache.Totals{}, errStub
}

// Dir yields subdirectories and files of a directory ("" = root), in order of
// name, after the given name. A directory that holds no file yields
// ErrNotExist; the root always exists.
func (s *Snapshot) Dir(ctx context.Context, dir, after string) iter.Seq2[DirEntry, error] { return nil }

// Lookup finds a name in a directory, by the name that Dir shows. ErrNotExist;
// ErrAmbiguous for the bare name of several files.
func (s *Snapshot) Lookup(ctx context.Context, dir, name string) (DirEntry, error) {
	return DirEntry{}, errStub
}

// Files yields every file.
func (s *Snapshot) Files(ctx context.Context) iter.Seq2[File, error] { return nil }

// ByPath returns the live file with this add.path.
func (s *Snapshot) ByPath(ctx context.Context, path string) (File, bool, error) {
	return File{}, false, errStub
}

// Detail describes the version as DESCRIBE DETAIL does.
func (s *Snapshot) Detail(ctx context.Context) (Detail, error) { return Detail{}, errStub }
