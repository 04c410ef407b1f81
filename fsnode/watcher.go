package fsnode

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/snapshot"
)

// watcher hears from the kernel, through one inotify descriptor for the whole
// mount, when the logs of its tables change.
//
// The kernel queues an event before the system call that caused it returns. So
// who empties the queue, and finds that nothing was heard of a table, knows
// that its log is as it was, without touching it.
type watcher struct {
	log *slog.Logger
	// addWatch is inotify_add_watch(2).
	addWatch func(fd int, path string, mask uint32) (int, error)

	// mu is held while events are read and handed on, so that who finds the
	// queue empty has seen the effect of everything that was in it.
	mu      sync.Mutex
	file    *os.File // nil without inotify, and after the end
	fd      int
	byWD    map[int32][]*table
	byTable map[*table][]int32
	removed int // watches removed so far
	buf     [64 << 10]byte
	warned  bool
}

const (
	// logEvents tell that a commit came, was completed, or went.
	logEvents = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_DELETE | unix.IN_MOVED_FROM
	// selfEvents tell that what is watched is not at its path any more.
	selfEvents = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	// lostEvents are those after which nothing more is heard, or only of
	// another place.
	lostEvents = selfEvents | unix.IN_UNMOUNT | unix.IN_IGNORED
)

// newWatcher opens the descriptor. Without one every table is probed.
func newWatcher(log *slog.Logger) *watcher {
	w := &watcher{log: log, addWatch: unix.InotifyAddWatch, byWD: map[int32][]*table{}, byTable: map[*table][]int32{}}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		w.warn(err)
		return w
	}
	w.fd, w.file = fd, os.NewFile(uintptr(fd), "inotify")
	return w
}

// warn tells once that tables have to be probed.
func (w *watcher) warn(err error) {
	if w.warned {
		return
	}
	w.warned = true
	w.log.Warn("no more events of file systems can be had; tables in use are probed for commits instead",
		"op", "watch", "err", err, "hint", "raise fs.inotify.max_user_watches or fs.inotify.max_user_instances")
}

// run hands events on until close.
func (w *watcher) run() {
	w.mu.Lock()
	file := w.file
	w.mu.Unlock()
	if file == nil {
		return
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	// Not done yet, so the runtime waits for more and calls again.
	_ = conn.Read(func(uintptr) bool {
		w.drain()
		return false
	})
}

func (w *watcher) close() {
	w.mu.Lock()
	file := w.file
	w.file = nil
	w.mu.Unlock()
	if file != nil {
		file.Close() // waits for run, which may want the lock
	}
}

// add watches the table's log and reports whether every change of it from now
// on will be heard of: on a network file system only those of this machine are.
// The table's directory is watched for being moved away with the log in it.
func (w *watcher) add(t *table) bool {
	log := filepath.Join(t.source, logDir)
	w.mu.Lock()
	_, watched := w.byTable[t]
	w.mu.Unlock()
	if !watched {
		if !w.watch(t, log, logEvents|selfEvents|unix.IN_DONT_FOLLOW) {
			return false
		}
		if !w.watch(t, t.source, selfEvents) {
			w.remove(t)
			return false
		}
	}
	return isLocal(log)
}

// watch adds one watch. The lock is not held meanwhile: a file system that does
// not answer must not stop those who drain. What is told of the new watch before
// it is known here happened before the caller looks at the log.
func (w *watcher) watch(t *table, path string, mask uint32) bool {
	for {
		w.mu.Lock()
		open, removed := w.file != nil, w.removed
		w.mu.Unlock()
		if !open {
			return false
		}
		n, err := w.addWatch(w.fd, path, mask|unix.IN_ONLYDIR|unix.IN_MASK_ADD)
		w.mu.Lock()
		switch {
		case err != nil:
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.ENOMEM) {
				w.warn(err)
			}
		case w.removed == removed:
			wd := int32(n)
			w.byWD[wd] = append(w.byWD[wd], t)
			w.byTable[t] = append(w.byTable[t], wd)
		default: // it may be this one that was removed
			w.mu.Unlock()
			continue
		}
		w.mu.Unlock()
		return err == nil
	}
}

// remove ends the watching of a table.
func (w *watcher) remove(t *table) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(t)
}

// drop is remove with w.mu held. A directory may be that of several tables,
// through bind mounts.
func (w *watcher) drop(t *table) {
	for _, wd := range w.byTable[t] {
		others := slices.DeleteFunc(w.byWD[wd], func(o *table) bool { return o == t })
		if len(others) > 0 {
			w.byWD[wd] = others
			continue
		}
		delete(w.byWD, wd)
		if w.file != nil {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // gone with its directory, perhaps
			w.removed++
		}
	}
	delete(w.byTable, t)
}

// drain hands on all events that are queued.
func (w *watcher) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.file != nil {
		n, err := unix.Read(w.fd, w.buf[:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		w.dispatch(w.buf[:n])
	}
}

// dispatch hands on the events in a buffer; w.mu is held.
func (w *watcher) dispatch(buf []byte) {
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask := binary.NativeEndian.Uint32(buf[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		name := unix.ByteSliceToString(buf[unix.SizeofInotifyEvent:end])
		buf = buf[end:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			for t := range w.byTable {
				t.heard(unknownCommit)
			}
		case mask&lostEvents != 0:
			for _, t := range slices.Clone(w.byWD[wd]) {
				w.drop(t)
				t.deaf()
			}
		default:
			// What else lies in a log says nothing that a commit does not.
			if v, ok := snapshot.CommitVersion(name); ok {
				for _, t := range w.byWD[wd] {
					t.heard(v)
				}
			}
		}
	}
}
