package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
)

// directory is an opened directory of the store.
type directory struct {
	*os.Root
	// file is the same directory, for fsync and the *at calls; held keeps it open
	// meanwhile.
	file *os.File
	held syscall.RawConn

	// Of a kept one: its name, device and inode. kept.mu guards users, and that
	// it was dropped and is closed by the last of them.
	kept     *keptDirs
	name     string
	dev, ino uint64
	users    int
	dropped  bool
}

// openDir opens a directory by name, "" or with a slash at the end. The dot
// makes the kernel take the name for a directory and nothing else: opening a
// named pipe would wait.
func openDir(root *os.Root, name string) (*directory, error) {
	sub, err := root.OpenRoot(name + ".")
	if err != nil {
		return nil, err
	}
	file, err := sub.Open(".")
	if err != nil {
		sub.Close()
		return nil, err
	}
	held, err := file.SyscallConn()
	if err != nil {
		file.Close()
		sub.Close()
		return nil, err
	}
	return &directory{Root: sub, file: file, held: held}, nil
}

func (d *directory) close() {
	if d.kept != nil {
		d.kept.release(d)
		return
	}
	d.file.Close()
	d.Root.Close()
}

// is reports whether two are the same directory.
func (d *directory) is(other *directory) bool {
	if d == other {
		return true
	}
	a, err := d.file.Stat()
	if err != nil {
		return false
	}
	b, err := other.file.Stat()
	return err == nil && os.SameFile(a, b)
}

// openDir opens a directory that is worked in, making it if wanted, and keeps it
// open.
func (l *Local) openDir(name string, create bool) (*directory, error) {
	if d := l.kept.find(l.path, name); d != nil {
		return d, nil
	}
	root, err := l.root()
	if err != nil {
		return nil, err
	}
	d, err := openDir(root, name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = mkdirAll(root, path.Clean(name)); err == nil {
			d, err = openDir(root, name)
		}
	}
	if err == nil {
		l.kept.add(name, d)
	}
	return d, err
}

// openParent opens the directory that holds name, making it if wanted.
func (l *Local) openParent(name string, create bool) (*directory, string, error) {
	dir, base := path.Split(name)
	if base == "" || base == "." || base == ".." {
		return nil, "", fault.New(ErrOutside, "%q does not name a file", name).InFile(name)
	}
	d, err := l.openDir(dir, create)
	return d, base, err
}

// keptDirs are the directories that were worked in last: a commit works in the
// same two as the one before. A kept directory is used as long as its path leads
// to the same one, so that it does not matter by which links that goes.
type keptDirs struct {
	mu   sync.Mutex
	dirs []*directory // the most recently used one last
}

const maxKeptDirs = 4

// find returns the directory of this name in the root at a path, if it is kept.
func (k *keptDirs) find(root, name string) *directory {
	k.mu.Lock()
	i := slices.IndexFunc(k.dirs, func(d *directory) bool { return d.name == name })
	if i < 0 {
		k.mu.Unlock()
		return nil
	}
	d := k.dirs[i]
	d.users++
	k.dirs = append(slices.Delete(k.dirs, i, i+1), d)
	k.mu.Unlock()
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(root, name), &st); err == nil && st.Dev == d.dev && st.Ino == d.ino {
		return d
	}
	k.mu.Lock()
	k.drop(d)
	k.mu.Unlock()
	k.release(d)
	return nil
}

// add keeps a directory, which its caller uses, if it can be told from others.
func (k *keptDirs) add(name string, d *directory) {
	var st unix.Stat_t
	if unix.Fstat(int(d.file.Fd()), &st) != nil {
		return
	}
	d.kept, d.name, d.dev, d.ino, d.users = k, name, st.Dev, st.Ino, 1
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dirs = append(k.dirs, d)
	if len(k.dirs) > maxKeptDirs {
		k.drop(k.dirs[0])
	}
}

// drop keeps a directory no longer; k.mu is held.
func (k *keptDirs) drop(d *directory) {
	if d.dropped {
		return
	}
	d.dropped = true
	k.dirs = slices.DeleteFunc(k.dirs, func(other *directory) bool { return other == d })
	if d.users == 0 {
		d.file.Close()
		d.Root.Close()
	}
}

func (k *keptDirs) release(d *directory) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d.users--; d.users == 0 && d.dropped {
		d.file.Close()
		d.Root.Close()
	}
}

func (k *keptDirs) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.dirs) > 0 {
		k.drop(k.dirs[0])
	}
}
