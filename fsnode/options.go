package fsnode

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/deltafs/deltafs/internal/rendercache"
	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/snapshot"
)

// Sentinels that New and Mount return, wrapped in *fault.Error.
var (
	// ErrNoSource: the source does not exist or is no directory.
	ErrNoSource = errors.New("no such table or directory")
	// ErrMount: the kernel or fusermount3 refused the mount.
	ErrMount = errors.New("cannot mount")
	// ErrBusy: the mount is in use and could not be taken away.
	ErrBusy = errors.New("mount is busy")
)

// DefaultListVersions is how many versions a table's root lists.
const DefaultListVersions = 20

// The defaults of Options.Refresh and Options.Idle.
const (
	DefaultRefresh = 200 * time.Millisecond
	DefaultIdle    = time.Minute
)

// ListVersions limits which versions the root of a table lists; all others
// resolve by name. It is a flag.Value.
type ListVersions int

// The special limits.
const (
	ListNone ListVersions = 0
	ListAll  ListVersions = -1
)

// ParseListVersions reads "all", "none" or a number.
func ParseListVersions(s string) (ListVersions, error) {
	switch s {
	case "all":
		return ListAll, nil
	case "none":
		return ListNone, nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not all, none or a number", s)
	}
	return ListVersions(n), nil
}

// String is the inverse of ParseListVersions.
func (l ListVersions) String() string {
	switch l {
	case ListAll:
		return "all"
	case ListNone:
		return "none"
	}
	return strconv.Itoa(int(l))
}

// Set implements flag.Value.
func (l *ListVersions) Set(s string) error {
	v, err := ParseListVersions(s)
	if err != nil {
		return err
	}
	*l = v
	return nil
}

// Options configure a mount.
type Options struct {
	// Source is the local path of a table or of a lake: a directory with
	// tables below it.
	Source string
	// ReadOnly refuses every change, AppendOnly every removal.
	ReadOnly, AppendOnly bool
	// AllowOther lets other users in; the kernel then checks permissions.
	AllowOther bool
	// UID and GID own everything; nil is the process's.
	UID, GID *uint32
	// FileMode and DirMode are the permission bits of files (0644) and of
	// directories that can be written (0755).
	FileMode, DirMode *uint32
	// Location is the zone of a timestamp spelled without one; nil is local.
	Location *time.Location
	// ListVersions limits the versions listed; nil is DefaultListVersions.
	ListVersions *ListVersions
	// Grace is how long a name removed by another writer keeps resolving.
	Grace time.Duration
	// Refresh is how often a table in use is probed for new versions where the
	// kernel does not tell of every change, as on network file systems; 0 is
	// DefaultRefresh.
	Refresh time.Duration
	// Idle is how long after its last use a table gives up what can be loaded
	// again, and is closed if the kernel knows nothing of it; 0 is DefaultIdle.
	Idle time.Duration
	// OnIdle is called when the last table in use has come to rest.
	OnIdle func()
	// EngineInfo goes into the commits made through the mount.
	EngineInfo string
	// FsName is the first column of mount(8); empty is Source.
	FsName string
	// View says how data files are shown. FillPartitions gives them the partition
	// columns too.
	View           snapshot.View
	FillPartitions bool
	// AllowPaths are directories, by absolute paths, in which files outside of
	// tables are served.
	AllowPaths []string
	// Cache keeps the metadata of tables beyond the mount; nil keeps it in
	// memory.
	Cache snapshot.Cache
	// SpoolDir is where generated files lie, without a name, while they are
	// used; empty, or if that fails, the directory for temporary files.
	SpoolDir string
	// Rendered keeps what is rendered of data files; nil keeps it in temporary
	// files.
	Rendered *rendercache.Cache
	// SQL reads the rows of tables for their text; nil refuses to.
	SQL *sql.Engine
	// Logger receives what is worth knowing; nil discards.
	Logger *slog.Logger
	// TraceFUSE logs every FUSE request at level debug.
	TraceFUSE bool
}

// settings are Options with the defaults filled in.
type settings struct {
	Options
	uid, gid          uint32
	fileMode, dirMode uint32
	list              ListVersions
	log               *slog.Logger
}

func (o Options) settings() settings {
	s := settings{
		Options: o,
		uid:     orElse(o.UID, uint32(os.Geteuid())), gid: orElse(o.GID, uint32(os.Getegid())),
		fileMode: orElse(o.FileMode, 0o644) & 0o777, dirMode: orElse(o.DirMode, 0o755) & 0o777,
		list: orElse(o.ListVersions, DefaultListVersions),
		log:  o.Logger,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.Location == nil {
		s.Location = time.Local
	}
	if s.Refresh <= 0 {
		s.Refresh = DefaultRefresh
	}
	if s.Idle <= 0 {
		s.Idle = DefaultIdle
	}
	if s.FsName == "" {
		s.FsName = o.Source
	}
	return s
}

func orElse[T any](p *T, def T) T {
	if p != nil {
		return *p
	}
	return def
}
