package metacache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tableSlotCount is how many processes may keep the same table.
const tableSlotCount = 4

// slot is the directory of a process for a table, with a directory for each
// run. The owner holds an exclusive lock on the lock file. Everybody else may
// read: a run does not change once it has its name, but for versions that come
// behind the others, and files that are deleted stay readable while open.
type slot struct {
	dir string
	// lock is nil if the slot is another's.
	lock *os.File
}

var errLocked = errors.New("in use by another process")

// lockSlot makes a slot this process's own. errLocked if it is another's.
func lockSlot(dir string) (*slot, error) {
	// Others may clear the slot at any time, but not always.
	const tries = 100
	for range tries {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		err := ownSlot(dir)
		var f *os.File
		if err == nil {
			f, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		}
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		current, err := lockOpened(f)
		if err == nil && current {
			return &slot{dir: dir, lock: f}, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s cannot be locked", dir)
}

// ownSlot says errForeign of what no cache has made: a slot with anything in it
// has a lock file, which comes first and goes last.
func ownSlot(dir string) error {
	entries, err := ownEntries(dir)
	if err != nil || len(entries) == 0 ||
		slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == lockFile && e.Type().IsRegular() }) {
		return err
	}
	return fmt.Errorf("%w: %s has files of others", errForeign, dir)
}

// lockOpened locks an open lock file; false if its name means another one now.
func lockOpened(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if os.IsTimeout(err) { // EWOULDBLOCK
		return false, errLocked
	}
	if err != nil {
		return false, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return isNamed(f)
}

// isNamed reports whether the name of an open file still means it.
func isNamed(f *os.File) (bool, error) {
	ours, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(f.Name())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, named), err
}

// held is an error if the slot is no longer this process's: somebody deleted
// it by hand, and its name may mean the slot of another.
func (s *slot) held() error {
	current, err := isNamed(s.lock)
	if err == nil && !current {
		err = fmt.Errorf("%s was deleted", s.dir)
	}
	return err
}

// touch notes when the slot was used.
func (s *slot) touch() {
	now := time.Now()
	_ = os.Chtimes(s.lock.Name(), now, now)
}

// release gives up the lock.
func (s *slot) release() {
	if s.lock != nil {
		s.lock.Close()
	}
}

// empty deletes all runs in the slot. What has another name is somebody else's.
func (s *slot) empty() error {
	entries, err := ownEntries(s.dir)
	for _, e := range entries {
		if _, ok := serialOf(e.Name()); ok {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}

// clear deletes the slot.
func (s *slot) clear() error {
	if err := s.empty(); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(s.dir, lockFile))
	_ = os.Remove(s.dir) // which is in use again if it is not empty
	return err
}

// newSuffix marks a run that is being written.
const newSuffix = ".new"

func (s *slot) runDir(serial uint64) string {
	return filepath.Join(s.dir, strconv.FormatUint(serial, 10))
}

// serialOf reads the name of a run's directory.
func serialOf(name string) (uint64, bool) {
	serial, err := strconv.ParseUint(strings.TrimSuffix(name, newSuffix), 10, 64)
	return serial, err == nil && strconv.FormatUint(serial, 10) == strings.TrimSuffix(name, newSuffix)
}

// diskRun is a run in a slot.
type diskRun struct {
	keptRun
	log *versionLog
}

// runs reads the runs of a slot, oldest first, and returns the greatest serial
// in use. What cannot be read is told to bad; what has no name of a run is left
// alone.
func (s *slot) runs(ctx context.Context, c *Cache, bad func(dir string, err error)) (runs []diskRun, last uint64, err error) {
	entries, err := ownEntries(s.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		serial, ok := serialOf(e.Name())
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return runs, last, err
		}
		dir := filepath.Join(s.dir, e.Name())
		last = max(last, serial)
		if !e.IsDir() || strings.HasSuffix(e.Name(), newSuffix) {
			bad(dir, damaged(nil, "it is no finished run"))
			continue
		}
		r, err := s.openRun(c, dir)
		if err == nil && r.serial != serial {
			r.log.close()
			err = damaged(nil, "the run says that it is %d", r.serial)
		}
		if err != nil {
			bad(dir, err)
			continue
		}
		runs = append(runs, r)
	}
	return s.disjoint(runs, bad), last, nil
}

// openRun reads what is known of a run without opening its database.
func (s *slot) openRun(c *Cache, dir string) (diskRun, error) {
	sealed, err := readSeal(dir)
	if err != nil {
		return diskRun{}, err
	}
	log, versions, err := openVersions(filepath.Join(dir, versionsName), sealed, s.lock != nil)
	if err != nil {
		return diskRun{}, err
	}
	return diskRun{keptRun: keptRun{
		serial: sealed.Serial, base: newDiskBase(c, dir, sealed), firstID: sealed.FirstID, ownIDs: sealed.OwnIDs,
		first: sealed.Version, versions: versions,
	}, log: log}, nil
}

// disjoint leaves out runs with versions that a newer one has too, but for the
// last: one that was to take another's place, before that was deleted.
func (s *slot) disjoint(runs []diskRun, bad func(dir string, err error)) []diskRun {
	slices.SortFunc(runs, func(a, b diskRun) int { return cmp.Compare(b.serial, a.serial) })
	var out []diskRun
	for _, r := range runs {
		if slices.ContainsFunc(out, func(o diskRun) bool { return r.first < o.last() && o.first < r.last() || r.first == o.first }) {
			r.log.close()
			bad(s.runDir(r.serial), damaged(nil, "a newer run has its versions"))
			continue
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	return out
}

func (r *diskRun) last() int64 { return r.first + int64(len(r.versions)) - 1 }
