package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/metacache"
)

// keptRuns opens a table with a cache on disk, reads versions one after the
// other, and returns the directories of the runs that are kept, the oldest
// first.
func keptRuns(t *testing.T, f *fixture, dir string, runs int, versions ...int64) []string {
	t.Helper()
	table := openOnDisk(t, f, dir)
	for _, v := range versions {
		at(t, table, v)
	}
	var seals []string
	for begun := time.Now(); len(seals) < runs; time.Sleep(time.Millisecond) {
		var err error
		if seals, err = filepath.Glob(filepath.Join(dir, "*", "*", "[0-9]", "seal")); err != nil || time.Since(begun) > time.Minute {
			t.Fatalf("kept are %q, %v", seals, err)
		}
	}
	table.Close()
	for i := range seals {
		seals[i] = filepath.Dir(seals[i])
	}
	return seals
}

// openOnDisk opens the table as a new process does, one that folds more than a
// few versions.
func openOnDisk(t *testing.T, f *fixture, dir string) *Table {
	t.Helper()
	table := openWith(t, f, metacache.OpenCache(metacache.CacheOptions{Dir: dir, Size: 1 << 30, Small: 1}))
	table.foldBeyond, table.unfolded = 5, 1
	return table
}

func filesIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// flip changes one bit of a file.
func flip(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil || len(data) == 0 {
		t.Fatal(len(data), err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func numbered(first, last int64) string {
	var names []string
	for v := first; v <= last; v++ {
		names = append(names, fmt.Sprintf("f%02d", v))
	}
	return strings.Join(names, " ")
}

func addNumbered(f *fixture, first, last int64) {
	for v := first; v <= last; v++ {
		f.commit(v, addLine(fmt.Sprintf("f%02d", v), 1))
	}
}

func TestDamagedRunCostsTimeOnlyWhateverComesNext(t *testing.T) {
	const kept = 3
	names := []string{}
	for name, next := range map[string]struct {
		commits func(f *fixture)
		want    string
	}{
		"nothing":         {func(*fixture) {}, numbered(0, kept)},
		"commits":         {func(f *fixture) { addNumbered(f, kept+1, kept+2) }, numbered(0, kept+2)},
		"a file replaced": {func(f *fixture) { f.commit(kept+1, removeLine("f01"), addLine("f02", 7)) }, "f00 f02 f03"},
		"many commits":    {func(f *fixture) { addNumbered(f, kept+1, kept+20) }, numbered(0, kept+20)},
		"a new layout":    {func(f *fixture) { f.commit(kept+1, metadataLine(`"k"`), addPartition("new", "x")) }, numbered(0, kept) + " new"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).plain(addLine("f00", 1))
			addNumbered(f, 1, kept)
			run := keptRuns(t, f, t.TempDir(), 1, kept)[0]
			next.commits(f)
			for _, name := range filesIn(t, run) {
				for _, first := range []int64{-1, 2} { // the newest version, or one that the cache has
					dir := t.TempDir()
					if err := os.CopyFS(dir, os.DirFS(filepath.Join(run, "..", "..", ".."))); err != nil {
						t.Fatal(err)
					}
					rel, _ := filepath.Rel(filepath.Join(run, "..", "..", ".."), run)
					flip(t, filepath.Join(dir, rel, name))
					table := openOnDisk(t, f, dir)
					if first >= 0 {
						wantPaths(t, table, first, numbered(0, first))
					}
					wantPaths(t, table, table.Latest(), next.want)
					wantPaths(t, table, kept, numbered(0, kept))
				}
				names = append(names, name)
			}
		})
	}
	for _, name := range []string{"MANIFEST", "seal", "versions", ".sst"} {
		if !strings.Contains(strings.Join(names, " "), name) {
			t.Errorf("no %s was damaged, only %q", name, names)
		}
	}
}

func TestDamagedRunIsFoundInPlaceOfAnUnusableOne(t *testing.T) {
	f := newFixture(t).plain(addLine("f00", 1))
	addNumbered(f, 1, 20)
	dir := t.TempDir()
	runs := keptRuns(t, f, dir, 2, 3, 20)
	manifest := filepath.Join(runs[1], "MANIFEST")
	if err := os.Rename(manifest, filepath.Join(t.TempDir(), "MANIFEST")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", manifest); err != nil {
		t.Fatal(err)
	}
	flip(t, filepath.Join(runs[0], "MANIFEST"))
	for _, v := range []int64{20, 3, 4, 19} {
		wantPaths(t, openOnDisk(t, f, dir), v, numbered(0, v))
	}
}

// TestCacheOfFilesWithReusedInodesIsDiscarded makes another table in the same
// place whose log files have the same sizes, times and inodes.
func TestCacheOfFilesWithReusedInodesIsDiscarded(t *testing.T) {
	f, dir := newFixture(t), t.TempDir()
	f.plain(addLine("f00", 1))
	when := time.Now().Add(-time.Hour)
	f.setTime(CommitName(0), when)
	keptRuns(t, f, dir, 1, 0)
	log := filepath.Join(f.dir, filepath.FromSlash(CommitName(0)))
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, bytes.ReplaceAll(data, []byte("f00"), []byte("f77")), 0o644); err != nil {
		t.Fatal(err)
	}
	f.setTime(CommitName(0), when)
	wantPaths(t, openOnDisk(t, f, dir), 0, "f77")
}
