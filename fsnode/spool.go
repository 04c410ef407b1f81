package fsnode

import (
	"container/list"
	"context"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// spoolBytes bounds the generated files that are kept and not open.
const spoolBytes = 1 << 30

// spool keeps generated files that may be too large for memory: on disk,
// without a name, so that nothing of them is left when the process ends. A file
// is made when somebody first asks for it, by one at a time, and made again
// after it had to go; so it must come out the same every time.
type spool struct {
	// dirs are where the files may lie; the first that works is used.
	dirs  []string
	limit int64

	mu    sync.Mutex
	byKey map[nodeKey]*spooled
	// order has what is complete, the file used last in front; size sums it up.
	order list.List
	size  int64
}

// spooled is a file of the spool.
type spooled struct {
	key nodeKey
	// turn is held by whoever makes the file, and then by whoever asks for it
	// for a moment. file and size are set once.
	turn chan struct{}
	file *os.File
	size int64
	// refs and place are under spool.mu.
	refs  int
	place *list.Element
}

// newSpool makes a spool in one of the directories, "" being none.
func newSpool(dirs ...string) *spool {
	return &spool{dirs: dirs, limit: spoolBytes, byKey: map[nodeKey]*spooled{}}
}

// acquire returns the file of the key, made if need be. The caller gives it back
// with release.
func (s *spool) acquire(ctx context.Context, key nodeKey, make func(context.Context, *os.File) error) (*spooled, error) {
	e := s.entry(key)
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		s.release(e)
		return nil, ctx.Err()
	}
	defer func() { <-e.turn }()
	if e.file == nil {
		file, size, err := s.make(ctx, make)
		if err != nil {
			s.release(e)
			return nil, err
		}
		e.file, e.size = file, size
	}
	s.touch(e)
	return e, nil
}

// entry counts one use of the file of a key.
func (s *spool) entry(key nodeKey) *spooled {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byKey[key]
	if !ok {
		e = &spooled{key: key, turn: make(chan struct{}, 1)}
		s.byKey[key] = e
	}
	e.refs++
	return e
}

// make makes a file without a name and fills it.
func (s *spool) make(ctx context.Context, fill func(context.Context, *os.File) error) (*os.File, int64, error) {
	file, err := s.temp()
	if err != nil {
		return nil, 0, err
	}
	err = fill(ctx, file)
	var info os.FileInfo
	if err == nil {
		info, err = file.Stat()
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// temp opens a file without a name.
func (s *spool) temp() (*os.File, error) {
	var errs []error
	for _, dir := range s.dirs {
		if dir == "" {
			continue
		}
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return os.NewFile(uintptr(fd), dir), nil
		}
		file, err := os.CreateTemp(dir, ".deltafs-*") // the file system may not know O_TMPFILE
		if err == nil {
			return file, os.Remove(file.Name())
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// touch notes that a complete file was used, and makes room.
func (s *spool) touch(e *spooled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[e.key] != e {
		return // it was forgotten meanwhile
	}
	if e.place == nil {
		e.place = s.order.PushFront(e)
		s.size += e.size
	} else {
		s.order.MoveToFront(e.place)
	}
	s.trim()
}

// release gives back what acquire returned.
func (s *spool) release(e *spooled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.refs--
	switch {
	case e.refs > 0:
	case e.place == nil: // never complete, or forgotten
		s.drop(e)
	default:
		s.trim()
	}
}

// trim deletes files that nobody has open until what is left is no more than
// the limit; s.mu is held.
func (s *spool) trim() {
	for at := s.order.Back(); at != nil && s.size > s.limit; {
		e := at.Value.(*spooled)
		at = at.Prev()
		if e.refs == 0 {
			s.forget(e)
			s.drop(e)
		}
	}
}

// forget takes a complete file out of those that are kept; s.mu is held.
func (s *spool) forget(e *spooled) {
	s.order.Remove(e.place)
	s.size -= e.size
	e.place = nil
}

// drop deletes a file that nobody has open; s.mu is held.
func (s *spool) drop(e *spooled) {
	if s.byKey[e.key] == e {
		delete(s.byKey, e.key)
	}
	if e.file != nil {
		e.file.Close()
	}
}

// clear forgets the files of an incarnation; those that are open go when they
// are closed.
func (s *spool) clear(inc *incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.byKey {
		if key.inc != inc || e.place == nil {
			continue
		}
		s.forget(e)
		delete(s.byKey, key)
		if e.refs == 0 {
			s.drop(e)
		}
	}
}
