package fsnode

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/deltafs/deltafs/writer"
)

// lakeDir is a directory of a lake, above the tables. It shows the directories
// below it, those with a log as tables; it follows no symbolic link, because
// whoever may write to the lake could make the mount serve what only the
// mount's owner may read.
type lakeDir struct {
	fs *FS
	// rel is relative to the source, "" for the source itself.
	rel string
}

func (d *lakeDir) key() nodeKey           { return nodeKey{kind: kindLake, path: d.rel} }
func (d *lakeDir) kind() statKind         { return frozenDir }
func (d *lakeDir) attrTTL() time.Duration { return liveTTL }
func (d *lakeDir) local(name string) string {
	return filepath.Join(d.fs.opt.Source, filepath.FromSlash(d.rel), name)
}

func (d *lakeDir) stat(context.Context) (stat, error) {
	fi, err := os.Lstat(d.local(""))
	if err != nil {
		return stat{}, gone(err)
	}
	return stat{kind: frozenDir, mtime: fi.ModTime()}, nil
}

func (d *lakeDir) lookup(_ context.Context, _ writer.Caller, name string) (child, error) {
	if hiddenInLake(name) {
		return child{}, errNotFound
	}
	fi, err := os.Lstat(d.local(name))
	if err != nil || !fi.IsDir() {
		d.fs.dropTable(path.Join(d.rel, name))
		if err == nil {
			err = errNotFound
		}
		return child{}, gone(err)
	}
	return d.child(name), nil
}

// child decides what a directory is; that may change while it is mounted. The
// path of every file goes through it, so the kernel may keep it for a while.
func (d *lakeDir) child(name string) child {
	rel := path.Join(d.rel, name)
	if isTable(d.local(name)) {
		return child{name, &tableDir{d.fs.table(rel)}, liveTTL}
	}
	d.fs.dropTable(rel)
	return child{name, &lakeDir{d.fs, rel}, liveTTL}
}

func (d *lakeDir) list(context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		entries, err := os.ReadDir(d.local(""))
		if err != nil {
			yield(child{}, gone(err))
			return
		}
		for _, e := range entries {
			if e.IsDir() && !hiddenInLake(e.Name()) && !yield(d.child(e.Name()), nil) {
				return
			}
		}
	}
}

// hiddenInLake keeps back what is no data: version control, trash, caches.
func hiddenInLake(name string) bool { return strings.HasPrefix(name, ".") }

// gone turns the operating system's "not found" into ours.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNotFound
	}
	return err
}
