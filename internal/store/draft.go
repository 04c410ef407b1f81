package store

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// draft is a durable file in d that waits for its name. Where the file system
// can, it has none until then, so that a process that is killed leaves nothing
// behind; else it has a temporary one, which starts with a dot so that readers
// and VACUUM pass over it.
type draft struct {
	d    *directory
	file *os.File
	// temp is the temporary name, "" without one.
	temp string
}

// draft makes a draft of what write writes.
func (l *Local) draft(d *directory, write func(*os.File) error) (*draft, error) {
	f, err := l.calls.openUnnamed(d)
	if err != nil {
		return namedDraft(d, write)
	}
	return (&draft{d: d, file: f}).fill(write)
}

func namedDraft(d *directory, write func(*os.File) error) (*draft, error) {
	temp := ".deltafs-" + rand.Text() + ".tmp"
	f, err := d.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return (&draft{d: d, file: f, temp: temp}).fill(write)
}

func (dr *draft) fill(write func(*os.File) error) (*draft, error) {
	err := write(dr.file)
	if err == nil {
		err = dr.file.Sync()
	}
	if err != nil {
		dr.discard()
		return nil, err
	}
	return dr, nil
}

// giveName exchanges a draft without a name for one that has a temporary one,
// for a file system that cannot link the former.
func (dr *draft) giveName() error {
	named, err := namedDraft(dr.d, func(f *os.File) error {
		_, err := io.Copy(f, io.NewSectionReader(dr.file, 0, 1<<63-1))
		return err
	})
	if err != nil {
		return err
	}
	dr.file.Close()
	*dr = *named
	return nil
}

// discard closes the draft and removes its temporary name.
func (dr *draft) discard() {
	dr.file.Close()
	if dr.temp != "" {
		dr.d.Remove(dr.temp)
	}
}

// link gives the draft the name base if that is free.
func (l *Local) link(dr *draft, base string) error {
	if dr.temp == "" {
		return l.calls.linkFile(dr.d, dr.file, base)
	}
	return l.calls.link(dr.d, dr.temp, base)
}

// means reports whether base in d is the opened file.
func (d *directory) means(base string, f *os.File) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	theirs, err := d.Lstat(base)
	return err == nil && os.SameFile(ours, theirs)
}

// openUnnamed opens a new file in d that has no name.
func openUnnamed(d *directory) (*os.File, error) {
	fd, err := unix.Openat(int(d.file.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "unnamed"), nil
}

// unlinkable says that the file system refuses to link this draft for good: as
// one without hard links does, or for want of /proc.
func (dr *draft) unlinkable(err error) bool {
	return noLinks(err) || dr.temp == "" && errors.Is(err, fs.ErrNotExist)
}
