package sql

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// spillPrefix begins the names of directories for what does not fit into memory.
const spillPrefix = "deltafs-sql-"

// spill is such a directory. It is locked as long as its process lives.
type spill struct {
	path string
	lock *os.File
}

// newSpill makes a directory, and removes those of processes that were killed.
func newSpill(in string) (*spill, error) {
	// It gets a name under which others look for it when it is locked.
	path, err := os.MkdirTemp(in, ".new-"+spillPrefix)
	if err != nil {
		return nil, err
	}
	s := &spill{path: path}
	if s.lock, err = lockDir(path); err == nil {
		final := filepath.Join(in, strings.TrimPrefix(filepath.Base(path), ".new-"))
		if err = os.Rename(path, final); err == nil {
			s.path = final
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	sweep(in)
	return s, nil
}

// lockDir locks a directory that nobody else has locked.
func lockDir(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}

// sweep removes what nobody has locked.
func sweep(in string) {
	left, err := filepath.Glob(filepath.Join(in, spillPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		if lock, err := lockDir(path); err == nil {
			_ = os.RemoveAll(path) // it may be another user's
			lock.Close()
		}
	}
}

// remove removes the directory with all that is in it.
func (s *spill) remove() error {
	if s == nil {
		return nil
	}
	err := os.RemoveAll(s.path)
	if s.lock != nil {
		s.lock.Close()
	}
	return err
}
