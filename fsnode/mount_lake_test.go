package fsnode

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestLakeShowsTablesAtAnyDepth(t *testing.T) {
	lake := t.TempDir()
	threeVersions(t, filepath.Join(lake, "sales"))
	threeVersions(t, filepath.Join(lake, "raw", "eu", "orders"))
	for _, dir := range []string{"empty", ".git", filepath.Join("sales", "p=1", logDir)} {
		if err := os.MkdirAll(filepath.Join(lake, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(lake, "README"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(lake, "etc")); err != nil {
		t.Fatal(err)
	}
	m := mount(t, lake)
	for dir, want := range map[string][]string{
		"": {"empty", "raw", "sales"}, "raw": {"eu"}, "raw/eu": {"orders"}, "empty": {}, "sales/@v1": {"p=1"},
	} {
		if got := m.names(dir); !slices.Equal(got, want) {
			t.Errorf("%q: %v", dir, got)
		}
	}
	for _, table := range []string{"sales", "raw/eu/orders"} {
		if got := string(m.read(table, "@v1/p=1/a.parquet")); got != "file a" || m.latest(table) != "@v2" {
			t.Errorf("%s: %q at %s", table, got, m.latest(table))
		}
	}
	for _, hidden := range []string{"README", "etc", ".git", "sales/_delta_log"} {
		if _, err := os.Lstat(m.join(hidden)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", hidden, err)
		}
	}
	if a, b := lstatOf(t, m.join("sales/@v1/p=1/a.parquet")), lstatOf(t, m.join("raw/eu/orders/@v1/p=1/a.parquet")); a.Ino == b.Ino {
		t.Error("files of two tables have one inode")
	}
	if err := os.Mkdir(m.join("new"), 0o755); !errors.Is(err, syscall.EPERM) {
		t.Errorf("mkdir: %v", err)
	}
}

func TestBrokenTableHarmsOnlyItself(t *testing.T) {
	lake := t.TempDir()
	threeVersions(t, filepath.Join(lake, "good"))
	threeVersions(t, filepath.Join(lake, "bad"))
	log := filepath.Join(lake, "bad", logDir)
	for _, name := range []string{"00000000000000000000.json", "00000000000000000001.json", "00000000000000000002.json"} {
		if err := os.Remove(filepath.Join(log, name)); err != nil {
			t.Fatal(err)
		}
	}
	m := mount(t, lake)
	// What cannot be opened must not pass for an empty table.
	entries, err := os.ReadDir(m.join("bad"))
	if !errors.Is(err, syscall.EIO) || len(entries) != 1 || entries[0].Name() != ".delta" {
		t.Errorf("bad: %v, %v", entries, err)
	}
	if got := m.names("bad/.delta"); !slices.Equal(got, []string{textErrors, textStatus}) {
		t.Errorf("bad/.delta: %v", got)
	}
	for _, name := range []string{"current", "latest", "@v0"} {
		if _, err := os.Lstat(m.join("bad", name)); !errors.Is(err, syscall.EIO) {
			t.Errorf("bad/%s: %v", name, err)
		}
	}
	for _, text := range []string{textErrors, textStatus} {
		if got := string(m.read("bad/.delta", text)); !strings.Contains(got, "bad") || !strings.Contains(got, `"reason"`) {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := string(m.read("good/@v1/p=1/a.parquet")); got != "file a" {
		t.Errorf("good: %q", got)
	}
}

func TestTablesOfALakeComeAndGo(t *testing.T) {
	lake := t.TempDir()
	m := mount(t, lake)
	if got := m.names(); len(got) != 0 {
		t.Errorf("empty lake: %v", got)
	}
	if _, err := os.Lstat(m.join("late")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	threeVersions(t, filepath.Join(lake, "late"))
	if got := string(m.read("late/@v1/p=1/a.parquet")); got != "file a" {
		t.Errorf("new table: %q", got)
	}
	if err := os.RemoveAll(filepath.Join(lake, "late")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the table", func() bool {
		_, err := os.Stat(m.join("late/@v1/p=1/a.parquet"))
		return errors.Is(err, os.ErrNotExist)
	})
	if got := m.names(); len(got) != 0 {
		t.Errorf("after its end: %v", got)
	}
}

func TestSourceThatIsNotThere(t *testing.T) {
	for _, source := range []string{filepath.Join(t.TempDir(), "missing"), "/etc/passwd"} {
		if _, err := New(t.Context(), Options{Source: source}); !errors.Is(err, ErrNoSource) {
			t.Errorf("%s: %v", source, err)
		}
	}
}
