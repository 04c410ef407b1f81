package writer

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// logKeeper answers for recovery whether the log holds a data file, or ever
// held it after a version. sure is false when the commits in question cannot
// be read any more.
type logKeeper interface {
	Holds(ctx context.Context, addPath string, since int64) (held, sure bool, err error)
	// Unpublish removes a data file from storage.
	Unpublish(ctx context.Context, object string) error
}

// recover takes over what dead mounts left: files that the log holds are
// committed, and every other one goes to the rejected files. A mount is dead
// when its lock can be taken. It returns how many files were rejected.
func (a *area) recover(ctx context.Context, log logKeeper) (int, error) {
	if _, err := os.Lstat(a.root + "/" + areaDir + "/" + mountsDir); err != nil {
		return 0, nil // nothing to do, and no trace of having looked
	}
	rejected := 0
	err := a.locked(false, func(base *os.Root) error {
		mounts, err := fs.ReadDir(base.FS(), mountsDir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, m := range mounts {
			n, err := recoverMount(ctx, base, m.Name(), log)
			if rejected += n; err != nil {
				return err
			}
		}
		return nil
	})
	return rejected, errors.Join(err, a.sweep())
}

// deadMount is the directory of a mount that is no more.
type deadMount struct {
	base, dir *os.Root // .deltafs, and the directory
	path      string   // of the directory in .deltafs
}

// recoverMount takes over one mount, if it is dead, and returns how many files
// were rejected.
func recoverMount(ctx context.Context, base *os.Root, id string, log logKeeper) (int, error) {
	d := deadMount{base: base, path: mountsDir + "/" + id}
	var err error
	if d.dir, err = base.OpenRoot(d.path); err != nil {
		return 0, nil //nolint:nilerr // not a directory, and none of ours
	}
	defer d.dir.Close()
	lock, err := d.dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if err := flock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return 0, nil //nolint:nilerr // alive
	}
	entries, err := fs.ReadDir(d.dir.FS(), ".")
	if err != nil {
		return 0, err
	}
	rejected := 0
	for _, e := range entries {
		if !isSlot(e.Name()) {
			continue
		}
		kept, err := d.recoverFile(ctx, e.Name(), log)
		if err != nil {
			return rejected, err
		}
		if kept {
			rejected++
		}
	}
	for _, e := range entries {
		if !isSlot(e.Name()) && e.Name() != lockFile {
			_ = d.dir.Remove(e.Name())
		}
	}
	removeMount(d.dir, base, id)
	return rejected, nil
}

// recoverFile decides about one staged file. The answer is the same however
// often it is asked, for recovery may be interrupted too.
func (d deadMount) recoverFile(ctx context.Context, slot string, log logKeeper) (kept bool, err error) {
	info, err := d.dir.Stat(slot)
	if err != nil {
		return false, err
	}
	m := d.meta(slot)
	r := rejection{
		Wanted: joinPath(m.Dir, m.Name), Time: time.Now(),
		Reason: "the mount ended before the file was committed",
		Hint:   "copy it again if its rows are wanted",
	}
	if m.State == stagedPublishing {
		held, sure, err := log.Holds(ctx, m.AddPath, m.Base)
		switch {
		case err != nil:
			return false, err
		case held:
			return false, d.dir.Remove(slot)
		case !sure:
			r.Reason = "the mount ended while the file was committed, and the log no longer tells whether it was"
			r.Hint = "look for its rows in the table before you copy it again"
		case isDataObject(m.Object):
			if err := log.Unpublish(ctx, m.Object); err != nil {
				return false, err
			}
		}
	}
	if info.Size() == 0 || isMarker(m.Name) {
		return false, d.dir.Remove(slot)
	}
	_, err = moveToRejected(d.base, d.path+"/"+slot, r)
	return err == nil, err
}

// isDataObject reports whether a recorded name can be a data file of ours, for
// nothing else may be deleted on the word of a file that lies about.
func isDataObject(object string) bool {
	dir, name := splitPath(object)
	return strings.HasPrefix(name, "part-") && isData(name) && dir != areaDir && !strings.HasPrefix(dir, "_delta_log")
}

// meta is what was recorded about a staged file.
func (d deadMount) meta(slot string) stagedMeta {
	var m stagedMeta
	text, err := d.dir.ReadFile(slot + metaSuffix)
	if err != nil || json.Unmarshal(text, &m) != nil || m.Name == "" {
		return stagedMeta{Name: "unnamed.parquet", State: stagedOpen}
	}
	return m
}

// joinPath joins a directory ("" = the root) and a name.
func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
