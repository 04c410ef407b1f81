package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// area is the hidden place in a table for files that are not committed:
//
//	.deltafs/lock                taken for moments, while directories come and go
//	.deltafs/mounts/<id>/lock    held by the live mount of that id
//	.deltafs/mounts/<id>/<slot>  a staged file
//	.deltafs/mounts/<id>/notes   what the staged files are for
//	.deltafs/rejected/<name>     a refused or interrupted file, .why-<name> says why
//
// VACUUM of every engine skips it, since its name starts with a dot. It is made
// at the first use, and removed when nothing is left in it.
type area struct {
	root string // the table, a local path

	mu    sync.Mutex
	dir   *os.Root // .deltafs/mounts/<id>; nil until the first use
	info  fs.FileInfo
	id    string
	lock  *os.File
	notes *notes
}

const (
	areaDir     = ".deltafs"
	mountsDir   = "mounts"
	rejectedDir = "rejected"
	lockFile    = "lock"
	// maxRaces is how often the directory may vanish under us.
	maxRaces = 1000
)

func newArea(root string) *area { return &area{root: root, id: uuid.NewString()} }

// locked calls fn with .deltafs open and its lock held. Without create it
// does nothing when there is no .deltafs. The lock is held for moments only:
// no one waits for a mount.
func (a *area) locked(create bool, fn func(base *os.Root) error) error {
	table, err := os.OpenRoot(a.root)
	if err != nil {
		return err
	}
	defer table.Close()
	for range maxRaces {
		if create {
			if err := table.Mkdir(areaDir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		base, err := table.OpenRoot(areaDir)
		if errors.Is(err, fs.ErrNotExist) {
			if create {
				continue // another mount has just removed it
			}
			return nil
		}
		if err != nil {
			return err
		}
		again, err := withLock(base, fn)
		base.Close()
		if !again {
			return err
		}
	}
	return fmt.Errorf("%s cannot be opened", areaDir)
}

// withLock takes the lock file in base and calls fn. again says that the
// directory was removed while we waited.
func withLock(base *os.Root, fn func(base *os.Root) error) (again bool, err error) {
	lock, err := base.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if err := flock(lock, unix.LOCK_EX); err != nil {
		return false, err
	}
	if !sameFile(base, lockFile, lock) {
		return true, nil
	}
	return false, fn(base)
}

// flock locks an open file, however often a signal interrupts it.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		var cause interface{ Temporary() bool }
		var held interface{ Timeout() bool }
		interrupted := errors.As(err, &cause) && cause.Temporary() && errors.As(err, &held) && !held.Timeout()
		if !interrupted {
			return err
		}
	}
}

// sameFile reports whether name still means the opened file.
func sameFile(dir *os.Root, name string, f *os.File) bool {
	now, err := dir.Stat(name)
	if err != nil {
		return false
	}
	opened, err := f.Stat()
	return err == nil && os.SameFile(now, opened)
}

// open makes the directory of this mount, once, and again when it was removed
// with the table. The one that is gone is not closed, as it may be in use; the
// collector does it.
func (a *area) open() (*os.Root, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir != nil && a.isThere() {
		return a.dir, nil
	}
	a.dir, a.lock, a.notes = nil, nil, nil
	err := a.locked(true, func(base *os.Root) error {
		path := mountsDir + "/" + a.id
		if err := base.MkdirAll(path, 0o777); err != nil {
			return err
		}
		dir, err := base.OpenRoot(path)
		if err != nil {
			return err
		}
		info, err := dir.Stat(".")
		if err != nil {
			dir.Close()
			return err
		}
		lock, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o666)
		if err == nil {
			err = flock(lock, unix.LOCK_EX|unix.LOCK_NB)
		}
		if err != nil {
			dir.Close()
			return err
		}
		a.dir, a.info, a.lock, a.notes = dir, info, lock, newNotes(dir)
		return nil
	})
	return a.dir, err
}

// isThere reports whether the directory of this mount still has its name; a.mu
// is held.
func (a *area) isThere() bool {
	now, err := os.Lstat(filepath.Join(a.root, areaDir, mountsDir, a.id))
	return err == nil && os.SameFile(now, a.info)
}

// opened is open, with the notes.
func (a *area) opened() (*os.Root, *notes, error) {
	dir, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return dir, a.notes, nil
}

// check returns ErrConflict when a staged file is not in the area any more. Its
// bytes were meant for a table that is gone, and must not get into another one
// at the same path.
func (a *area) check(n slot) error {
	dir, err := a.open()
	if err != nil {
		return err
	}
	_, err = dir.Lstat(string(n))
	return gone(err)
}

// gone turns a missing staged file into ErrConflict.
func gone(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fault.New(ErrConflict, "the table was deleted, and with it the bytes that were staged in it").
		WithHint("look at the table that is there now, and write the file again")
}

// create makes a staged file; base is a version that its commit will follow.
func (a *area) create(base int64, m stagedMeta) (slot, *os.File, error) {
	dir, notes, err := a.opened()
	if err != nil {
		return "", nil, err
	}
	n := newSlot(base)
	if err := notes.put(n, m); err != nil {
		notes.drop(n)
		return "", nil, err
	}
	f, err := dir.OpenFile(string(n), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		notes.drop(n)
		return "", nil, err
	}
	return n, f, nil
}

// adopt makes a staged file that is a second name of f, which must be on the
// same file system.
func (a *area) adopt(f *os.File, base int64, m stagedMeta) (slot, *os.File, error) {
	n, own, err := a.create(base, m)
	if err != nil {
		return "", nil, err
	}
	own.Close()
	dir, err := a.openDir(".")
	if err == nil {
		defer dir.Close()
		if err = a.dir.Remove(string(n)); err == nil {
			err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()),
				int(dir.Fd()), string(n), unix.AT_SYMLINK_FOLLOW)
		}
	}
	if err != nil {
		a.drop(n)
		return "", nil, err
	}
	own, err = a.reopen(n)
	return n, own, err
}

func (a *area) openDir(name string) (*os.File, error) {
	dir, err := a.open()
	if err != nil {
		return nil, err
	}
	return dir.Open(name)
}

// reopen opens a staged file again.
func (a *area) reopen(n slot) (*os.File, error) {
	dir, err := a.open()
	if err != nil {
		return nil, err
	}
	f, err := dir.OpenFile(string(n), os.O_RDWR, 0)
	return f, gone(err)
}

// note replaces what is recorded about a staged file.
func (a *area) note(n slot, m stagedMeta) error {
	if err := a.check(n); err != nil {
		return err
	}
	_, notes, err := a.opened()
	if err != nil {
		return err
	}
	return notes.put(n, m)
}

// announce records that the bytes of a staged file may be published as object
// from now on.
func (a *area) announce(n slot, m stagedMeta, object string) error {
	if !slices.Contains(m.objects(n.id()), object) {
		m.Object = object
	}
	return a.note(n, m)
}

// drop removes a staged file.
func (a *area) drop(n slot) {
	if n == "" {
		return
	}
	if dir, notes, err := a.opened(); err == nil {
		_ = dir.Remove(string(n))
		notes.drop(n)
	}
}

// close gives the area up and removes what is empty. What the mount still
// holds is left for recovery.
func (a *area) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir == nil {
		return nil
	}
	err := a.locked(false, func(base *os.Root) error {
		a.notes.close()
		removeMount(a.dir, base, a.id)
		return nil
	})
	err = errors.Join(err, a.lock.Close(), a.dir.Close(), a.sweep())
	a.dir, a.lock, a.notes = nil, nil, nil
	return err
}

// sweep removes the directories of .deltafs that are empty.
func (a *area) sweep() error {
	return a.locked(false, func(base *os.Root) error {
		_ = base.Remove(mountsDir)
		_ = base.Remove(rejectedDir)
		entries, err := fs.ReadDir(base.FS(), ".")
		if err != nil || len(entries) != 1 || entries[0].Name() != lockFile {
			return err
		}
		if err := base.Remove(lockFile); err != nil {
			return err
		}
		table, err := os.OpenRoot(a.root)
		if err != nil {
			return err
		}
		defer table.Close()
		return table.Remove(areaDir)
	})
}

// removeMount removes the directory of a mount if nothing of a user is left in
// it.
func removeMount(dir, base *os.Root, id string) {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return
	}
	own := []string{notesFile, notesFile + ".tmp", lockFile}
	for _, e := range entries {
		if !slices.Contains(own, e.Name()) {
			return
		}
	}
	for _, name := range own {
		_ = dir.Remove(name)
	}
	_ = base.Remove(mountsDir + "/" + id)
}

// writeFile creates or replaces a small file as a whole, durably.
func writeFile(dir *os.Root, name string, data []byte) error {
	temp := name + ".tmp"
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp)
		return err
	}
	return syncDir(dir)
}

func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
