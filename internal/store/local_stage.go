package store

import (
	"context"
	"os"
)

// Stage opens a new file without a name, for Publish to give it the name or one
// in the same directory: what is not published is gone when the file is
// closed, or the process killed. Where the file system has no such files, one
// is made that Publish has to copy.
func (l *Local) Stage(ctx context.Context, name string) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, _, err := l.openParent(name, false)
	if err != nil {
		return nil, l.fail("cannot stage", name, err)
	}
	defer d.close()
	f, err := l.calls.openUnnamed(d)
	if err == nil {
		return f, nil
	}
	temp := tempName()
	if f, err = d.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return nil, l.fail("cannot stage", name, err)
	}
	if err := d.Remove(temp); err != nil {
		f.Close()
		return nil, l.fail("cannot stage", name, err)
	}
	return f, nil
}
