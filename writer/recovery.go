package writer

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
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

// recoverMount takes over one mount, if it is dead.
func recoverMount(ctx context.Context, base *os.Root, id string, log logKeeper) (int, error) {
	dir, err := base.OpenRoot(mountsDir + "/" + id)
	if err != nil {
		return 0, nil // not a directory
	}
	defer dir.Close()
	lock, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if err := flock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return 0, nil // alive
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return 0, err
	}
	rejected := 0
	for _, e := range entries {
		if !isSlot(e.Name()) {
			continue
		}
		kept, err := recoverFile(ctx, base, dir, e.Name(), log)
		if err != nil {
			return rejected, err
		}
		if kept {
			rejected++
		}
	}
	for _, e := range entries {
		if !isSlot(e.Name()) && e.Name() != lockFile {
			dir.Remove(e.Name())
		}
	}
	removeMount(dir, base, id)
	return rejected, nil
}

// recoverFile decides about one staged file of a dead mount. The answer is
// the same however often it is asked, for recovery may be interrupted too.
func recoverFile(ctx context.Context, base, dir *os.Root, slot string, log logKeeper) (kept bool, err error) {
	info, err := dir.Stat(slot)
	if err != nil {
		return false, err
	}
	var m stagedMeta
	if text, err := dir.ReadFile(slot + metaSuffix); err != nil || json.Unmarshal(text, &m) != nil {
		m = stagedMeta{Name: "unnamed.parquet", State: stagedOpen}
	}
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
			return false, dir.Remove(slot)
		case !sure:
			r.Reason = "the mount ended while the file was committed, and the log no longer tells whether it was"
			r.Hint = "look for its rows in the table before you copy it again"
		default:
			if err := log.Unpublish(ctx, m.Object); err != nil {
				return false, err
			}
		}
	}
	if info.Size() == 0 {
		return false, dir.Remove(slot)
	}
	_, err = moveToRejected(base, dir, slot, r)
	return err == nil, err
}

// joinPath joins a directory ("" = the root) and a name.
func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
