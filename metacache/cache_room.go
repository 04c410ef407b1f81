package metacache

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errNoRoom says that the disk, or the cache, has no room.
var errNoRoom = errors.New("no room in the metadata cache")

// runEstimate is about how many bytes a run will take on disk.
func runEstimate(r keptRun) int64 {
	const fileBytes = 80
	return int64(r.base.count()) * fileBytes
}

// room makes room for about so many bytes in a directory, by deleting what others
// used longest ago and do not use now. It returns a function that is asked
// before each write.
func (c *Cache) room(bytes int64, dir string) (func(n int) error, error) {
	left, err := c.evict(bytes)
	if err != nil {
		return nil, err
	}
	return func(n int) error {
		if left -= int64(n); left < 0 {
			return fmt.Errorf("%w: it may take %d bytes", errNoRoom, c.options.Size)
		}
		free, err := freeBytes(dir)
		if err != nil {
			return err
		}
		if free < c.options.Floor+int64(n) {
			return fmt.Errorf("%w: the disk has %d bytes free, and %d are left to others", errNoRoom, free, c.options.Floor)
		}
		return nil
	}, nil
}

// freeBytes is what the disk with a directory has free for this user.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// evict deletes slots until so many bytes are left of the bound, and returns
// how many are.
func (c *Cache) evict(bytes int64) (int64, error) {
	left := c.options.Size
	if bytes > left {
		return 0, fmt.Errorf("%w: it may take %d bytes, and about %d are needed", errNoRoom, left, bytes)
	}
	slots, err := cacheSlots(c.options.Dir)
	if err != nil {
		return 0, err
	}
	for _, s := range slots {
		left -= s.bytes
	}
	slices.SortFunc(slots, func(a, b slotInfo) int { return a.used.Compare(b.used) })
	for _, s := range slots {
		if left >= bytes {
			break
		}
		freed, err := clearSlot(s.dir)
		if err == nil && freed {
			left += s.bytes
			c.log.Info("cached metadata makes room for newer", "op", "cache", "path", s.dir, "bytes", s.bytes)
		}
	}
	if left < bytes {
		return 0, fmt.Errorf("%w: tables in use take %d of %d bytes", errNoRoom, c.options.Size-left, c.options.Size)
	}
	return left, nil
}

// clearSlot deletes a slot unless it is in use.
func clearSlot(dir string) (bool, error) {
	s, err := lockSlot(dir)
	if errors.Is(err, errLocked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.release()
	return true, s.clear()
}

// slotInfo is what a look at a slot from outside shows.
type slotInfo struct {
	dir   string
	bytes int64
	// used is when a process last opened it.
	used time.Time
}

func slotDir(tableDir string, number int) string {
	return filepath.Join(tableDir, strconv.Itoa(number))
}

func isSlotName(name string) bool {
	n, err := strconv.Atoi(name)
	return err == nil && 0 <= n && n < tableSlotCount && strconv.Itoa(n) == name
}

// isTableDir reports whether an entry of a cache's directory is its own.
func isTableDir(e fs.DirEntry) bool {
	_, err := hex.DecodeString(e.Name())
	return err == nil && len(e.Name()) == 2*keyBytes && e.IsDir()
}

// cacheSlots lists the slots of all tables.
func cacheSlots(dir string) ([]slotInfo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []slotInfo
	for _, e := range entries {
		if isTableDir(e) {
			out = append(out, tableSlots(filepath.Join(dir, e.Name()))...)
		}
	}
	return out, nil
}

// tableSlots lists the slots of a table.
func tableSlots(dir string) []slotInfo {
	var out []slotInfo
	for i := range tableSlotCount {
		s := slotInfo{dir: slotDir(dir, i)}
		if ownSlot(s.dir) != nil {
			continue
		}
		info, err := os.Lstat(filepath.Join(s.dir, lockFile))
		if err != nil {
			continue
		}
		s.used = info.ModTime()
		s.bytes = diskUse(s.dir)
		out = append(out, s)
	}
	return out
}

// diskUse is what a directory takes on disk. What vanishes meanwhile takes
// nothing.
func diskUse(dir string) int64 {
	var n int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				n += st.Blocks * 512
			}
		}
		return nil
	})
	return n
}
