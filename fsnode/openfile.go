package fsnode

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/snapshot"
)

// passthroughFrom is the size in bytes from which a raw file is read by the
// kernel directly. Passing a file through costs two calls an open, so it is
// for files that are worth more than a few reads.
const passthroughFrom = 256 << 10

// openFile is a data file that at least one handle reads. All handles share
// it, because the kernel takes one backing file and one mode for an inode.
type openFile struct {
	id   uint64
	refs int // under openFiles.mu

	// ready guards the opening; the rest does not change afterwards.
	ready  sync.Mutex
	opened bool
	reader snapshot.Reader
	// file is the local file when its bytes are served unchanged.
	file *os.File
	// backing is the kernel's id of the file, 0 without passthrough.
	backing int32
}

// openFiles are the data files with open handles, by node id.
type openFiles struct {
	fs *FS
	// back makes a file known to the kernel; nil when passthrough cannot work.
	back func(*fuse.BackingMap) (int32, syscall.Errno)
	// told is set when the log has said that the kernel refused a file.
	told atomic.Bool

	mu   sync.Mutex
	byID map[uint64]*openFile
}

func newOpenFiles(f *FS) *openFiles { return &openFiles{fs: f, byID: map[uint64]*openFile{}} }

// acquire opens a file or shares it with those who have it open.
func (o *openFiles) acquire(ctx context.Context, d *dataFile) (*openFile, error) {
	o.mu.Lock()
	of, ok := o.byID[d.id]
	if !ok {
		of = &openFile{id: d.id}
		o.byID[d.id] = of
	}
	of.refs++
	o.mu.Unlock()

	of.ready.Lock()
	defer of.ready.Unlock()
	if of.opened {
		return of, nil
	}
	r, err := d.inc.snap.Open(ctx, *d.File)
	if err != nil {
		o.drop(of)
		return nil, err
	}
	of.reader, of.opened = r, true
	if r.Content().Raw() {
		of.file = r.File()
	}
	of.backing = o.register(of)
	return of, nil
}

// drop gives a reference back and reports whether it was the last.
func (o *openFiles) drop(of *openFile) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	of.refs--
	if of.refs > 0 {
		return false
	}
	if o.byID[of.id] == of {
		delete(o.byID, of.id)
	}
	return true
}

func (o *openFiles) release(of *openFile) {
	if !o.drop(of) {
		return
	}
	if of.backing > 0 {
		if s := o.fs.server.Load(); s != nil {
			if errno := s.UnregisterBackingFd(of.backing); errno != 0 {
				o.fs.log.Debug("backing file cannot be given up", "op", "release", "errno", unix.ErrnoName(errno))
			}
		}
	}
	if err := of.reader.Close(); err != nil {
		o.fs.log.Debug("close failed", "op", "release", "err", err)
	}
}

// register makes the file known to the kernel for passthrough. One that the
// kernel refuses, perhaps for the file system that it lies on, is read through
// the server as long as it is open.
func (o *openFiles) register(of *openFile) int32 {
	if o.back == nil || of.file == nil || of.reader.Content().Size < passthroughFrom {
		return 0
	}
	id, errno := o.back(&fuse.BackingMap{Fd: int32(of.file.Fd())})
	if errno != 0 {
		level := slog.LevelDebug
		if !o.told.Swap(true) {
			level = slog.LevelWarn
		}
		o.fs.log.Log(o.fs.ctx, level, "kernel refuses passthrough of a file, it is read through the server",
			"op", "open", "path", of.file.Name(), "errno", unix.ErrnoName(errno))
		return 0
	}
	return id
}

// allowPassthrough decides at the start whether passthrough can work: the
// kernel must offer it and registering a file needs CAP_SYS_ADMIN.
func (o *openFiles) allowPassthrough(s *fuse.Server) {
	if s.KernelSettings().Flags64()&fuse.CAP_PASSTHROUGH != 0 && syscall.Geteuid() == 0 {
		o.back = s.RegisterBackingFd
	}
}
