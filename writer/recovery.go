package writer

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// logKeeper answers for recovery what the log holds of a dead mount.
type logKeeper interface {
	// Committed returns which of the ids of staged files the log names in a
	// commit after the version. sure is false when some of those commits cannot
	// be read any more, so that an id may be missing that was there.
	Committed(ctx context.Context, since int64, ids map[string]bool) (found map[string]bool, sure bool, err error)
	// Unpublish removes a data file from storage, if it is there.
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
		dead, err := deadMounts(base)
		if err != nil {
			return err
		}
		defer func() {
			for _, d := range dead {
				d.close()
			}
		}()
		rejected, err = takeOver(ctx, dead, log)
		return err
	})
	return rejected, errors.Join(err, a.sweep())
}

// deadMount is the directory of a mount that is no more.
type deadMount struct {
	base, dir *os.Root // .deltafs, and the directory
	id        string
	lock      *os.File
	slots     []slot
	notes     map[slot]stagedMeta
}

func (d *deadMount) close() {
	d.lock.Close()
	d.dir.Close()
}

// deadMounts returns the dead mounts, locked.
func deadMounts(base *os.Root) ([]*deadMount, error) {
	mounts, err := fs.ReadDir(base.FS(), mountsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var dead []*deadMount
	for _, m := range mounts {
		d, err := openDead(base, m.Name())
		if err != nil {
			return dead, err
		}
		if d != nil {
			dead = append(dead, d)
		}
	}
	return dead, nil
}

// openDead opens the directory of a mount, nil if the mount is alive.
func openDead(base *os.Root, id string) (*deadMount, error) {
	dir, err := base.OpenRoot(mountsDir + "/" + id)
	if err != nil {
		return nil, nil //nolint:nilerr // not a directory, and none of ours
	}
	lock, err := dir.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		dir.Close()
		return nil, err
	}
	d := &deadMount{base: base, dir: dir, id: id, lock: lock}
	if err := flock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		d.close()
		return nil, nil //nolint:nilerr // alive
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		d.close()
		return nil, err
	}
	wanted := map[slot]bool{}
	for _, e := range entries {
		if isSlot(e.Name()) {
			d.slots = append(d.slots, slot(e.Name()))
			wanted[slot(e.Name())] = true
		}
	}
	d.notes = readNotes(dir, wanted)
	return d, nil
}

// takeOver decides about every staged file of the mounts, with one look at the
// log, and returns how many were rejected.
func takeOver(ctx context.Context, dead []*deadMount, log logKeeper) (int, error) {
	ids := map[string]bool{}
	since := int64(math.MaxInt64)
	for _, d := range dead {
		for _, s := range d.slots {
			base, id, _ := s.parse()
			ids[id], since = true, min(since, base)
		}
	}
	var committed map[string]bool
	sure := true
	if len(ids) > 0 {
		var err error
		if committed, sure, err = log.Committed(ctx, since, ids); err != nil {
			return 0, err
		}
	}
	rejected := 0
	for _, d := range dead {
		for _, s := range d.slots {
			if committed[s.id()] {
				if err := d.dir.Remove(string(s)); err != nil {
					return rejected, err
				}
				continue
			}
			kept, err := d.interrupted(ctx, s, sure, log)
			if err != nil {
				return rejected, err
			}
			if kept {
				rejected++
			}
		}
		removeMount(d.dir, d.base, d.id)
	}
	return rejected, nil
}

// interrupted moves a staged file that was not committed to the rejected ones,
// and takes its data file back. If the log no longer tells, that stays. The
// answer is the same however often it is asked, for recovery may be interrupted
// too.
func (d *deadMount) interrupted(ctx context.Context, s slot, sure bool, log logKeeper) (kept bool, err error) {
	info, err := d.dir.Lstat(string(s))
	if err != nil {
		return false, err
	}
	m, noted := d.notes[s]
	if !noted {
		m.Name = "unnamed.parquet"
	}
	r := rejection{
		Wanted: joinPath(m.Dir, m.Name), Time: time.Now(),
		Reason: "the mount ended before the file was committed",
		Hint:   "copy it again if its rows are wanted",
	}
	if !sure {
		r.Reason = "the mount ended before the file was committed, or while it was; the log no longer tells"
		r.Hint = "look for its rows in the table before you copy it again"
	} else {
		for _, object := range m.objects(s.id()) {
			if !isDataObject(object, s.id()) {
				continue
			}
			if err := log.Unpublish(ctx, object); err != nil {
				return false, err
			}
		}
	}
	if info.Size() == 0 || isMarker(m.Name) {
		return false, d.dir.Remove(string(s))
	}
	_, err = moveToRejected(d.base, mountsDir+"/"+d.id+"/"+string(s), r)
	return err == nil, err
}

// isDataObject reports whether a recorded name can be that of the data file
// with the id, for nothing else may be deleted on the word of a file that lies
// about.
func isDataObject(object, id string) bool {
	dir, name := splitPath(object)
	found, _, ok := dataID([]byte(name))
	return ok && found == id && isData(name) && dir != areaDir && !strings.HasPrefix(dir, "_delta_log")
}

// joinPath joins a directory ("" = the root) and a name.
func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
