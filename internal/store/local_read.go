package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
)

// Head implements Store. What is no regular file is ErrNotExist.
func (l *Local) Head(ctx context.Context, name string) (Info, error) {
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	if info, ok, err := l.headKept(name); ok {
		return info, err
	}
	root, err := l.root()
	if err != nil {
		return Info{}, err
	}
	fi, err := root.Stat(name)
	if err != nil {
		return Info{}, l.fail("cannot stat", name, err)
	}
	if err := regular(name, fi); err != nil {
		return Info{}, err
	}
	return infoOf(name, fi), nil
}

// Open implements Store. What is no regular file is ErrNotExist, and a named
// pipe without a writer is refused without waiting for one.
func (l *Local) Open(ctx context.Context, name string) (Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	root, err := l.lastRoot()
	if err != nil {
		return nil, err
	}
	file, err := l.openBelow(root, name)
	if err != nil {
		return nil, l.fail("cannot open", name, err)
	}
	var st unix.Stat_t
	err = unix.Fstat(int(file.Fd()), &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		var fi fs.FileInfo
		if fi, err = file.Stat(); err == nil {
			err = regular(name, fi)
		}
	}
	if err != nil {
		file.Close()
		return nil, l.fail("cannot open", name, err)
	}
	return &localObject{file: file, info: infoAt(name, &st)}, nil
}

// openBelow opens a file for reading in one call where the kernel can keep the
// path in the root by itself; an os.Root takes a call for every element of it.
func (l *Local) openBelow(root *directory, name string) (*os.File, error) {
	fd, err := -1, error(nil)
	held := root.held.Control(func(dir uintptr) { fd, err = l.calls.openBeneath(int(dir), name) })
	switch {
	case held != nil:
		return nil, held
	case errors.Is(err, syscall.EXDEV):
		return nil, l.escape
	case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EAGAIN):
		// An old kernel, a filter of system calls, or a rename beside a "..".
		return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// headKept is Head for a regular file, or a name that does not exist, in a
// directory that is kept open.
func (l *Local) headKept(name string) (info Info, ok bool, err error) {
	dir, base := path.Split(name)
	d := l.kept.find(l.path, dir)
	if d == nil {
		return Info{}, false, nil
	}
	defer d.close()
	var st unix.Stat_t
	err = unix.Fstatat(int(d.file.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return Info{}, true, l.fail("cannot stat", name, err)
	case err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG:
		return Info{}, false, nil
	}
	return infoAt(name, &st), true, nil
}

func regular(name string, fi fs.FileInfo) error {
	if fi.Mode().IsRegular() {
		return nil
	}
	return fault.New(ErrNotExist, "not a regular file but %s", describe(fi.Mode())).InFile(name)
}

func describe(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// localObject is an opened local file.
type localObject struct {
	file *os.File
	info Info
}

func (o *localObject) ReadAt(p []byte, off int64) (int, error) { return o.file.ReadAt(p, off) }
func (o *localObject) Close() error                            { return o.file.Close() }
func (o *localObject) Info() Info                              { return o.info }
func (o *localObject) File() *os.File                          { return o.file }
