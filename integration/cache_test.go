package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// manyFiles is enough for the metadata cache to keep a table.
const manyFiles = 12_000

// largeTable makes a table that has in version 1 many files, whose names begin
// with this prefix and which are not there.
func largeTable(t *testing.T, dir, prefix string) *fixture.Table {
	t.Helper()
	table, err := fixture.Create(dir, fixture.Spec{Partition: []string{"day"}})
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, manyFiles)
	for i := range lines {
		day := i % 20
		lines[i] = fmt.Sprintf(`{"add":{"path":"day=%d/%s-%05d.parquet","partitionValues":{"day":"%d"},`+
			`"size":1000,"modificationTime":1714000000000,"dataChange":true}}`, day, prefix, i, day)
	}
	if err := table.Commit("WRITE", lines...); err != nil {
		t.Fatal(err)
	}
	return table
}

// listing is what a version of a mount lists, as paths.
func listing(t *testing.T, m *harness.Mount, version string) []string {
	t.Helper()
	var out []string
	days, err := os.ReadDir(m.Path(version))
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range days {
		files, err := os.ReadDir(m.Path(version, day.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			out = append(out, filepath.Join(day.Name(), f.Name()))
		}
	}
	return out
}

// runsKept are the runs in the cache of a table, by directory.
func runsKept(t *testing.T, cache string) []string {
	t.Helper()
	seals, err := filepath.Glob(filepath.Join(cache, "*", "*", "*", "seal"))
	if err != nil {
		t.Fatal(err)
	}
	return seals
}

func awaitKept(t *testing.T, cache string) {
	t.Helper()
	harness.Eventually(t, 30*time.Second, func() string {
		if len(runsKept(t, cache)) == 0 {
			return "nothing is kept in the cache"
		}
		return ""
	})
}

func TestMetadataCacheOfALargeTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	cache := filepath.Join(t.TempDir(), "cache")
	table := largeTable(t, dir, "a")
	start := func() *harness.Mount { return harness.Start(t, dir, "--cache-dir", cache, "--log-level", "debug") }

	m := start()
	want := listing(t, m, "@v1")
	if len(want) != manyFiles {
		t.Fatalf("it lists %d files", len(want))
	}
	awaitKept(t, cache)
	if err := table.Add("day=3/new.parquet", fixture.Rows(0, 5)); err != nil {
		t.Fatal(err)
	}
	if got := listing(t, m, "@v2"); len(got) != manyFiles+1 {
		t.Errorf("version 2 lists %d files", len(got))
	}
	users := harness.Must(t, harness.Binary(), "cache", "ls", "--json", "--cache-dir", cache)
	if !strings.Contains(users, fmt.Sprintf(`"pid":%d`, m.PID())) {
		t.Errorf("it is not in use by %d: %s", m.PID(), users)
	}
	m.Unmount()

	m = start()
	if got := listing(t, m, "@v1"); !slices.Equal(got, want) {
		t.Errorf("the second mount lists %d files, or others", len(got))
	}
	if got := listing(t, m, "@v2"); len(got) != manyFiles+1 {
		t.Errorf("version 2 lists %d files in the second mount", len(got))
	}
	m.Unmount()
	if strings.Contains(m.Log(), "metadata is cached") || len(runsKept(t, cache)) != 1 {
		t.Errorf("the second mount did not use what the first kept: %q\n%s", runsKept(t, cache), m.Log())
	}
	harness.Must(t, harness.Binary(), "cache", "verify", "--cache-dir", cache)
	var kept struct {
		Slots []struct{ Versions []struct{ First, Last int64 } }
	}
	if err := json.Unmarshal([]byte(harness.Must(t, harness.Binary(), "cache", "ls", "--json", "--cache-dir", cache)), &kept); err != nil {
		t.Fatal(err)
	}
	if last := kept.Slots[0].Versions[0].Last; last != 2 {
		t.Errorf("the last version kept is %d", last)
	}
}

func TestMetadataCacheIsNeverTrusted(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, table, cache string) string{
		"damaged": func(t *testing.T, _, cache string) string {
			files, err := filepath.Glob(filepath.Join(cache, "*", "*", "*", "*.sst"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				if err := os.Truncate(f, 1000); err != nil {
					t.Fatal(err)
				}
			}
			return "a"
		},
		"of another table": func(t *testing.T, table, _ string) string {
			if err := os.RemoveAll(table); err != nil {
				t.Fatal(err)
			}
			largeTable(t, table, "b")
			return "b"
		},
		"deleted": func(t *testing.T, _, cache string) string {
			if err := os.RemoveAll(cache); err != nil {
				t.Fatal(err)
			}
			return "a"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "table")
			cache := filepath.Join(t.TempDir(), "cache")
			largeTable(t, dir, "a")
			m := harness.Start(t, dir, "--cache-dir", cache)
			listing(t, m, "@v1")
			awaitKept(t, cache)
			m.Unmount()

			prefix := harm(t, dir, cache)
			for range 2 {
				m = harness.Start(t, dir, "--cache-dir", cache)
				got := listing(t, m, "@v1")
				if len(got) != manyFiles || !strings.Contains(got[0], "/"+prefix+"-") {
					t.Errorf("it lists %d files, the first is %s", len(got), got[0])
				}
				awaitKept(t, cache)
				m.Unmount()
			}
		})
	}
}

func TestDamagedMetadataCacheBeforeNewerCommits(t *testing.T) {
	for name, first := range map[string]func(m *harness.Mount) error{
		"a version": func(m *harness.Mount) error { _, err := os.ReadDir(m.Path("@v3", "day=3")); return err },
		"current":   func(m *harness.Mount) error { return os.Mkdir(m.Path("current", "day=new"), 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "table")
			cache := filepath.Join(t.TempDir(), "cache")
			table := largeTable(t, dir, "a")
			m := harness.Start(t, dir, "--cache-dir", cache)
			listing(t, m, "@v1")
			awaitKept(t, cache)
			m.Unmount()

			for i := range 2 {
				if err := table.Add(fmt.Sprintf("day=3/new-%d.parquet", i), fixture.Rows(0, 5)); err != nil {
					t.Fatal(err)
				}
			}
			files, err := filepath.Glob(filepath.Join(cache, "*", "*", "*", "*.sst"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				data[len(data)/2] ^= 1
				if err := os.WriteFile(f, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m = harness.Start(t, dir, "--cache-dir", cache)
			if err := first(m); err != nil {
				t.Error(err)
			}
			if got := listing(t, m, "@v3"); len(got) != manyFiles+2 {
				t.Errorf("it lists %d files", len(got))
			}
			m.Unmount()
			if !strings.Contains(m.Log(), "does not read and will be loaded again") {
				t.Errorf("the damage was not met:\n%s", m.Log())
			}
		})
	}
}

func TestMetadataCacheOfAKilledMount(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	cache := filepath.Join(t.TempDir(), "cache")
	largeTable(t, dir, "a")
	for range 4 {
		m := harness.Start(t, dir, "--cache-dir", cache)
		if got := listing(t, m, "@v1"); len(got) != manyFiles {
			t.Errorf("it lists %d files", len(got))
		}
		m.Kill() // while the cache fills, or later
	}
	m := harness.Start(t, dir, "--cache-dir", cache)
	if got := listing(t, m, "@v1"); len(got) != manyFiles {
		t.Errorf("it lists %d files", len(got))
	}
	awaitKept(t, cache)
	m.Unmount()
	harness.Must(t, harness.Binary(), "cache", "verify", "--cache-dir", cache)
}

func TestTwoMountsShareAMetadataCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	cache := filepath.Join(t.TempDir(), "cache")
	largeTable(t, dir, "a")
	first := harness.Start(t, dir, "--cache-dir", cache)
	want := listing(t, first, "@v1")
	awaitKept(t, cache)
	second := harness.Start(t, dir, "--cache-dir", cache, "--log-level", "debug")
	if got := listing(t, second, "@v1"); !slices.Equal(got, want) {
		t.Errorf("the second lists %d files, or others", len(got))
	}
	first.Unmount()
	if got := listing(t, second, "@v1"); !slices.Equal(got, want) {
		t.Errorf("once the first has ended, the second lists %d files, or others", len(got))
	}
	second.Unmount()
	if strings.Contains(second.Log(), "metadata is cached") {
		t.Errorf("the second did not use what the first kept:\n%s", second.Log())
	}
}

func TestCacheDirectoryInTheMountPointIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	largeTable(t, dir, "a")
	mnt := harness.MountPoint(t)
	r := harness.Deltafs(t, "mount", dir, mnt, "--cache-dir", filepath.Join(mnt, "cache"))
	if r.Code != 5 || !strings.Contains(r.Out, "cache directory") {
		t.Errorf("exit status %d, %s", r.Code, r.Out)
	}
}
