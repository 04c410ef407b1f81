package rendercache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// errDisk says that something of the disk's is in the way.
var errDisk = errors.New("the disk does not take rendered data")

// disk is the directory of a cache.
type disk struct {
	options Options
	log     *slog.Logger
	// told makes sure that the same trouble is logged once.
	told sync.Map

	mu sync.Mutex
	// root is nil until the directory is first needed. No link leads out of it.
	root *os.Root
	// used is what the directory was found to hold, and what came since is added.
	used, added int64
	counted     bool
}

func newDisk(o Options, log *slog.Logger) *disk { return &disk{options: o, log: log} }

const tempPrefix = "tmp-"

func (k Key) name() string { return hex.EncodeToString(k[:]) }

// find returns a chunk that is in the directory, else nil.
func (d *disk) find(chunk *Chunk) content {
	root := d.opened()
	if root == nil {
		return nil
	}
	name := chunk.Key.name()
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = sealed(file, chunk)
	}
	if err != nil {
		d.log.Warn("rendered data is passed over", "op", "render", "path", filepath.Join(d.options.Dir, name), "err", err)
		if file != nil {
			file.Close()
		}
		_ = root.Remove(name) // else it is replaced
		return nil
	}
	touch(file, time.Now())
	return &diskFile{file: file, bytes: allocated(file), named: true}
}

// make renders a chunk into a file. errDisk if the file is what fails.
func (d *disk) make(ctx context.Context, chunk *Chunk) (content, error) {
	root := d.opened()
	file, temp, err := d.create(root)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDisk, err)
	}
	out := &diskFile{file: file}
	if err = d.render(ctx, chunk, file); err == nil && temp != "" {
		out.named = root.Rename(temp, chunk.Key.name()) == nil
	}
	if temp != "" && !out.named {
		_ = root.Remove(temp)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	out.bytes = allocated(file)
	if out.named {
		d.came(root, out.bytes)
	}
	return out, nil
}

func (d *disk) render(ctx context.Context, chunk *Chunk, file *os.File) error {
	if err := file.Truncate(headerSize + chunk.Length); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	w := &diskWriter{file: file, length: chunk.Length, room: func() error { return d.room(file) }}
	if err := chunk.Render(ctx, w); err != nil {
		return err
	}
	if err := seal(file, chunk, w.written); err != nil {
		return fmt.Errorf("%w: %w", errDisk, err)
	}
	return nil
}

// create makes a file without a name, or with a temporary one in the directory.
func (d *disk) create(root *os.Root) (file *os.File, temp string, err error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL | unix.O_NOFOLLOW
	if root != nil {
		temp = tempPrefix + uuid.NewString()
		if file, err = root.OpenFile(temp, flags, 0o600); err == nil {
			return file, temp, nil
		}
		d.tell("a file cannot be made", err)
		d.reopen(root)
	}
	if file, err = os.CreateTemp(tempDir(), "deltafs-rendered-"); err != nil {
		return nil, "", err
	}
	return file, "", os.Remove(file.Name())
}

// tempDir is where files without a name lie: they may be large, and what is
// meant for small ones may be memory.
func tempDir() string {
	const large = "/var/tmp"
	if info, err := os.Stat(large); os.Getenv("TMPDIR") == "" && err == nil && info.IsDir() {
		return large
	}
	return os.TempDir()
}

// opened returns the directory, nil if there is none.
func (d *disk) opened() *os.Root {
	if d.options.Dir == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root != nil {
		return d.root
	}
	root, err := openDir(d.options.Dir)
	if err != nil {
		d.tell("the directory cannot be used", err)
		return nil
	}
	d.root = root
	return root
}

// reopen lets the directory be opened anew, as it may have been deleted. Who
// uses the old one goes on; it is closed by the collector.
func (d *disk) reopen(old *os.Root) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root == old {
		d.root, d.counted = nil, false
	}
}

// openDir makes the directory, or makes sure that nobody else can put files
// into it.
func openDir(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(st.Uid) != os.Geteuid() && st.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s is a link, or others may write to it", dir)
	}
	return os.OpenRoot(dir)
}

func (d *disk) tell(what string, err error) {
	if _, known := d.told.LoadOrStore(what, true); !known {
		d.log.Warn("trouble with the cache of rendered data", "op", "render", "path", d.options.Dir, "reason", what, "err", err,
			"hint", "temporary files are used instead; --cache-dir names another directory, that nobody else writes to")
	}
}

// isOwn reports whether a name in the directory is that of a chunk, or of one
// that is being made.
func isOwn(name string) (own, temp bool) {
	if rest, ok := strings.CutPrefix(name, tempPrefix); ok {
		_, err := uuid.Parse(rest)
		return err == nil, true
	}
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == len(Key{}), false
}

func allocated(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return blocks(info)
}

// touch sets the time of a file's last use.
func touch(f *os.File, at time.Time) {
	now := unix.NsecToTimeval(at.UnixNano())
	_ = unix.Futimes(int(f.Fd()), []unix.Timeval{now, now})
}
