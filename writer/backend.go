package writer

import (
	"context"
	"io"
	"iter"
	"os"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

// view is what Live needs of one version of the table; *snapshot.Snapshot is
// one.
type view interface {
	Version() int64
	Incarnation() any
	Metadata() *action.Metadata
	PartitionFields() []snapshot.Field
	Dir(ctx context.Context, dir, after string) iter.Seq2[snapshot.DirEntry, error]
	Lookup(ctx context.Context, dir, name string) (snapshot.DirEntry, error)
	ByPath(ctx context.Context, path string) (snapshot.File, bool, error)
	Adds(ctx context.Context, files ...snapshot.File) ([]*action.Add, error)
}

// backend is what Live needs of the table below it: its versions, the
// judgement about files, the storage and the one way to commit. tableBackend
// is the real one; tests of the state machine have their own.
type backend interface {
	logKeeper
	// Name is the table's path for messages, Root its local directory.
	Name() string
	Root() string
	// View returns the newest version known, without looking for newer ones.
	View(ctx context.Context) (view, error)
	// Refresh looks for newer versions.
	Refresh(ctx context.Context) error
	// Actions returns the actions of one commit.
	Actions(ctx context.Context, v int64) ([]action.Action, error)
	// Writable returns nil, or why the newest version cannot be written.
	Writable(ctx context.Context) error
	// Judge checks a file of the given size against a version. errNotYet says
	// that the bytes may still become a file.
	Judge(ctx context.Context, v view, f *os.File, size int64, p place) (*verdict, error)
	// DataPath makes the name of the data file with a unique id: object in
	// storage, addPath in the log.
	DataPath(v view, p place, id, codec string) (object, addPath string)
	// Publish makes f, durable and not written any more, the object. The name is
	// durable when a commit has listed it.
	Publish(ctx context.Context, f *os.File, object string) error
	// OpenObject opens a published data file.
	OpenObject(ctx context.Context, object string) (committedReader, error)
	// OpenFile opens the content of a committed file.
	OpenFile(ctx context.Context, f snapshot.File) (committedReader, error)
	// Commit is Table.Commit.
	Commit(ctx context.Context, spec *TxnSpec) (int64, error)
}

// committedReader reads a committed file.
type committedReader interface {
	io.ReaderAt
	io.Closer
	// Size is that of the content.
	Size() int64
	// File is the local file if the content is the file as it lies on disk,
	// else nil.
	File() *os.File
}

// verdict is what the judgement found of a complete file that fits.
type verdict struct {
	// Rows is the number of rows, Stats the text of add.stats.
	Rows  int64
	Stats string
	// Codec is the compression codec of all columns, "" if they differ.
	Codec string
	// For is the metadata the file was judged by.
	For *action.Metadata

	at string // the canonical directory it was judged for
}
