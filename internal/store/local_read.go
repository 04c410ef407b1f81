package store

import (
	"context"
	"io/fs"
	"os"
	"syscall"

	"github.com/deltafs/deltafs/internal/fault"
)

// Head implements Store. What is no regular file is ErrNotExist.
func (l *Local) Head(ctx context.Context, name string) (Info, error) {
	if err := ctx.Err(); err != nil {
		return Info{}, err
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
	root, err := l.root()
	if err != nil {
		return nil, err
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, l.fail("cannot open", name, err)
	}
	fi, err := file.Stat()
	if err == nil {
		err = regular(name, fi)
	}
	if err != nil {
		file.Close()
		return nil, l.fail("cannot open", name, err)
	}
	return &localObject{file: file, info: infoOf(name, fi)}, nil
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
