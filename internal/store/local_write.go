package store

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
)

// PutIfAbsent implements Store: the data is written to a hidden temporary
// file beside the name, made durable, and linked to the name, which the file
// system does at most once. Missing directories are made. An error before the
// link is Unsure too; reading back then finds nothing.
func (l *Local) PutIfAbsent(ctx context.Context, name string, data []byte) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Unsure, err
	}
	d, base, err := l.openParent(name, true)
	if err != nil {
		return Unsure, l.fail("cannot create", name, err)
	}
	defer d.close()
	temp, err := writeTemp(d, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	if err != nil {
		return Unsure, l.fail("cannot create", name, err)
	}
	outcome, err := l.place(d, temp, base)
	if outcome == Won {
		if err = l.calls.syncDir(d.file); err != nil {
			outcome = Unsure
		}
	}
	d.Remove(temp)
	return outcome, l.fail("cannot create", name, err)
}

// Put implements Store, by renaming a durable temporary file over the name.
func (l *Local) Put(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d, base, err := l.openParent(name, true)
	if err != nil {
		return l.fail("cannot write", name, err)
	}
	defer d.close()
	temp, err := writeTemp(d, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	if err != nil {
		return l.fail("cannot write", name, err)
	}
	if err := d.Rename(temp, base); err != nil {
		d.Remove(temp)
		return l.fail("cannot write", name, err)
	}
	return l.fail("cannot write", name, l.calls.syncDir(d.file))
}

// Delete implements Store. A directory is no object and stays.
func (l *Local) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d, base, err := l.openParent(name, false)
	if gone(err) {
		return nil
	}
	if err != nil {
		return l.fail("cannot delete", name, err)
	}
	defer d.close()
	if err := unix.Unlinkat(int(d.file.Fd()), base, 0); err != nil && !gone(err) {
		return l.fail("cannot delete", name, err)
	}
	return nil
}

// place gives the temporary file the name base unless it is taken. Won and
// Lost come without an error.
func (l *Local) place(d *directory, temp, base string) (Outcome, error) {
	err := l.calls.link(d, temp, base)
	if err == nil {
		return Won, nil
	}
	if errors.Is(err, fs.ErrExist) || !noLinks(err) {
		return afterLink(d, temp, base, err)
	}
	err = l.calls.renameNoReplace(d, temp, base)
	switch {
	case err == nil:
		return Won, nil
	case errors.Is(err, fs.ErrExist):
		return Lost, nil
	case errors.Is(err, unix.EINVAL), noLinks(err):
		return Unsure, fault.Wrap(ErrReadOnly, cause(err), "the file system has neither hard links nor an exclusive rename").
			WithHint("commits need one of the two; mount a file system that has it")
	}
	return Unsure, err
}

// noLinks says that the file system refuses this link for good, as one
// without hard links does.
func noLinks(err error) bool {
	for _, e := range []error{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EXDEV, unix.EMLINK} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// afterLink finds out what a failed link did. A network file system that
// repeats a request whose answer was lost reports EEXIST, or an error, for a
// link that it made: if both names are one file, we won. An EEXIST is
// believed otherwise; any other error leaves us unsure.
func afterLink(d *directory, temp, base string, linkErr error) (Outcome, error) {
	ours, err := d.Lstat(temp)
	if err != nil {
		return Unsure, linkErr
	}
	theirs, err := d.Lstat(base)
	switch {
	case err == nil && os.SameFile(ours, theirs):
		return Won, nil
	case errors.Is(linkErr, fs.ErrExist):
		return Lost, nil
	}
	return Unsure, linkErr
}

// writeTemp makes a durable temporary file in d and returns its name, which
// starts with a dot so that readers and VACUUM pass over it.
func writeTemp(d *directory, write func(*os.File) error) (string, error) {
	temp := ".deltafs-" + rand.Text() + ".tmp"
	f, err := d.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		d.Remove(temp)
		return "", err
	}
	return temp, nil
}
