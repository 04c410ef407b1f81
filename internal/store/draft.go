package store

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
)

// localDraft is a draft that is placed later. It keeps its directory open.
type localDraft struct {
	store *Local
	*draft
}

// Draft implements Store where a file without a name can be made: with one, the
// log would show what may never come to be.
func (l *Local) Draft(ctx context.Context, name string, data []byte, prior ...string) (Draft, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, _, err := l.openParent(name, true)
	if err != nil {
		return nil, l.fail("cannot create", name, err)
	}
	dr, err := l.draftAfter(prior, func() (*draft, error) {
		f, err := l.calls.openUnnamed(d)
		if err != nil {
			return nil, err
		}
		return (&draft{d: d, file: f}).fill(writeAll(data))
	})
	if err != nil {
		d.close()
		return nil, l.fail("cannot create", name, err)
	}
	return &localDraft{l, dr}, nil
}

// Place implements Draft. The directory may have been replaced since.
func (p *localDraft) Place(ctx context.Context, name string) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Unsure, err
	}
	d, base, err := p.store.openParent(name, false)
	if err != nil {
		return Unsure, p.store.fail("cannot create", name, err)
	}
	defer d.close()
	if !d.is(p.d) {
		return Unsure, fault.New(ErrNotExist, "the directory was replaced by another").InFile(name)
	}
	outcome, err := p.store.placeDurably(p.draft, base)
	return outcome, p.store.fail("cannot create", name, err)
}

// Discard implements Draft.
func (p *localDraft) Discard() {
	p.draft.discard()
	p.d.close()
}

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

func tempName() string { return ".deltafs-" + rand.Text() + ".tmp" }

func namedDraft(d *directory, write func(*os.File) error) (*draft, error) {
	temp := tempName()
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

// name gives a draft without a name a temporary one.
func (l *Local) name(dr *draft) error {
	if dr.temp != "" {
		return nil
	}
	temp := tempName()
	err := l.calls.linkFile(dr.d, dr.file, temp)
	switch {
	case err == nil:
		dr.temp = temp
	case dr.unlinkable(err):
		err = dr.giveName()
	}
	return err
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
