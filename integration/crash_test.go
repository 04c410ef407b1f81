package integration

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// crashPoint is what is waited for, in the table's own directories, before the
// server is killed.
type crashPoint struct {
	name    string
	reached func(table string, size int64, version int64) bool
}

func crashPoints() []crashPoint {
	staged := func(table string) int64 {
		var most int64
		paths, _ := filepath.Glob(filepath.Join(table, ".deltafs", "mounts", "*", "s*"))
		for _, p := range paths {
			if st, err := os.Lstat(p); err == nil && filepath.Ext(p) == "" {
				most = max(most, st.Size())
			}
		}
		return most
	}
	return []crashPoint{
		{"at once", func(string, int64, int64) bool { return true }},
		{"first bytes staged", func(table string, _, _ int64) bool { return staged(table) > 0 }},
		{"half staged", func(table string, size, _ int64) bool { return staged(table) > size/2 }},
		{"all staged", func(table string, size, _ int64) bool { return staged(table) >= size }},
		{"data file published", func(table string, _, version int64) bool {
			names, _ := filepath.Glob(filepath.Join(table, "*.parquet"))
			return len(names) > int(version)
		}},
		{"log entry written", func(table string, _, version int64) bool {
			_, err := os.Lstat(logFile(table, version+1))
			return err == nil
		}},
	}
}

// TestKilledMountLeavesOldOrNewState kills the server at seeded points of an
// append, mounts again and checks that the table is in the old or the new
// state, that a copy reported as done is there, that nothing is there twice and
// that the bytes of a complete file are kept. DELTAFS_CRASH_ROUNDS sets the
// number of rounds, DELTAFS_CRASH_SEED the seed.
func TestKilledMountLeavesOldOrNewState(t *testing.T) {
	rounds, seed := crashRounds(t), crashSeed(t)
	t.Logf("%d rounds, seed %d", rounds, seed)
	random := rand.New(rand.NewSource(seed))
	table := filepath.Join(t.TempDir(), "table")
	if _, err := fixture.Create(table, fixture.Spec{}); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	var want []fixture.Row
	outcomes := map[string]int{}
	version := int64(0)
	for round := range rounds {
		points := crashPoints()
		c := crash{
			table: table, version: version,
			point:  points[random.Intn(len(points))],
			jitter: time.Duration(random.Intn(2000)) * time.Microsecond,
			source: filepath.Join(work, fmt.Sprintf("r%d.parquet", round)),
			rows:   fixture.Rows(int64(1_000_000*(round+1)), 20_000),
		}
		if err := fixture.WriteParquet(c.source, c.rows); err != nil {
			t.Fatal(err)
		}
		committed := false
		t.Run(fmt.Sprintf("round %d at %s plus %v", round, c.point.name, c.jitter), func(t *testing.T) {
			c.t = t
			committed = c.run()
		})
		outcomes[fmt.Sprintf("%s: committed %v", c.point.name, committed)]++
		if committed {
			version++
			want = append(want, c.rows...)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%3d x %s", outcomes[o], o)
	}
	got, err := fixture.ReadRows(table, -1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the table holds %d rows, want %d", len(got), len(want))
	}
}

// crash is one round.
type crash struct {
	t       *testing.T
	table   string
	version int64
	point   crashPoint
	jitter  time.Duration
	source  string
	rows    []fixture.Row
}

// run copies the source in, kills the server on the way and says whether the
// copy was committed.
func (c *crash) run() bool {
	t := c.t
	t.Helper()
	m := harness.Start(t, c.table)
	name := filepath.Base(c.source)
	st, err := os.Stat(c.source)
	if err != nil {
		t.Fatal(err)
	}
	cp := exec.Command("cp", c.source, m.Current(name))
	if err := cp.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cp.Wait() }()
	var copied error
	ended := false
	deadline := time.Now().Add(30 * time.Second)
	for !ended && !c.point.reached(c.table, st.Size(), c.version) {
		select {
		case copied = <-done:
			ended = true
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("cp does not end")
		}
	}
	for until := time.Now().Add(c.jitter); time.Now().Before(until); {
	}
	m.Kill()
	if !ended {
		copied = <-done
	}
	return c.check(name, copied == nil)
}

// check mounts again and looks at what is there.
func (c *crash) check(name string, copied bool) bool {
	t := c.t
	t.Helper()
	again := &live{Mount: harness.Start(t, c.table), t: t, table: c.table}
	got, err := fixture.Versions(c.table)
	if err != nil {
		t.Fatal(err)
	}
	latest := got[len(got)-1]
	committed := latest == c.version+1
	if latest != c.version && !committed {
		t.Errorf("version %d after the crash, was %d", latest, c.version)
	}
	if copied && !committed {
		t.Error("cp succeeded, the file is not committed")
	}
	again.wantLatest(latest)
	if committed {
		again.wantSame(again.Current(name), c.source)
	} else {
		c.checkKept(again, name)
	}
	again.Unmount()
	return committed
}

// checkKept checks that what the crash interrupted is still whole as far as it
// had come, or was never begun.
func (c *crash) checkKept(again *live, name string) {
	t := c.t
	t.Helper()
	if _, err := os.Lstat(again.Current(name)); err == nil {
		t.Errorf("current/%s resolves, but is not committed", name)
	}
	source := again.read(c.source)
	for _, path := range again.kept() {
		if !bytes.Contains([]byte(filepath.Base(path)), []byte(name)) {
			continue
		}
		if data := again.read(path); len(data) > 0 && bytes.HasPrefix(source, data) {
			return
		}
	}
	switch c.point.name {
	case "half staged", "all staged", "data file published":
		t.Errorf("the bytes of %s are not kept: %q", name, again.kept())
	}
}
