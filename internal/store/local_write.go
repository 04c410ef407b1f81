package store

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
)

// PutIfAbsent implements Store: the data is written to a draft beside the
// name, made durable, and linked to the name, which the file system does at
// most once. Missing directories are made. An error before the link is Unsure
// too; reading back then finds nothing.
func (l *Local) PutIfAbsent(ctx context.Context, name string, data []byte, prior ...string) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Unsure, err
	}
	d, base, err := l.openParent(name, true)
	if err != nil {
		return Unsure, l.fail("cannot create", name, err)
	}
	defer d.close()
	dr, err := l.draftAfter(prior, func() (*draft, error) { return l.draft(d, writeAll(data)) })
	if err != nil {
		return Unsure, l.fail("cannot create", name, err)
	}
	defer dr.discard()
	outcome, err := l.placeDurably(dr, base)
	return outcome, l.fail("cannot create", name, err)
}

// draftAfter makes a draft, and prior names durable. It does so side by side,
// which a journal does in one go.
func (l *Local) draftAfter(prior []string, write func() (*draft, error)) (*draft, error) {
	if len(prior) == 0 {
		return write()
	}
	settled := newResult(func() error { return l.settle(prior) })
	dr, err := write()
	if err = errors.Join(err, <-settled); err != nil && dr != nil {
		dr.discard()
		dr = nil
	}
	return dr, err
}

// newResult calls fn and sends what it returns.
func newResult(fn func() error) <-chan error {
	out := make(chan error, 1)
	go func() { out <- fn() }()
	return out
}

// placeDurably gives a draft its name.
func (l *Local) placeDurably(dr *draft, base string) (Outcome, error) {
	outcome, err := l.place(dr, base)
	if outcome == Won {
		if err = l.calls.syncDir(dr.d.file); err != nil {
			outcome = Unsure
		}
	}
	return outcome, err
}

// Put implements Store, by renaming a durable temporary file over the name. It
// has a name only when it is complete, where the file system can: a process
// that is killed while it writes leaves nothing behind.
func (l *Local) Put(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d, base, err := l.openParent(name, true)
	if err != nil {
		return l.fail("cannot write", name, err)
	}
	defer d.close()
	dr, err := l.draft(d, writeAll(data))
	if err != nil {
		return l.fail("cannot write", name, err)
	}
	defer dr.discard()
	if err := l.name(dr); err != nil {
		return l.fail("cannot write", name, err)
	}
	if err := d.Rename(dr.temp, base); err != nil {
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

func writeAll(data []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(data)
		return err
	}
}

// place gives the draft the name base unless it is taken. Won and Lost come
// without an error.
func (l *Local) place(dr *draft, base string) (Outcome, error) {
	err := l.link(dr, base)
	if err == nil {
		return Won, nil
	}
	if errors.Is(err, fs.ErrExist) || !dr.unlinkable(err) {
		return dr.afterLink(base, err)
	}
	if dr.temp == "" {
		if err := dr.giveName(); err != nil {
			return Unsure, err
		}
		return l.place(dr, base)
	}
	err = l.calls.renameNoReplace(dr.d, dr.temp, base)
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
// link that it made: if the name means our draft, we won. An EEXIST is believed
// otherwise; any other error leaves us unsure.
func (dr *draft) afterLink(base string, linkErr error) (Outcome, error) {
	switch {
	case dr.d.means(base, dr.file):
		return Won, nil
	case errors.Is(linkErr, fs.ErrExist):
		return Lost, nil
	}
	return Unsure, linkErr
}
