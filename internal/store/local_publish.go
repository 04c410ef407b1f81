package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// Publish implements Store by a hard link to the staged file, or by a durable
// copy where they are on different file systems. Missing directories are made.
// The file's modification time is set to now first: VACUUM deletes unreferenced
// files by age, and a file may have been staged long ago. The time need not be
// durable, for a VACUUM that began before a power failure does not survive it.
// Publishing the same file under the same name again is no error, so a failed
// call can be repeated.
func (l *Local) Publish(ctx context.Context, staged *os.File, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d, base, err := l.openParent(name, true)
	if err != nil {
		return l.fail("cannot publish", name, err)
	}
	defer d.close()
	if err := touch(staged); err != nil {
		return l.fail("cannot set the time of the staged file", name, err)
	}
	err = l.calls.linkFile(d, staged, base)
	switch {
	case errors.Is(err, fs.ErrExist):
		if d.means(base, staged) {
			err = nil // a request was repeated
		}
	case errors.Is(err, fs.ErrNotExist) || noLinks(err):
		err = l.publishCopy(ctx, d, staged, base)
	}
	return l.fail("cannot publish", name, err)
}

// publishCopy places a durable copy of the staged file.
func (l *Local) publishCopy(ctx context.Context, d *directory, staged *os.File, base string) error {
	dr, err := l.draft(d, func(f *os.File) error {
		_, err := io.Copy(f, &contextReader{ctx: ctx, r: io.NewSectionReader(staged, 0, 1<<63-1)})
		return err
	})
	if err != nil {
		return err
	}
	defer dr.discard()
	outcome, err := l.place(dr, base)
	if outcome == Lost {
		return fs.ErrExist
	}
	return err
}

// contextReader stops reading when its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// touch sets the file's times to the file system's now.
func touch(f *os.File) error {
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	return unix.UtimesNanoAt(unix.AT_FDCWD, procPath(f), now, 0)
}

// procPath is a path to the opened file itself, whatever its names.
func procPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// settle makes published names durable: each directory that holds one, once.
func (l *Local) settle(names []string) error {
	var dirs []string
	for _, name := range names {
		dir, _ := path.Split(name)
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		d, err := l.openDir(dir, false)
		if err == nil {
			err = l.calls.syncDir(d.file)
			d.close()
		}
		if err != nil {
			return l.fail("cannot make what was published durable", dir, err)
		}
	}
	return nil
}
