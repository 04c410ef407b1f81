package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"time"
)

// Sentinels of the package; they are wrapped in *fault.Error or *PathError.
var (
	// ErrNotExist says that the named object does not exist.
	ErrNotExist = errors.New("no such object")
	// ErrExist says that a name which had to be free is taken.
	ErrExist = errors.New("object exists already")
	// ErrOutside says that a name or a link leads out of the root.
	ErrOutside = errors.New("path leads outside the table")
	// ErrReadOnly says that the storage offers no atomic put-if-absent, or
	// does not allow writing at all.
	ErrReadOnly = errors.New("storage is read-only")
)

// Outcome is the answer to PutIfAbsent.
type Outcome int

// The possible outcomes of PutIfAbsent. After Lost and Unsure the caller
// reads the object back and compares its commit id before it tells anyone: a
// lost reply and our own retry look like a lost race.
const (
	Unsure Outcome = iota
	Won
	Lost
)

// Info describes one object or, in a listing with a delimiter, a common
// prefix.
type Info struct {
	// Name is relative to the root; a common prefix ends in the delimiter.
	Name string
	// Size is in bytes.
	Size int64
	// ModTime is the storage's modification time.
	ModTime time.Time
	// Identity changes when the object is replaced.
	Identity Identity
	// Changed is when the object or what is said of it last changed (ctime, in
	// nanoseconds), 0 where the storage does not know. Unlike Identity it also
	// tells an object from one that was given its inode and its times, but it
	// changes as well when a name is added or taken away: 0 stands for an object
	// of several names.
	Changed int64
	// IsPrefix is set for a common prefix (a directory).
	IsPrefix bool
}

// Identity tells an object from one that replaced it, even by the same size and
// time: device, inode, size and mtime locally, the hash of an ETag elsewhere. It
// holds no pointer, for there is one of every file of a log.
type Identity [4]uint64

// Object is an opened object. ReadAt may be called from many goroutines.
type Object interface {
	io.ReaderAt
	io.Closer
	// Info is the state at opening.
	Info() Info
	// File is the local file behind the object, nil for remote storage. The
	// caller must not close or write it.
	File() *os.File
}

// Draft is an object that waits for its name.
type Draft interface {
	// Place gives it the name and answers as PutIfAbsent does. It is called once.
	Place(ctx context.Context, name string) (Outcome, error)
	// Discard must be called when the draft is not needed any more, placed or
	// not. A process that is killed leaves nothing of it.
	Discard()
}

// Store is the storage of one table.
type Store interface {
	// Root names the storage for messages and as an identity: an absolute
	// local path or a URL.
	Root() string
	// List yields the objects whose name starts with prefix and sorts after
	// startAfter, in byte order. A delimiter of "/" folds names below the
	// next slash into common prefixes; "" lists everything. A prefix that
	// names nothing yields nothing.
	List(ctx context.Context, prefix, startAfter, delimiter string) iter.Seq2[Info, error]
	// Head returns the object's Info, or ErrNotExist.
	Head(ctx context.Context, name string) (Info, error)
	// Open opens the object for reading.
	Open(ctx context.Context, name string) (Object, error)
	// PutIfAbsent creates the object with all of data, durably and at once,
	// unless the name exists. It never exists before the names that Publish
	// made and prior lists are durable. With Won and Lost the error is nil. An
	// error that is no timeout (an error tree with a Timeout method that
	// answers true) promises that a write which has left no object by now
	// never will.
	PutIfAbsent(ctx context.Context, name string, data []byte, prior ...string) (Outcome, error)
	// Draft does what PutIfAbsent does before the name comes into being, for a
	// name in the same place. Not every storage can.
	Draft(ctx context.Context, name string, data []byte, prior ...string) (Draft, error)
	// Put creates or replaces the object at once.
	Put(ctx context.Context, name string, data []byte) error
	// Publish makes the local staged file, whose bytes are durable, an object
	// under a new name. The name itself is durable when a PutIfAbsent has named
	// it as prior. The staged file stays; the two must not be written any more.
	// ErrExist if the name is taken.
	Publish(ctx context.Context, staged *os.File, name string) error
	// Delete removes the object. Deleting what does not exist is no error.
	Delete(ctx context.Context, name string) error
}
