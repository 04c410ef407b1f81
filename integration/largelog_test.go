package integration

import (
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

const (
	largeLogFiles      = 300_000
	largeLogCommits    = 3
	largeLogPartitions = 100
	largeLogColumns    = 100
	// mostResident is what the mount of such a table may take.
	mostResident = 300 << 20
	// mostRead is what an append may read beside the file that it appends.
	mostRead = 300 << 10
	// atRestLimit is long because what is waited for gives way to all other work.
	atRestLimit = 5 * time.Minute
)

// largeLog makes a table of many columns whose commits, 45 MB of JSON in all,
// add many files that are not there. It returns the columns that its data files
// have.
func largeLog(t *testing.T, dir string) (columns []string) {
	t.Helper()
	fields := []string{`{"name":"part","type":"string","nullable":true,"metadata":{}}`}
	for i := range largeLogColumns - 1 {
		columns = append(columns, fmt.Sprintf("col_%02d", i))
		fields = append(fields, fmt.Sprintf(`{"name":%q,"type":"long","nullable":true,"metadata":{}}`, columns[i]))
	}
	table, err := fixture.Create(dir, fixture.Spec{
		Schema: `{"type":"struct","fields":[` + strings.Join(fields, ",") + `]}`, Partition: []string{"part"},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, largeLogFiles/largeLogCommits)
	for c := range largeLogCommits {
		for i := range lines {
			n := c*len(lines) + i
			lines[i] = fmt.Sprintf(`{"add":{"path":"part=p%02[1]d/file_%06[2]d.parquet","partitionValues":{"part":"p%02[1]d"},`+
				`"size":%[3]d,"modificationTime":%[4]d,"dataChange":true,"tags":{}}}`,
				n%largeLogPartitions, n, 1<<20, 1714000000000+n)
		}
		if err := table.Commit("WRITE", lines...); err != nil {
			t.Fatal(err)
		}
	}
	return columns
}

// counter is a number that the kernel keeps of the serving process.
func counter(t *testing.T, m *harness.Mount, file, name string) (n int64) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", m.PID(), file))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut("\n"+string(data), "\n"+name+":")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatalf("no %s in %s: %v", name, data, err)
	}
	return n
}

// awaitRest waits until a mount has done what it does in the background.
func awaitRest(t *testing.T, m *harness.Mount) {
	t.Helper()
	const calm = 20 // looks that find nothing new
	work := func() int64 { return counter(t, m, "io", "rchar") + counter(t, m, "io", "wchar") }
	last, same := work(), 0
	harness.Eventually(t, atRestLimit, func() string {
		if now := work(); now != last {
			last, same = now, 0
		} else if same++; same >= calm {
			return ""
		}
		return "the mount reads or writes"
	})
}

// find counts what find finds in a directory of the mount.
func find(t *testing.T, m *harness.Mount, path string) int {
	t.Helper()
	return len(harness.Must(t, "find", m.Path(path), "-type", "f", "-printf", "x"))
}

// TestLargeLogTakesLittleMemoryAndIsNotReadForAnAppend lists, walks and appends
// to a table whose log is JSON alone.
func TestLargeLogTakesLittleMemoryAndIsNotReadForAnAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	cache := filepath.Join(t.TempDir(), "cache")
	columns := largeLog(t, dir)
	m := harness.Start(t, dir, "--cache-dir", cache)

	if got, err := os.ReadDir(m.Path("latest") + "/"); err != nil || len(got) != largeLogPartitions {
		t.Fatalf("latest/ lists %d partitions, %v", len(got), err)
	}
	// Whoever looks at old versions last does not make the newest one forgotten.
	for version, want := range slices.Backward([]int{0, largeLogFiles / 3, largeLogFiles / 3 * 2, largeLogFiles}) {
		if got := find(t, m, fmt.Sprint("@v", version)); got != want {
			t.Errorf("find sees %d files in version %d, not %d", got, version, want)
		}
	}
	history, err := os.ReadFile(m.Path(".delta", "history.jsonl"))
	if err != nil || strings.Count(string(history), "\n") != largeLogCommits+1 {
		t.Errorf("the history is %q, %v", history, err)
	}
	awaitKept(t, cache)
	awaitRest(t, m)

	file := fixture.Longs(columns, 100)
	put := func(name string) {
		t.Helper()
		if err := os.WriteFile(m.Current("part=p07", name), file, 0o644); err != nil {
			t.Fatal(err, m.Failures())
		}
	}
	before := counter(t, m, "io", "rchar")
	put("new.parquet")
	if read := counter(t, m, "io", "rchar") - before - int64(len(file)); read > mostRead {
		t.Errorf("an append read %d bytes beside its own", read)
	}
	if got := find(t, m, "latest/part=p07"); got != largeLogFiles/largeLogPartitions+1 {
		t.Errorf("find sees %d files in the partition after an append", got)
	}
	if read := counter(t, m, "io", "rchar") - before - int64(len(file)); read > mostRead {
		t.Errorf("an append and the listing after it read %d bytes beside its own", read)
	}

	for i := m.Latest(); i < 10; i++ {
		put(fmt.Sprint("more", i, ".parquet"))
	}
	harness.Eventually(t, atRestLimit, func() string {
		if _, err := os.Stat(filepath.Join(dir, "_delta_log", "_last_checkpoint")); err != nil {
			return "there is no checkpoint of version 10"
		}
		return ""
	})
	// The race detector takes many times as much.
	if most := counter(t, m, "status", "VmHWM") << 10; most > mostResident && os.Getenv(harness.EnvRace) == "" {
		t.Errorf("the mount took %d MB", most>>20)
	}
}
