package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/metacache"
)

// newCache makes a cache with version 3 of each table, and returns its
// directory.
func newCache(t *testing.T, tables ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cache")
	for _, table := range tables {
		check(t, openKept(t, dir, table).Close())
	}
	return dir
}

// openKept opens a table in a cache, with version 3 kept.
func openKept(t *testing.T, dir, table string) metacache.Index {
	t.Helper()
	c := metacache.OpenCache(metacache.CacheOptions{Dir: dir, Size: 1 << 30})
	x, err := c.Open(t.Context(), table)
	check(t, err)
	check(t, x.Load(t.Context(), 3, nil, func(yield func(metacache.File, error) bool) {
		for i := range 100 {
			name := fmt.Sprint("part-", i)
			if !yield(metacache.File{Key: metacache.Key{Name: name, Path: name}}, nil) {
				return
			}
		}
	}))
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		tables, err := c.Tables(t.Context(), table)
		check(t, err)
		if len(tables) == 1 && len(tables[0].Slots) == 1 && len(tables[0].Slots[0].Runs) == 1 {
			return x
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("it is not kept")
		}
	}
}

// lines decodes an object a line.
func lines[T any](t *testing.T, text string) []T {
	t.Helper()
	var out []T
	for line := range strings.Lines(text) {
		var v T
		check(t, json.Unmarshal([]byte(line), &v))
		out = append(out, v)
	}
	return out
}

func TestCacheLs(t *testing.T) {
	sales := filepath.Join(t.TempDir(), "sales")
	dir := newCache(t, "/tables/other", sales)
	open := openKept(t, dir, sales)
	tables := lines[cachedTable](t, must(t, "cache", "ls", "--json", "--cache-dir", dir))
	if len(tables) != 2 {
		t.Fatalf("got %+v", tables)
	}
	for _, table := range tables {
		slot := table.Slots[0]
		if len(slot.Versions) != 1 || slot.Versions[0] != (cachedRun{First: 3, Last: 3, Files: 100}) ||
			slot.Bytes == 0 || table.Bytes != slot.Bytes {
			t.Errorf("got %+v", table)
		}
		used, err := time.Parse(time.RFC3339, slot.Used)
		if err != nil || time.Since(used) > time.Hour {
			t.Errorf("used at %s: %v", slot.Used, err)
		}
		pid := 0
		if table.Table == sales {
			pid = os.Getpid()
		}
		if slot.PID != pid {
			t.Errorf("%s is in use by %d, want %d", table.Table, slot.PID, pid)
		}
	}
	text := must(t, "cache", "ls", "--cache-dir", dir)
	for _, word := range []string{"VERSIONS", sales, "/tables/other", fmt.Sprint("pid ", os.Getpid())} {
		if !strings.Contains(text, word) {
			t.Errorf("it does not say %q:\n%s", word, text)
		}
	}
	if one := must(t, "cache", "ls", sales, "--cache-dir", dir); strings.Contains(one, "other") || !strings.Contains(one, sales) {
		t.Errorf("of one table it says\n%s", one)
	}
	check(t, open.Close())
	if empty := must(t, "cache", "ls", "--json", "--cache-dir", filepath.Join(dir, "none")); empty != "" {
		t.Errorf("of no cache it says %q", empty)
	}
}

func TestCacheClear(t *testing.T) {
	dir := newCache(t, "/tables/a", "/tables/b", "/tables/c")
	open := openKept(t, dir, "/tables/b")
	left := func() (names []string) {
		for _, table := range lines[cachedTable](t, must(t, "cache", "ls", "--json", "--cache-dir", dir)) {
			names = append(names, filepath.Base(table.Table))
		}
		return names
	}
	must(t, "cache", "clear", "/tables/a", "--cache-dir", dir)
	if got := left(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("left are %q", got)
	}
	cleared := lines[clearedSlot](t, must(t, "cache", "clear", "--json", "--cache-dir", dir))
	if len(cleared) != 2 || !cleared[0].Cleared || cleared[1].Cleared || cleared[1].PID != os.Getpid() {
		t.Errorf("got %+v", cleared)
	}
	if got := left(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left are %q", got)
	}
	if text := must(t, "cache", "clear", "--cache-dir", dir); !strings.Contains(text, fmt.Sprintf("in use by pid %d", os.Getpid())) {
		t.Errorf("got %q", text)
	}
	check(t, open.Close())
	if text := must(t, "cache", "clear", "--cache-dir", dir); !strings.HasSuffix(text, " bytes freed\n") || strings.HasPrefix(text, "0 ") {
		t.Errorf("got %q", text)
	}
	if got := left(); got != nil {
		t.Errorf("left are %q", got)
	}
}

func TestCacheVerify(t *testing.T) {
	dir := newCache(t, "/tables/a", "/tables/b")
	runs := lines[verifiedRun](t, must(t, "cache", "verify", "--json", "--cache-dir", dir))
	if len(runs) != 2 || runs[0].Error != "" || runs[0].First != 3 || runs[0].Last != 3 || runs[0].Files != 100 {
		t.Fatalf("got %+v", runs)
	}
	check(t, os.Truncate(filepath.Join(runs[1].Path, "000001.sst"), 100))
	r := deltafs(t, "cache", "verify", "--json", "--cache-dir", dir)
	runs = lines[verifiedRun](t, r.stdout)
	if len(runs) != 2 || runs[0].Error != "" || !strings.Contains(runs[1].Error, "000001.sst") {
		t.Errorf("got %+v", runs)
	}
	r.stdout = ""
	refused(t, r, exitFailure, "1 of 2", "deltafs cache clear")
	if ls := must(t, "cache", "ls", "/tables/b", "--cache-dir", dir); !strings.Contains(ls, "damaged") {
		t.Errorf("ls says\n%s", ls)
	}
	r = deltafs(t, "cache", "verify", "/tables/b", "--cache-dir", dir)
	if r.code != exitFailure || strings.Count(r.stdout, "damaged metadata cache") != 1 || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("got %+v", r)
	}
	must(t, "cache", "verify", "/tables/a", "--cache-dir", dir)
}

func TestByteSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1023": 1023, "1K": 1 << 10, "4g": 4 << 30, "500M": 500 << 20, "2T": 2 << 40, "3GB": 3 << 30, "3GiB": 3 << 30,
	} {
		var b byteSize
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("%q is %d, %v, want %d", text, int64(b), err, want)
		}
		again := b
		if err := again.Set(b.String()); err != nil || again != b {
			t.Errorf("%q is written as %q", text, b.String())
		}
	}
	for _, text := range []string{"", "K", "-1", "1.5G", "4X", "G4", "9999999999T", "1 G"} {
		var b byteSize
		if err := b.Set(text); err == nil {
			t.Errorf("%q is taken for %d", text, int64(b))
		}
	}
}
