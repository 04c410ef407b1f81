package metacache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Defaults of CacheOptions.
const (
	DefaultCacheSize  = 4 << 30
	DefaultCacheFloor = 256 << 20
	// What is less reads from the log as fast as from a run.
	DefaultCacheMinFiles    = 10_000
	DefaultCacheMinVersions = 200
	// A lake may have thousands of small tables, each of which would take memory
	// and descriptors for nothing.
	DefaultCacheSmall = 4
)

// CacheOptions configure a Cache.
type CacheOptions struct {
	// Dir is the directory of the cache. It is made when something is first
	// kept, and may be shared by any number of processes.
	Dir string
	// Size bounds what the directory takes on disk.
	Size int64
	// Floor is the free space that is left on the disk.
	Floor int64
	// MinFiles is how many files a run must have to be kept, MinVersions how
	// many versions; one of them is enough.
	MinFiles, MinVersions int
	// Small is how many tables are kept though they have less, of those that one
	// process opens.
	Small int
	// Logger receives what is worth knowing; nil discards.
	Logger *slog.Logger
}

// Cache keeps indexes in a directory, so that a table need not be loaded from
// its log again. All that can be wrong with the directory costs time only: what
// is damaged is dropped, and what cannot be kept stays in memory. Links are not
// followed, and what has not the name of something that a cache makes is left alone.
//
// Each table has a directory, and in it slots. A process owns the slot of a
// table that it writes to, by a lock; one that finds it taken takes the next.
type Cache struct {
	options CacheOptions
	log     *slog.Logger
	lru     *lru
	// stale has the tables of which the slots of others are not to be read, as
	// when they hold an earlier life of the table.
	stale sync.Map
	// told makes sure that the same trouble is logged once.
	told sync.Map

	mu sync.Mutex
	// small are the tables that are kept though they are small.
	small map[string]bool
}

// OpenCache returns the cache in a directory, which need not exist.
func OpenCache(o CacheOptions) *Cache {
	c := &Cache{options: o, log: o.Logger, lru: newLRU(unpackedBytes), small: map[string]bool{}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Open returns the index of the table with this root, with what the cache has
// of it. The index has to be closed, and may be discarded before.
func (c *Cache) Open(ctx context.Context, root string) (Index, error) {
	k := c.newKeeper(root)
	x, err := newRuns(ctx, k)
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return &cachedIndex{x, k}, nil
}

// Discarder is an Index that is kept in a cache.
type Discarder interface {
	Index
	// Discard deletes what the cache has of the table, and keeps nothing more:
	// the table was deleted, or is another one now. The index goes on to
	// answer for what it has in memory or open.
	Discard() error
}

type cachedIndex struct {
	*Runs
	keeper *diskKeeper
}

var _ Discarder = (*cachedIndex)(nil)

func (x *cachedIndex) Discard() error { return x.keeper.discard() }

// admits reports whether a small table is one of the few that are kept.
func (c *Cache) admits(table string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.small) < c.options.Small {
		c.small[table] = true
	}
	return c.small[table]
}

// tell logs what keeps the cache from working, each kind of it once.
func (c *Cache) tell(what string, err error) {
	if _, known := c.told.LoadOrStore(what, true); !known {
		c.log.Warn("trouble with the metadata cache", "op", "cache", "path", c.options.Dir, "reason", what, "err", err,
			"hint", "tables are read from their logs instead; --cache-dir names another directory, that nobody else writes to")
	}
}

const (
	tableFile = "table"
	lockFile  = "lock"
	// keyBytes of a hash name a table.
	keyBytes = 16
	// maxTableFile bounds the size of a file that names a table.
	maxTableFile = 1 << 16
)

// resolve returns a local root without the links on its way.
func resolve(root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		return real
	}
	return root
}

// cacheKey names the directory of a table.
func cacheKey(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:keyBytes])
}

// errForeign says that a directory is not one of a cache.
var errForeign = errors.New("not a directory of this cache")

// tableDir returns the directory of a table, which is made if it is not there.
func (c *Cache) tableDir(root string) (string, error) {
	if err := prepareDir(c.options.Dir); err != nil {
		return "", err
	}
	dir := filepath.Join(c.options.Dir, cacheKey(root))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return dir, nameTable(dir, root)
}

// ownEntries lists a directory of a cache. It follows no link, and says
// errForeign of what is no directory: whatever that is, the cache has not made it.
func ownEntries(dir string) ([]fs.DirEntry, error) {
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is a link or a file", errForeign, dir)
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// nameTable makes sure that a directory is that of a table. Who was killed, or
// lost power, while writing the name has left none, part of one, or zeros: a
// name that does not end as one is no other table's. But a directory without a
// name that has what no cache makes is somebody else's.
func nameTable(dir, root string) error {
	entries, err := ownEntries(dir)
	if err != nil {
		return err
	}
	name, line := filepath.Join(dir, tableFile), []byte(root+"\n")
	known, err := readLimited(name, maxTableFile)
	unnamed := errors.Is(err, os.ErrNotExist) || err == nil && !bytes.HasSuffix(known, []byte("\n"))
	switch {
	case unnamed && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != tableFile && !isSlotName(e.Name()) }):
		return fmt.Errorf("%w: %s has files of others", errForeign, dir)
	case unnamed:
		return os.WriteFile(name, line, 0o600)
	case err == nil && !bytes.Equal(known, line):
		return fmt.Errorf("%w: %s names another table", errForeign, name)
	}
	return err
}

// prepareDir makes the directory of a cache, or makes sure that nobody else
// can put files into it.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() && stat.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: others may write to %s", errForeign, dir)
	}
	tag := filepath.Join(dir, "CACHEDIR.TAG")
	if _, err := os.Lstat(tag); errors.Is(err, os.ErrNotExist) {
		// Backups leave out what has this file (bford.info/cachedir).
		_ = os.WriteFile(tag, []byte("Signature: 8a477f597d28d172789f06886806bc55\n"), 0o600)
	}
	return nil
}
