package metacache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// CachedTable is what a cache has of a table.
type CachedTable struct {
	// Table is the root that the table was opened with, "" if that is lost.
	Table string
	Dir   string
	Slots []CachedSlot
}

// CachedSlot is what one process after the other keeps of a table.
type CachedSlot struct {
	Dir string
	// Bytes is what it takes on disk.
	Bytes int64
	// Used is when a process last opened it, PID which has it open now, 0 if
	// none has.
	Used time.Time
	PID  int
	Runs []CachedRun
}

// CachedRun is a row of versions.
type CachedRun struct {
	Dir      string
	Versions Span
	// Files is the number of files of the last version.
	Files int64
	// Err says what is wrong with the run; it is dropped when it is next used.
	Err error
}

// Tables looks at the cache from outside: what all processes have of a table,
// or of all tables if root is "". Runs are not verified.
func (c *Cache) Tables(ctx context.Context, root string) ([]CachedTable, error) {
	entries, err := os.ReadDir(c.options.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if root != "" {
		root = resolve(root)
	}
	var out []CachedTable
	for _, e := range entries {
		if !isTableDir(e) || root != "" && e.Name() != cacheKey(root) {
			continue
		}
		t := CachedTable{Dir: filepath.Join(c.options.Dir, e.Name())}
		if name, err := readLimited(filepath.Join(t.Dir, tableFile), maxTableFile); err == nil {
			if table, whole := strings.CutSuffix(string(name), "\n"); whole {
				t.Table = table
			}
		}
		for _, s := range tableSlots(t.Dir) {
			look, err := c.look(ctx, s)
			if err != nil {
				return nil, err
			}
			t.Slots = append(t.Slots, look)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b CachedTable) int { return strings.Compare(a.Table, b.Table) })
	return out, nil
}

// look reads what is in a slot.
func (c *Cache) look(ctx context.Context, info slotInfo) (CachedSlot, error) {
	out := CachedSlot{Dir: info.dir, Bytes: info.bytes, Used: info.used, PID: holder(info.dir)}
	s := &slot{dir: info.dir}
	runs, _, err := s.runs(ctx, c, func(dir string, err error) {
		// A run without its name is one that is being written, or was.
		if !strings.HasSuffix(dir, newSuffix) {
			out.Runs = append(out.Runs, CachedRun{Dir: dir, Versions: Span{First: -1, Last: -1}, Err: err})
		}
	})
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return out, err
	}
	for _, r := range runs {
		r.log.close()
		last := r.versions[len(r.versions)-1]
		out.Runs = append(out.Runs, CachedRun{
			Dir: s.runDir(r.serial), Versions: Span{First: r.first, Last: last.version}, Files: last.totals.Files,
		})
	}
	slices.SortFunc(out.Runs, func(a, b CachedRun) int { return int(a.Versions.First - b.Versions.First) })
	return out, nil
}

// holder is the process that owns a slot, 0 if none does, as far as the kernel
// shows it. To try the lock would be in the way of a process that wants it.
func holder(dir string) int {
	info, err := os.Stat(filepath.Join(dir, lockFile))
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || !ok {
		return 0
	}
	// 3: FLOCK  ADVISORY  WRITE 12345 fe:00:1234567 0 EOF
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(locks)) {
		if f := strings.Fields(line); len(f) == 8 && f[1] == "FLOCK" && f[5] == file {
			pid, _ := strconv.Atoi(f[4])
			return pid
		}
	}
	return 0
}

// Clear deletes what the cache has of a table, or of all tables if root is "".
// It returns what it deleted, and what it left as it is in use.
func (c *Cache) Clear(ctx context.Context, root string) (cleared, busy []CachedSlot, err error) {
	tables, err := c.Tables(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range tables {
		for _, s := range t.Slots {
			if err := ctx.Err(); err != nil {
				return cleared, busy, err
			}
			done, err := clearSlot(s.Dir)
			switch {
			case err != nil:
				return cleared, busy, err
			case done:
				cleared = append(cleared, s)
			default:
				busy = append(busy, s)
			}
		}
		removeTableDir(t.Dir)
	}
	return cleared, busy, nil
}

// removeTableDir removes the directory of a table without slots.
func removeTableDir(dir string) {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 1 && entries[0].Name() == tableFile && entries[0].Type().IsRegular() {
		_ = os.Remove(filepath.Join(dir, tableFile))
		_ = os.Remove(dir)
	}
}
