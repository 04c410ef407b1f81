package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/deltafs/deltafs/fsnode"
	"github.com/deltafs/deltafs/internal/daemon"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/mountpoint"
)

// busyPoll is how often the users of a busy mount are looked at.
const busyPoll = 500 * time.Millisecond

// session serves one mount until it ends. The first SIGINT or SIGTERM
// unmounts, and waits for whoever still uses the mount; the second detaches it
// lazily; the third gives up on them.
type session struct {
	server *fsnode.Server
	point  string
	log    *logOutput
	child  *daemon.Child

	stops     int          // SIGINT and SIGTERM so far
	cancel    func()       // ends the running unmount
	unmounted <-chan error // its result; nil when none runs
	users     string       // who the log said keeps the mount busy; for unmount alone
}

// run returns when the mount is gone, with what went wrong at its end. ready
// is called once the mount can be used.
func (s *session) run(ctx context.Context, signals <-chan os.Signal, ready func() error) error {
	ended := make(chan struct{})
	go func() {
		s.server.Wait()
		close(ended)
	}()
	if err := mountpoint.Announce(s.point); err != nil {
		s.log.logger.Warn("deltafs umount will not wait for this mount", "path", s.point, "err", err)
	}
	if err := ready(); err != nil {
		return errors.Join(err, s.server.Unmount(ctx))
	}
	var failure error
	for {
		select {
		case <-ended:
			if s.unmounted != nil {
				failure = errors.Join(failure, <-s.unmounted)
			}
			return failure
		case err := <-s.unmounted:
			s.unmounted, failure = nil, errors.Join(failure, err)
			if _, stillThere := mountpoint.Own(s.point); err != nil && stillThere == nil {
				return failure
			}
		case sig := <-signals:
			if err := s.handle(ctx, sig); err != nil {
				return err
			}
		}
	}
}

func (s *session) handle(ctx context.Context, sig os.Signal) error {
	switch sig {
	case syscall.SIGHUP:
		s.reopenLog()
	case syscall.SIGUSR1:
		s.dumpGoroutines()
	default:
		return s.stop(ctx)
	}
	return nil
}

func (s *session) stop(ctx context.Context) error {
	s.stops++
	switch s.stops {
	case 1:
		_ = daemon.Notify("STOPPING=1")
		s.log.logger.Info("unmounting", "path", s.point)
		s.begin(ctx, s.unmount)
	case 2:
		s.log.logger.Warn("detaching; the mount ends when its last user has gone", "path", s.point)
		s.begin(ctx, s.server.UnmountLazy)
	default:
		return fault.New(mountpoint.ErrBusy, "given up while in use by %s", mountpoint.Describe(mountpoint.Holders(s.point))).
			InFile(s.point)
	}
	return nil
}

// begin runs how in the background, after it has ended what ran before.
func (s *session) begin(ctx context.Context, how func(context.Context) error) {
	before, result := s.unmounted, make(chan error, 1)
	if before != nil {
		s.cancel()
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.unmounted = result
	go func() {
		var err error
		if before != nil {
			err = <-before
		}
		result <- errors.Join(err, how(ctx))
	}()
}

// unmount tries until the mount is gone, or ctx is done, or something else
// than its users is in the way. A try refuses writes while it lasts, so there
// is none as long as a user is in sight.
func (s *session) unmount(ctx context.Context) error {
	for {
		err := s.server.Unmount(ctx)
		if ctx.Err() == nil && !errors.Is(err, fsnode.ErrBusy) {
			return err
		}
		if !s.waitForUsers(ctx) {
			return nil // a second signal took over
		}
	}
}

// waitForUsers returns when the last user that can be seen has gone, or after a
// while if none can; false when ctx is done.
func (s *session) waitForUsers(ctx context.Context) bool {
	users := mountpoint.Holders(s.point)
	for ctx.Err() == nil {
		if who := mountpoint.Describe(users); who != s.users {
			s.users = who
			s.log.logger.Warn("mount is busy; waiting (a second signal detaches it)", "path", s.point, "users", who)
		}
		select {
		case <-ctx.Done():
		case <-time.After(busyPoll):
		}
		if users = mountpoint.Holders(s.point); len(users) == 0 && ctx.Err() == nil {
			return true
		}
	}
	return false
}

func (s *session) reopenLog() {
	if err := s.log.reopen(); err != nil {
		s.log.logger.Error("log file cannot be opened again", "path", s.log.path, "err", err)
		return
	}
	if err := s.child.Stderr(s.log.file); err != nil {
		s.log.logger.Error("standard error does not follow the log file", "err", err)
	}
	s.log.logger.Info("log file opened again")
}

func (s *session) dumpGoroutines() {
	var stacks bytes.Buffer
	const readable = 2 // the format of an unrecovered panic
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, readable)
	s.log.logger.Info("goroutines", "stacks", stacks.String())
}
