package integration

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// TestKilledMountLeavesEachOfManyAppendsWholeOrAbsent kills the server while
// many processes close their files, so that commits are shared, and mounts
// again: each file is in the table whole and once, or not at all, no data file
// is left that nobody refers to, and a copy reported as done is there. The
// number of rounds is a twentieth of DELTAFS_CRASH_ROUNDS.
func TestKilledMountLeavesEachOfManyAppendsWholeOrAbsent(t *testing.T) {
	random := rand.New(rand.NewSource(crashSeed(t)))
	table := filepath.Join(t.TempDir(), "table")
	if _, err := fixture.Create(table, fixture.Spec{}); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	total := map[string]string{} // committed so far: name and source
	for round := range max(crashRounds(t)/20, 3) {
		published, jitter := 1+random.Intn(appendersAtOnce), time.Duration(random.Intn(2000))*time.Microsecond
		t.Run(fmt.Sprintf("round %d at %d data files plus %v", round, published, jitter), func(t *testing.T) {
			killAmongAppends(t, table, work, round, published, jitter, total)
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	commits, err := fixture.Versions(table)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files in %d commits", len(total), len(commits)-1)
}

const appendersAtOnce = 12

// killAmongAppends is one round: the server is killed some time after so many
// data files were published.
func killAmongAppends(t *testing.T, table, work string, round, published int, jitter time.Duration, total map[string]string) {
	m := harness.Start(t, table)
	sources := make([]string, appendersAtOnce)
	copies := make([]*exec.Cmd, appendersAtOnce)
	for i := range copies {
		name := fmt.Sprintf("r%d-%d.parquet", round, i)
		sources[i] = filepath.Join(work, name)
		if err := fixture.WriteParquet(sources[i], fixture.Rows(int64(round*1000+i*10), 500)); err != nil {
			t.Fatal(err)
		}
		copies[i] = exec.Command("cp", sources[i], m.Current(name))
	}
	for _, cp := range copies {
		if err := cp.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); len(dataFiles(t, table)) < len(total)+published; {
		if time.Now().After(deadline) {
			t.Fatal("the copies do not get on")
		}
	}
	for until := time.Now().Add(jitter); time.Now().Before(until); {
	}
	m.Kill()
	done := map[string]bool{}
	for i, cp := range copies {
		done[sources[i]] = cp.Wait() == nil
	}
	again := startAt(t, table)
	files, err := fixture.Replay(table, -1)
	if err != nil {
		t.Fatal(err)
	}
	committed := map[string]int{}
	for _, f := range files {
		committed[f.Tags["deltafs.name"]]++
	}
	for _, source := range sources {
		name := filepath.Base(source)
		switch committed[name] {
		case 1:
			total[name] = source
			again.wantSame(again.Current(name), source)
		case 0:
			if done[source] {
				t.Errorf("cp of %s succeeded, the file is not committed", name)
			}
			if _, err := os.Lstat(again.Current(name)); err == nil {
				t.Errorf("current/%s resolves, but is not committed", name)
			}
		default:
			t.Errorf("%s is committed %d times", name, committed[name])
		}
	}
	if len(files) != len(total) {
		t.Errorf("the table holds %d files, want %d", len(files), len(total))
	}
	if objects := dataFiles(t, table); len(objects) != len(files) {
		t.Errorf("%d data files for %d in the table", len(objects), len(files))
	}
	again.Unmount()
}

func dataFiles(t *testing.T, table string) []string {
	t.Helper()
	objects, err := filepath.Glob(filepath.Join(table, "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
