package writer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

// Sentinels of the package, wrapped in *fault.Error.
var (
	// ErrReadOnly: the mount or the table cannot be written (fsnode: EROFS).
	ErrReadOnly = errors.New("table is read-only")
	// ErrAppendOnly: the operation removes, the table or mount only appends (EPERM).
	ErrAppendOnly = errors.New("table is append-only")
	// ErrIncomplete: the bytes are not a complete Parquet file (EINVAL).
	ErrIncomplete = errors.New("not a complete Parquet file")
	// ErrMisfit: the file does not fit the table (EINVAL).
	ErrMisfit = errors.New("file does not fit the table")
	// ErrNotPartition: not a directory name this table can have here (EINVAL).
	ErrNotPartition = errors.New("not a partition directory of this table")
	// ErrReserved: the name is reserved, or the rename is refused (EPERM).
	ErrReserved = errors.New("operation not permitted in current")
	// ErrSealed: a committed or poisoned file cannot be written (EPERM).
	ErrSealed = errors.New("file is committed and immutable")
	// ErrConflict: another commit got in the way and the operation cannot be
	// rebased (EBUSY).
	ErrConflict = errors.New("lost a conflict with another commit")
	// ErrUnsure: the storage gave no answer, the commit may exist (EIO).
	ErrUnsure = errors.New("outcome of the commit is unknown")
	// ErrInvalid: the transaction would break the log; nothing was written
	// (EIO: a defect of this program).
	ErrInvalid = errors.New("transaction breaks a rule of the Delta protocol")
	// ErrNoCheckpoint: the version gets no checkpoint of this program, since it
	// would lose something or the table asks for another form.
	ErrNoCheckpoint = errors.New("the version gets no checkpoint")
	// ErrExist, ErrNotExist, ErrNotEmpty, ErrIsDir, ErrNotDir as in POSIX.
	ErrExist    = errors.New("name exists")
	ErrNotExist = errors.New("no such name")
	ErrNotEmpty = errors.New("directory is not empty")
	ErrIsDir    = errors.New("is a directory")
	ErrNotDir   = errors.New("is not a directory")
)

// Options configure the write side.
type Options struct {
	// ReadOnly refuses every change, AppendOnly every removal.
	ReadOnly, AppendOnly bool
	// Grace is how long a name removed by another writer keeps resolving.
	Grace time.Duration
	// EngineInfo goes into commitInfo, e.g. "deltafs/0.1.0".
	EngineInfo string
	Logger     *slog.Logger
	// Report receives every failure for errors.jsonl, also those that no
	// caller sees (a burst of unlinks that lost a conflict).
	Report func(op, name string, err error)
	// OnRefresh receives what the Refresh inside a commit found, so that who
	// follows the table misses no event. It is called before Commit returns
	// and must neither block nor commit.
	OnRefresh func(ctx context.Context, ev snapshot.Event)
}

// Caller is the thread that asked, as FUSE names it (0 = the kernel).
type Caller struct{ PID uint32 }

// Node is what a name in current/ means: exactly one field is set.
type Node struct {
	// Dir is the path of a directory, relative to current/ ("" = current).
	Dir *string
	// File is a committed file.
	File *snapshot.File
	// Staged is a file not committed yet.
	Staged *Staged
	// Private is set when the name means something else for other processes:
	// it must not be cached.
	Private bool
}

// Entry is a named Node of a listing.
type Entry struct {
	Name string
	Node
}

// Attr are the attributes of a staged file.
type Attr struct {
	Size    int64
	ModTime time.Time
}

// TxnSpec is what a transaction wants to do and what it has read.
type TxnSpec struct {
	// Operation and Parameters go into commitInfo as Spark writes them; a
	// parameter that is no scalar becomes JSON text. For a WRITE, nil
	// Parameters are those of an append, and nil Metrics are counted from the
	// actions.
	Operation  string
	Parameters map[string]any
	Metrics    map[string]string
	// Base is the version everything was decided on; -1 = the table does not
	// exist yet.
	Base int64
	// Incarnation is the table that everything was decided on, as
	// [snapshot.Snapshot.Incarnation] says; nil = whatever table has Base.
	Incarnation any
	// ReadFiles are add.paths the decision rests on (raw, as in the log).
	ReadFiles []string
	// ReadWhole: the decision rests on the whole table.
	ReadWhole bool
	// AppIDs are the applications whose txn the decision rests on.
	AppIDs []string
	// Actions to commit, without commitInfo.
	Actions []action.Action
	// Published are the data files of Actions whose names must be durable before
	// the commit exists.
	Published []string
	// UserMetadata goes into commitInfo.
	UserMetadata string

	// ready is the commit file, if it was made beforehand.
	ready *readyCommit
}
