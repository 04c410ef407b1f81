package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deltafs/deltafs/internal/fault"
)

// ErrNotEmpty: the directory to export to holds something.
var ErrNotEmpty = errors.New("directory is not empty")

// Exported is what an export has written.
type Exported struct {
	Files, Bytes int64
}

// exportDir holds the files of an export, in the directory exported to, until
// all are complete.
const exportDir = ".deltafs-export"

// Export writes the version's files to a directory, as a mount shows them: the
// same names, bytes and modification times. The directory is made, or must be
// empty. Its files appear when all are complete; if something fails, nothing is
// left. progress is called after each file.
func (s *Snapshot) Export(ctx context.Context, dir string, progress func(Exported)) (Exported, error) {
	var done Exported
	made, err := emptyDir(dir)
	if err != nil {
		return done, err
	}
	hidden := filepath.Join(dir, exportDir)
	err = os.Mkdir(hidden, 0o777)
	if err == nil {
		for f, ferr := range s.Files(ctx) {
			n := int64(0)
			if err = ferr; err == nil {
				n, err = s.exportFile(ctx, f, hidden)
			}
			if err != nil {
				break
			}
			done.Files++
			done.Bytes += n
			progress(done)
		}
	}
	if err == nil {
		err = moveUp(hidden, dir)
	}
	if err == nil {
		return done, nil
	}
	err = errors.Join(err, os.RemoveAll(hidden))
	if made {
		_ = os.Remove(dir) // it may have been used meanwhile
	}
	return Exported{}, s.rowFault(err)
}

// emptyDir makes the directory unless it is there and empty, and reports whether
// it had to.
func emptyDir(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, os.MkdirAll(dir, 0o777)
	case err != nil:
		return false, err
	case len(entries) == 0:
		return false, nil
	}
	hint := "name a new directory"
	if entries[0].Name() == exportDir {
		hint = "an export into it was interrupted: remove it, or name a new directory"
	}
	return false, fault.New(ErrNotEmpty, "the directory is not empty").InFile(dir).WithHint("%s", hint)
}

// exportFile writes a file below a directory.
func (s *Snapshot) exportFile(ctx context.Context, f File, dir string) (int64, error) {
	r, err := s.table.Open(ctx, f)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	path := filepath.Join(dir, filepath.FromSlash(f.Dir), f.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return 0, err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return 0, err
	}
	err = WriteContent(ctx, r, out)
	if err = errors.Join(err, out.Close()); err != nil {
		return 0, err
	}
	return r.Content().Size, os.Chtimes(path, f.ModTime, f.ModTime)
}

// moveUp moves what a directory holds to its parent, and removes it.
func moveUp(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(from)
}
