package fsnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/mountpoint"
)

// Server serves one mount.
type Server struct {
	fs    *FS
	fuse  *fuse.Server
	point string
	done  chan struct{}
}

// Mount mounts the file system and serves it until it is unmounted. It returns
// when the mount can be used. ErrMount.
func (f *FS) Mount(point string) (*Server, error) {
	srv, err := fuse.NewServer(f, point, f.mountOptions())
	if err != nil {
		return nil, fault.Wrap(ErrMount, err, "the kernel or fusermount3 refused").
			InFile(point).WithHint("%s", mountHint(err))
	}
	s := &Server{fs: f, fuse: srv, point: point, done: make(chan struct{})}
	f.wg.Go(func() { f.notifier.run(f.ctx.Done()) })
	go func() {
		defer close(s.done)
		srv.Serve()
	}()
	f.readAhead(point)
	// No WaitMount: the handshake is done when NewServer returns, and it would
	// open a file of our own mount. A process killed with one open waits for
	// itself for ever.
	return s, nil
}

// mountOptions are the kernel's settings; each differs from go-fuse's default
// for a measured or semantic reason.
func (f *FS) mountOptions() *fuse.MountOptions {
	o := &fuse.MountOptions{
		Name:          "deltafs",
		FsName:        f.opt.FsName,
		AllowOther:    f.opt.AllowOther,
		MaxWrite:      1 << 20,
		MaxBackground: 128,
		MaxStackDepth: 1,
		// With any answer but ENOSYS `ls -l` asks twice for every file.
		DisableXAttrs: true,
		// A link's target never changes: another target is another inode.
		EnableSymlinkCaching: true,
		PanicHandler:         f.onPanic,
		Debug:                f.opt.TraceFUSE,
		Logger:               slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
	}
	if f.opt.AllowOther {
		o.Options = append(o.Options, "default_permissions")
	}
	if os.Geteuid() == 0 {
		o.DirectMountStrict = true
		o.DirectMountFlags = syscall.MS_NOSUID | syscall.MS_NODEV
		if f.opt.ReadOnly {
			o.DirectMountFlags |= syscall.MS_RDONLY
		}
	} else if f.opt.ReadOnly {
		o.Options = append(o.Options, "ro")
	}
	return o
}

// readAheadKB is how far the kernel reads ahead in a file that goes through the
// server: a few requests' worth. A reader that maps a file and touches it here
// and there has as much read around each place.
const readAheadKB = 512

// readAhead raises the kernel's default of 128 KiB, where we may; it bounds the
// size of a request too. Nothing depends on it.
func (f *FS) readAhead(point string) {
	m, ok, err := mountpoint.Find(point)
	if err == nil && ok {
		knob := filepath.Join("/sys/class/bdi", m.Device, "read_ahead_kb")
		err = os.WriteFile(knob, []byte(strconv.Itoa(readAheadKB)), 0)
	}
	if err != nil {
		f.log.Debug("read-ahead stays as it is", "op", "mount", "err", err)
	}
}

// mountHint is the way out of a refused mount.
func mountHint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENODEV):
		return "is the mount point there, and /dev/fuse? modprobe fuse"
	case errors.Is(err, syscall.EPERM) && os.Geteuid() == 0:
		return "in a container, run it with CAP_SYS_ADMIN and /dev/fuse"
	case os.Geteuid() != 0:
		return "as an ordinary user, install fuse3; for --allow-other put user_allow_other into /etc/fuse.conf"
	}
	return "see dmesg"
}

// onPanic turns a defect into EIO for one operation.
func (f *FS) onPanic(v any) fuse.Status {
	f.log.Error("defect: an operation panicked", "err", fmt.Sprint(v), "stack", string(debug.Stack()))
	return fuse.EIO
}

// guard runs work of the background, so that a defect in it ends neither the
// mount nor the work that follows.
func (f *FS) guard(op string, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			f.log.Error("defect: panic in the background", "op", op, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	fn()
}

// String implements fuse.RawFileSystem.
func (f *FS) String() string { return "deltafs" }

// Init implements fuse.RawFileSystem.
func (f *FS) Init(s *fuse.Server) {
	f.files.allowPassthrough(s)
	f.server.Store(s)
}

// OnUnmount implements fuse.RawFileSystem.
func (f *FS) OnUnmount() { f.server.Store(nil) }

// Wait returns when the mount is gone, whoever took it away.
func (s *Server) Wait() { <-s.done }

// Unmount refuses new changes, lets those under way end, commits what is
// pending and takes the mount away. ErrBusy when files are in use: then the
// mount goes on as before. After it, FS.Close gives up the tables.
func (s *Server) Unmount(ctx context.Context) error {
	if err := s.fs.writes.stop(ctx); err != nil {
		s.fs.writes.reopen()
		return err
	}
	pending := s.fs.syncTables(ctx)
	if err := s.fuse.Unmount(); err != nil && !s.ended() {
		s.fs.writes.reopen()
		return errors.Join(pending, s.busy(err))
	}
	<-s.done
	return pending
}

// ended reports whether the mount is gone already.
func (s *Server) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// UnmountLazy takes the mount out of the tree at once; it ends when nobody
// uses it any more.
func (s *Server) UnmountLazy(ctx context.Context) error {
	stop := s.fs.writes.stop(ctx)
	pending := s.fs.syncTables(ctx)
	return errors.Join(stop, pending, detach(ctx, s.point))
}

// busy says what is in use.
func (s *Server) busy(err error) error {
	e := fault.Wrap(ErrBusy, err, "in use").InFile(s.point)
	if open := s.fs.openForWriting(); len(open) > 0 {
		e.Reason = "files are being written: " + strings.Join(open, ", ")
	}
	return e.WithHint("close the files and leave the directory, or unmount with --lazy")
}

// openForWriting names the staged files with open handles.
func (f *FS) openForWriting() []string {
	var staged []*stagedFile
	f.handles.each(func(h handle) {
		if s, ok := h.(*stagedHandle); ok && s.write {
			staged = append(staged, s.node)
		}
	})
	var names []string
	for _, s := range staged {
		if n := s.name(); n != "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// syncTables commits the pending unlinks of every open table.
func (f *FS) syncTables(ctx context.Context) error {
	var errs []error
	for _, t := range f.allTables() {
		if inc, _ := t.state(); inc != nil && !f.opt.ReadOnly {
			errs = append(errs, inc.live.SyncDir(ctx, ""))
		}
	}
	return errors.Join(errs...)
}
