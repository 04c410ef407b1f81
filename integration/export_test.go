package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/integration/harness"
)

func TestExportIsACopyOfTheVersion(t *testing.T) {
	table := textTable(t).Dir
	for _, flags := range []string{"", "--fill-partitions", "--view raw"} {
		for _, version := range []string{"@v0", "@v1", "@v2"} {
			m := harness.Start(t, table, strings.Fields(flags)...)
			out := filepath.Join(t.TempDir(), "a", "b")
			r := harness.Deltafs(t, append([]string{"export", table + version, out, "--json"}, strings.Fields(flags)...)...)
			var said struct {
				Version, Files, Bytes int
				Dir                   string
			}
			if err := json.Unmarshal([]byte(r.Out), &said); err != nil || !r.OK() {
				t.Fatalf("exit status %d, %v\n%s", r.Code, err, r.Out)
			}
			copied := filepath.Join(t.TempDir(), "copy")
			harness.Must(t, "cp", "-r", "-p", m.Path(version), copied)
			harness.Must(t, "diff", "-r", copied, out)
			times := `cd "$1" && find . -type f -printf "%p %s %T@\n" | sort`
			if a, b := shell(t, times, copied), shell(t, times, out); a.Out != b.Out {
				t.Errorf("%s %s: the copy has\n%sthe export\n%s", version, flags, a.Out, b.Out)
			}
			if n := len(filesBelow(t, out)); n != said.Files || said.Dir != out || fmt.Sprint("@v", said.Version) != version {
				t.Errorf("%s: %d files, it said %+v", version, n, said)
			}
			m.Unmount()
		}
	}
}

func TestExportWritesAllOrNothing(t *testing.T) {
	table := textTable(t).Dir
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	wantClearLine(t, harness.Deltafs(t, "export", table, full), exitUsage, full, "not empty")
	wantClearLine(t, harness.Deltafs(t, "export", table), exitUsage, "export")
	// The second file of the version is gone.
	if err := os.Remove(filepath.Join(table, "day=2024-05-02/b.parquet")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	wantClearLine(t, harness.Deltafs(t, "export", table+"@v1", out), exitFailure, "b.parquet", "@v1")
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
	empty := t.TempDir()
	wantClearLine(t, harness.Deltafs(t, "export", table+"@v1", empty), exitFailure, "b.parquet")
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	wantOK(t, harness.Deltafs(t, "export", table+"@v3", empty))
	if files := filesBelow(t, empty); len(files) != 2 {
		t.Errorf("exported %v", files)
	}
}
