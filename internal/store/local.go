package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
)

// Local is a Store on a directory of a local or network file system.
//
// Names are resolved below the root by the kernel, one element at a time: a
// symbolic link that leads out of the root, or an absolute one, is
// [ErrOutside], and so is a ".." that climbs above it. Symbolic links within
// the root are followed, except by a recursive listing. The root itself may
// be reached through links; when the directory at the root's path is replaced
// by another, the new one is used from then on, except by Open: it goes on with
// the old one until something else was asked of the store. Who reads a file that
// was found in a listing wants the one of that directory.
type Local struct {
	path string
	// escape is the error by which os.Root refuses to leave the root.
	escape error
	calls  calls
	kept   keptDirs

	mu      sync.Mutex
	current *directory
	info    fs.FileInfo
}

// OpenLocal opens the directory at path, which may be relative.
func OpenLocal(path string) (*Local, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	l := &Local{path: abs, calls: systemCalls}
	root, err := l.root()
	if err != nil {
		return nil, err
	}
	_, err = root.Lstat("..")
	l.escape = cause(err)
	return l, nil
}

// Root is the absolute path of the root.
func (l *Local) Root() string { return l.path }

// Path is the absolute local path of a name, for messages and for child
// processes; nothing stops a link on it from leading out of the root.
func (l *Local) Path(name string) string { return filepath.Join(l.path, filepath.FromSlash(name)) }

// root returns the directory that is at the root's path now. One that was
// replaced is not closed, as it may be in use; the collector does it.
func (l *Local) root() (*os.Root, error) {
	now, err := os.Stat(l.path)
	if err != nil {
		return nil, l.fail("cannot open the root", ".", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil && os.SameFile(now, l.info) {
		return l.current.Root, nil
	}
	root, err := os.OpenRoot(l.path)
	if err != nil {
		return nil, l.fail("cannot open the root", ".", err)
	}
	d, err := openDir(root, "")
	root.Close()
	if err != nil {
		return nil, l.fail("cannot open the root", ".", err)
	}
	info, err := d.file.Stat()
	if err != nil {
		d.close()
		return nil, l.fail("cannot open the root", ".", err)
	}
	l.current, l.info = d, info
	return d.Root, nil
}

// lastRoot returns the root directory that was looked at last.
func (l *Local) lastRoot() (*directory, error) {
	l.mu.Lock()
	d := l.current
	l.mu.Unlock()
	if d != nil {
		return d, nil
	}
	if _, err := l.root(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil, l.fail("cannot open the root", ".", os.ErrClosed)
	}
	return l.current, nil
}

// Rest lets go of the directories that are kept open. They are opened again when
// they are used; whoever uses one at the moment is not disturbed.
func (l *Local) Rest() {
	l.kept.clear()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.info = nil, nil // the collector closes it
}

// Close releases the root directory, and others that are kept open. The store
// opens them again when they are used.
func (l *Local) Close() error {
	l.kept.clear()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return nil
	}
	l.current.close()
	l.current, l.info = nil, nil
	return nil
}

// fail wraps the cause of err in the sentinel that fits.
func (l *Local) fail(what, name string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	err = cause(err)
	var kind error
	switch {
	case l.escape != nil && errors.Is(err, l.escape):
		return fault.New(ErrOutside, "%s: the name or a link on its way leads out of the root", what).InFile(name)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENXIO):
		// ENXIO: what is there is a socket or a device without a driver.
		kind = ErrNotExist
	case errors.Is(err, fs.ErrExist):
		kind = ErrExist
	case errors.Is(err, syscall.EROFS):
		kind = ErrReadOnly
	}
	return fault.Wrap(kind, err, "%s", what).InFile(name)
}

// cause strips the operation and path that the os package adds.
func cause(err error) error {
	var p *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// infoOf describes a regular file.
func infoOf(name string, fi fs.FileInfo) Info {
	info := Info{Name: name, Size: fi.Size(), ModTime: fi.ModTime()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		info.Identity = Identity{st.Dev, st.Ino, uint64(st.Size), uint64(st.Mtim.Nano())}
		info.Changed = changed(st.Nlink, st.Ctim.Nano())
	}
	return info
}

// infoAt is infoOf for what the kernel answers.
func infoAt(name string, st *unix.Stat_t) Info {
	return Info{
		Name: name, Size: st.Size, ModTime: time.Unix(st.Mtim.Unix()),
		Identity: Identity{st.Dev, st.Ino, uint64(st.Size), uint64(st.Mtim.Nano())},
		Changed:  changed(st.Nlink, st.Ctim.Nano()),
	}
}

// changed is Info.Changed of a file with so many names.
func changed(names uint64, ctime int64) int64 {
	if names > 1 {
		return 0
	}
	return ctime
}

// MkdirAll makes a directory and its parents, durably.
func (l *Local) MkdirAll(name string) error {
	root, err := l.root()
	if err != nil {
		return err
	}
	return l.fail("cannot make the directory", name, mkdirAll(root, path.Clean(name)))
}

func mkdirAll(root *os.Root, name string) error {
	if fi, err := root.Stat(name); err == nil {
		if !fi.IsDir() {
			return syscall.ENOTDIR
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := path.Dir(name)
	if parent != "." {
		if err := mkdirAll(root, parent); err != nil {
			return err
		}
	}
	if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := root.Open(parent)
	if err != nil {
		return err
	}
	defer dir.Close()
	return syncDir(dir)
}

// CanWrite returns why the process may not make files in a directory ("" is
// the root), as far as its permissions tell.
func (l *Local) CanWrite(dir string) error {
	d, err := l.openDir(dir, false)
	if err == nil {
		defer d.close()
		err = unix.Faccessat(int(d.file.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	}
	return l.fail("cannot be written", path.Join(dir, "."), err)
}

// Chtimes sets the modification and access time of a file.
func (l *Local) Chtimes(name string, t time.Time) error {
	root, err := l.root()
	if err != nil {
		return err
	}
	return l.fail("cannot set the time", name, root.Chtimes(name, t, t))
}
