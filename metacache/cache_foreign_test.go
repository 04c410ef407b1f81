package metacache

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// treeOf lists all that is in a directory, links as such.
func treeOf(t *testing.T, dir string) (out []string) {
	t.Helper()
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != dir {
			out = append(out, strings.TrimPrefix(path, dir)+" "+d.Type().String())
		}
		return err
	}))
	return out
}

func TestCacheLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	table := cacheKey(testTable)
	fill := func(dir string) error { // with names as the cache makes them, and others
		for _, name := range []string{"1", "2.new", "other"} {
			if err := os.MkdirAll(filepath.Join(dir, name, "x"), 0o700); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600)
	}
	for name, c := range map[string]struct {
		put func(cache, other string) error
		// usable says that the table is kept all the same.
		usable bool
	}{
		"table is a link": {func(cache, other string) error { return os.Symlink(other, filepath.Join(cache, table)) }, false},
		"table is a link to an empty directory": {func(cache, other string) error {
			empty := filepath.Join(other, "empty")
			if err := os.Mkdir(empty, 0o700); err != nil {
				return err
			}
			return os.Symlink(empty, filepath.Join(cache, table))
		}, false},
		"table is a file":    {func(cache, _ string) error { return os.WriteFile(filepath.Join(cache, table), nil, 0o600) }, false},
		"table is of others": {func(cache, _ string) error { return fill(filepath.Join(cache, table)) }, false},
		"name of the table is a link": {func(cache, other string) error {
			if err := os.Mkdir(filepath.Join(cache, table), 0o700); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(other, "new"), filepath.Join(cache, table, tableFile))
		}, false},
		"slot is a link": {func(cache, other string) error {
			if err := os.Mkdir(filepath.Join(cache, table), 0o700); err != nil {
				return err
			}
			return os.Symlink(other, filepath.Join(cache, table, "0"))
		}, true},
		"slot is of others": {func(cache, _ string) error { return fill(filepath.Join(cache, table, "0")) }, true},
		"lock is a link": {func(cache, other string) error {
			if err := os.MkdirAll(filepath.Join(cache, table, "0"), 0o700); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(other, "new"), filepath.Join(cache, table, "0", lockFile))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cache, other := t.TempDir(), t.TempDir()
			check(t, os.Chmod(cache, 0o700))
			check(t, fill(other))
			check(t, c.put(cache, other))
			before, others := treeOf(t, cache), treeOf(t, other)

			var log bytes.Buffer
			cached := OpenCache(CacheOptions{Dir: cache, Size: 1 << 30, Small: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			tr := newTruth(t, 2000, 3)
			tr.check(t, cached)
			want := 0
			if c.usable {
				want = len(tr.versions)
			}
			if n := tr.check(t, cached); n != want {
				t.Errorf("%d versions are kept, want %d", n, want)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != 1 {
				t.Errorf("%d warnings:\n%s", n, &log)
			}
			if _, _, err := cached.Clear(t.Context(), ""); err != nil {
				t.Error(err)
			}
			after := treeOf(t, cache)
			for _, entry := range before {
				if !slices.Contains(after, entry) {
					t.Errorf("%s is gone", entry)
				}
			}
			if got := treeOf(t, other); !slices.Equal(got, others) {
				t.Errorf("the other directory has %q, had %q", got, others)
			}
		})
	}
}

func TestCacheDeletesOnlyNamesOfItsOwn(t *testing.T) {
	c := OpenCache(CacheOptions{Dir: t.TempDir(), Size: 1 << 30, Small: 1})
	check(t, os.Chmod(c.options.Dir, 0o700))
	tr := newTruth(t, 2000, 3)
	tr.keep(t, c)
	slot := filepath.Dir(theRun(t, c))
	own := filepath.Join(slot, "77.new")
	check(t, os.Mkdir(own, 0o700))
	foreign := filepath.Join(slot, "notes.txt")
	check(t, os.WriteFile(foreign, []byte("x"), 0o600))
	if n := tr.check(t, c); n != len(tr.versions) {
		t.Errorf("%d versions are covered", n)
	}
	if _, err := os.Lstat(own); err == nil {
		t.Error("what a writer that was killed left is still there")
	}
	if cleared, _, err := c.Clear(t.Context(), ""); err != nil || len(cleared) != 1 {
		t.Errorf("cleared are %+v, %v", cleared, err)
	}
	if left := treeOf(t, slot); !slices.Equal(left, []string{"/notes.txt ----------"}) {
		t.Errorf("left are %q", left)
	}
}
