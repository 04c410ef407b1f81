package store

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// calls are the system calls whose failures tests cannot bring about.
type calls struct {
	// openUnnamed opens a new file in d that has no name.
	openUnnamed func(d *directory) (*os.File, error)
	// link links temp to base, both in d, if base is free.
	link func(d *directory, temp, base string) error
	// renameNoReplace renames temp to base, both in d, if base is free.
	renameNoReplace func(d *directory, temp, base string) error
	// linkFile links an opened file to base in d, if base is free.
	linkFile func(d *directory, f *os.File, base string) error
	// syncDir makes the names in a directory durable.
	syncDir func(dir *os.File) error
	// readDir reads a whole directory, in no order.
	readDir func(dir *os.File) ([]fs.DirEntry, error)
	// openBeneath opens a file for reading whose path may not leave dir.
	openBeneath func(dir int, name string) (int, error)
	// lstat asks for the attributes of a name in d.
	lstat func(d *directory, name string, st *unix.Stat_t) error
}

var systemCalls = calls{
	openUnnamed: openUnnamed,
	link:        func(d *directory, temp, base string) error { return d.Link(temp, base) },
	renameNoReplace: func(d *directory, temp, base string) error {
		fd := int(d.file.Fd())
		return unix.Renameat2(fd, temp, fd, base, unix.RENAME_NOREPLACE)
	},
	linkFile: func(d *directory, f *os.File, base string) error {
		return unix.Linkat(unix.AT_FDCWD, procPath(f), int(d.file.Fd()), base, unix.AT_SYMLINK_FOLLOW)
	},
	syncDir:     syncDir,
	readDir:     readDir,
	openBeneath: openBeneath,
	lstat: func(d *directory, name string, st *unix.Stat_t) error {
		return unix.Fstatat(int(d.file.Fd()), name, st, unix.AT_SYMLINK_NOFOLLOW)
	},
}

// openBeneath does not wait for a writer of a named pipe. The descriptor is a
// blocking one, so that the runtime does not try to poll it.
func openBeneath(dir int, name string) (int, error) {
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// readDir reads a directory through another descriptor, for a file that was
// opened in an os.Root asks for the attributes of every entry.
func readDir(dir *os.File) ([]fs.DirEntry, error) {
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	again := os.NewFile(uintptr(fd), dir.Name())
	defer again.Close()
	return again.ReadDir(-1)
}

// syncDir makes the names in a directory durable, where the file system can:
// some network file systems answer EINVAL because names are durable at once.
func syncDir(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

var _ Store = (*Local)(nil)
