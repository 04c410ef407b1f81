package integration

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

func TestLakeShowsTablesAtAnyDepthAndAppendsToEach(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a", "b/c", "b/d/e"} {
		if _, err := fixture.Create(filepath.Join(root, name), fixture.Spec{}); err != nil {
			t.Fatal(err)
		}
	}
	m := harness.Start(t, root)
	source := filepath.Join(t.TempDir(), "x.parquet")
	if err := fixture.WriteParquet(source, fixture.Rows(1, 3)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b/c", "b/d/e"} {
		harness.Must(t, "cp", source, m.Path(name, "current", "x.parquet"))
		if got, err := os.Readlink(m.Path(name, "latest")); err != nil || got != "@v1" {
			t.Errorf("%s: latest -> %q %v", name, got, err)
		}
		if rows, err := fixture.ReadRows(filepath.Join(root, name), -1); err != nil || len(rows) != 3 {
			t.Errorf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	m.Unmount()
}

func TestTableMadeInALakeAppears(t *testing.T) {
	root := t.TempDir()
	m := harness.Start(t, root)
	if _, err := os.Stat(m.Path("new")); !os.IsNotExist(err) {
		t.Fatalf("before it is made: %v", err)
	}
	if _, err := fixture.Create(filepath.Join(root, "new"), fixture.Spec{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, limit, func() string {
		if got, _ := os.Readlink(m.Path("new", "latest")); got != "@v0" {
			return "no table new in the lake"
		}
		return ""
	})
}

func TestBrokenTableInALakeHarmsOnlyItself(t *testing.T) {
	root := t.TempDir()
	good, bad := filepath.Join(root, "good"), filepath.Join(root, "bad")
	for _, dir := range []string{good, bad} {
		if _, err := fixture.Create(dir, fixture.Spec{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(logFile(bad, 0), []byte("{not json\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := harness.Start(t, root)
	if _, err := os.ReadDir(m.Path("bad", "current")); harness.Errno(err) != syscall.EIO {
		t.Errorf("bad: %v, want EIO", err)
	}
	if f := m.Failures("bad"); len(f) == 0 {
		t.Error("no reason in errors.jsonl")
	}
	if _, err := os.ReadDir(m.Path("good", "current")); err != nil {
		t.Error(err)
	}
	if got, err := os.Readlink(m.Path("good", "latest")); err != nil || got != "@v0" {
		t.Errorf("good: latest -> %q %v", got, err)
	}
}
