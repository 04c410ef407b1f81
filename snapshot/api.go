package snapshot

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/parquetview"
	"github.com/deltafs/deltafs/internal/rendercache"
	"github.com/deltafs/deltafs/metacache"
)

// Sentinels of the package, wrapped in *fault.Error.
var (
	// ErrNotTable: no Delta log here.
	ErrNotTable = errors.New("not a Delta table")
	// ErrNoVersion: the version does not exist or cannot be rebuilt.
	ErrNoVersion = errors.New("no such version")
	// ErrCorrupt: the log contradicts itself or does not parse.
	ErrCorrupt = errors.New("corrupt Delta log")
	// ErrUnsupported: the version needs a reader feature that is not supported.
	ErrUnsupported = errors.New("unsupported table feature")
	// ErrNotExist: no such file or directory in the snapshot.
	ErrNotExist = errors.New("no such file in this version")
	// ErrFileGone: the log names the file but storage has lost it (VACUUM).
	ErrFileGone = errors.New("data file is gone")
	// ErrOutside: the path leads outside the table and is not allowed.
	ErrOutside = errors.New("path outside the table is not allowed")
	// ErrBroken: a data file is damaged, or does not have what the table has.
	ErrBroken = errors.New("broken data file")
	// ErrNoRoom: what has to be rendered has no room on the disk.
	ErrNoRoom = errors.New("no room for rendered data")
)

// Options configure a Table.
type Options struct {
	// Name is the table's path as the user gave it, for messages.
	Name string
	// Logger receives what is worth knowing; nil discards.
	Logger *slog.Logger
	// Cache keeps the index of the table's files beyond the process; nil keeps
	// it in memory.
	Cache Cache
	// View says how data files are shown. FillPartitions gives them the partition
	// columns too.
	View           View
	FillPartitions bool
	// Rendered keeps what is rendered of data files; nil is a cache of the
	// table's own, in temporary files.
	Rendered *rendercache.Cache
	// AllowPaths are directories, by absolute paths, in which files that the log
	// names outside the table are served, as of a shallow clone.
	AllowPaths []string
}

// Event says what Refresh found.
type Event struct {
	// From and To are the latest versions before and after; equal when nothing
	// is new.
	From, To int64
	// Recreated is set when the log is not the one seen before: the table was
	// deleted and made again, or a commit was rewritten. Everything known was
	// dropped, no FileID of before is used again, and snapshots of before show
	// only what was loaded. To is -1 while there is no table.
	Recreated bool
}

// Commit is one entry of the history.
type Commit struct {
	Version int64
	// Time is the commit time; zero when the version is known from a
	// checkpoint alone.
	Time time.Time
	// Info is nil when the commit has no commitInfo.
	Info *action.CommitInfo
	// Readable says that the version can be rebuilt.
	Readable bool
}

// Detail describes a table as DESCRIBE DETAIL does.
type Detail struct {
	Format            string            `json:"format"`
	ID                string            `json:"id"`
	Name              *string           `json:"name"`
	Description       *string           `json:"description"`
	Location          string            `json:"location"`
	CreatedAt         *time.Time        `json:"createdAt"`
	LastModified      *time.Time        `json:"lastModified"`
	PartitionColumns  []string          `json:"partitionColumns"`
	ClusteringColumns []string          `json:"clusteringColumns"`
	NumFiles          int64             `json:"numFiles"`
	SizeInBytes       int64             `json:"sizeInBytes"`
	Properties        map[string]string `json:"properties"`
	MinReaderVersion  int               `json:"minReaderVersion"`
	MinWriterVersion  int               `json:"minWriterVersion"`
	TableFeatures     []string          `json:"tableFeatures"`
	Version           int64             `json:"version"`
}

// File is one data file as a snapshot shows it.
type File struct {
	// ID is stable for the life of the table's index.
	ID metacache.FileID
	// SchemaOrdinal is 0 when the table is shown raw; else it says under which
	// table metadata the file is shown. Versions whose metadata shows files alike
	// have the same.
	SchemaOrdinal uint32
	// Dir and Name are where it appears; Name is unique in Dir.
	Dir, Name string
	// Version is the version of the snapshot that shows the file.
	Version int64
	// Size is what the log says, or what Table.Open found on disk when the table
	// is shown raw. Other files may be served in another size; see
	// Table.ServedSize.
	Size int64
	// ModTime is the mtime to show.
	ModTime time.Time
	// Path is add.path, as the log spells it.
	Path string
	// DV is the id of the deletion vector, "" without one.
	DV string

	// life is the table's that has the file; origin is where in the log the add
	// is, logged the size that it states.
	life   *incarnation
	origin origin
	logged int64
}

// FileAdd is a file with its add action.
type FileAdd struct {
	File
	Add *action.Add
}

// DirEntry is a directory (File nil) or a data file.
type DirEntry struct {
	Name string
	File *File
}

// Content describes the bytes of a served file.
type Content struct {
	Size     int64
	Segments []Segment
}

// Segment is a piece of a served file: a raw range of the data file, literal
// bytes, a range that is rendered when first read, or zeros.
type Segment = parquetview.Segment

// Raw reports whether the content is the whole data file, unchanged.
func (c Content) Raw() bool {
	return len(c.Segments) == 1 && c.Segments[0].Raw && c.Segments[0].RawOffset == 0 && c.Segments[0].Length == c.Size
}

// Reader is an opened data file. ReadAt may be called from many goroutines.
type Reader interface {
	io.ReaderAt
	io.Closer
	// ReadAtContext is ReadAt that can be given up.
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
	Content() Content
	// RawRange returns the local file that holds these bytes as they lie there,
	// and where; nil if there is none. The caller must not close it.
	RawRange(off, length int64) (*os.File, int64)
	// File is the local file when Content().Raw(), for passthrough; else nil.
	// The caller must not close it.
	File() *os.File
}

// ErrAmbiguous: several live files share this visible name.
var ErrAmbiguous = errors.New("several files share this name")
