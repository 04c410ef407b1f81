package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// localTable makes a table with the given versions in dir, by hand.
func localTable(t *testing.T, dir string, versions ...actions) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "_delta_log"), 0o755); err != nil {
		t.Fatal(err)
	}
	for v, as := range versions {
		var file []byte
		for _, a := range as {
			line, err := action.Encode(a)
			if err != nil {
				t.Fatal(err)
			}
			file = append(append(file, line...), '\n')
		}
		if err := os.WriteFile(filepath.Join(dir, snapshot.CommitName(int64(v))), file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func openTable(t *testing.T, dir string) *snapshot.Table {
	t.Helper()
	st, err := store.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := snapshot.Open(context.Background(), st, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// appendMany makes count commits of a file each, with names that start with
// who.
func appendMany(table *snapshot.Table, c *committer, who string, count int) error {
	ctx := context.Background()
	for i := range count {
		path := fmt.Sprintf("%s-%d.parquet", who, i)
		v, err := c.commit(ctx, appendOf(table.Latest(), path))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if table.Latest() < v {
			return fmt.Errorf("%s: the table is at %d after the commit of %d", path, table.Latest(), v)
		}
		as, err := table.ReadCommit(ctx, v)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(as, func(a action.Action) bool {
			add, ok := a.(*action.Add)
			return ok && add.Path == path
		}) {
			return fmt.Errorf("%s: version %d holds another commit", path, v)
		}
	}
	return nil
}

// wantAppends checks that the commits behind the first version hold count files,
// one or more each, with no gap, no file twice and nothing else in the log. It
// returns the latest version.
func wantAppends(t *testing.T, dir string, count int) int64 {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "_delta_log"))
	if err != nil {
		t.Fatal(err)
	}
	latest := int64(len(entries)) - 1
	for v := range latest + 1 {
		if name := "_delta_log/" + entries[v].Name(); name != snapshot.CommitName(v) {
			t.Fatalf("log holds %s in the place of version %d", name, v)
		}
	}
	table := openTable(t, dir)
	paths := map[string]bool{}
	for v := int64(1); v <= latest; v++ {
		as, err := table.ReadCommit(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		before := len(paths)
		for _, a := range as {
			if add, ok := a.(*action.Add); ok {
				if paths[add.Path] {
					t.Errorf("%s is added twice", add.Path)
				}
				paths[add.Path] = true
			}
		}
		if len(paths) == before {
			t.Errorf("version %d adds nothing", v)
		}
	}
	s, err := table.At(context.Background(), latest)
	if err != nil {
		t.Fatal(err)
	}
	if totals, err := s.Totals(context.Background()); err != nil || totals.Files != int64(count) || len(paths) != count {
		t.Errorf("%d files in %d adds (%v), want %d", totals.Files, len(paths), err, count)
	}
	return latest
}

func TestAppendsOfManyMountsLoseNothing(t *testing.T) {
	const mounts, writers, appends = 3, 3, 6
	dir := t.TempDir()
	localTable(t, dir, firstVersion())
	var wg sync.WaitGroup
	for m := range mounts {
		table := openTable(t, dir)
		c := newCommitter(table, Options{})
		for w := range writers {
			wg.Go(func() {
				if err := appendMany(table, c, fmt.Sprintf("m%d-w%d", m, w), appends); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	wantAppends(t, dir, mounts*writers*appends)
}

func TestOneOfTwoReplacementsWins(t *testing.T) {
	dir := t.TempDir()
	localTable(t, dir, firstVersion(), actions{testAdd("old.parquet")})
	errs := make([]error, 2)
	versions := make([]int64, 2)
	var wg sync.WaitGroup
	for i := range errs {
		c := newCommitter(openTable(t, dir), Options{})
		wg.Go(func() {
			versions[i], errs[i] = c.commit(context.Background(), &TxnSpec{Operation: "WRITE", Base: 1,
				Actions: actions{testRemove("old.parquet"), testAdd(fmt.Sprintf("new-%d.parquet", i))}})
		})
	}
	wg.Wait()
	winner := slices.Index(errs, nil)
	if winner < 0 || versions[winner] != 2 {
		t.Fatalf("errors %v, versions %v", errs, versions)
	}
	if loser := errs[1-winner]; !errors.Is(loser, ErrConflict) {
		t.Errorf("loser got %v, want ErrConflict", loser)
	} else {
		wantText(t, loser, "old.parquet", "@v2", "WRITE")
	}
	s, err := openTable(t, dir).At(context.Background(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var live []string
	for f, err := range s.Files(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, f.Path)
	}
	if want := []string{fmt.Sprintf("new-%d.parquet", winner)}; !slices.Equal(live, want) {
		t.Errorf("files %v, want %v", live, want)
	}
}

// The environment tells a copy of the test binary which table to append to,
// and under which name.
const (
	envTable = "DELTAFS_TEST_APPEND_TABLE"
	envName  = "DELTAFS_TEST_APPEND_NAME"
	// appendsPerProcess is how often it appends.
	appendsPerProcess = 25
)

// TestAppenderProcess is what TestAppendsOfManyProcessesLoseNothing runs in
// each of its processes. On its own it does nothing.
func TestAppenderProcess(t *testing.T) {
	dir := os.Getenv(envTable)
	if dir == "" {
		return
	}
	table := openTable(t, dir)
	c := newCommitter(table, Options{EngineInfo: "deltafs/test"})
	if _, err := io.ReadAll(os.Stdin); err != nil { // until all are ready
		t.Fatal(err)
	}
	if err := appendMany(table, c, os.Getenv(envName), appendsPerProcess); err != nil {
		t.Fatal(err)
	}
}

func TestAppendsOfManyProcessesLoseNothing(t *testing.T) {
	const processes = 8
	dir := t.TempDir()
	first := firstVersion("delta.enableInCommitTimestamps", "true")
	localTable(t, dir, append(actions{&action.CommitInfo{Raw: []byte(`{"inCommitTimestamp":1}`)}}, first...))
	var running []*exec.Cmd
	var outputs []*bytes.Buffer
	var gates []io.Closer
	for i := range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAppenderProcess$")
		cmd.Env = append(os.Environ(), envTable+"="+dir, fmt.Sprintf("%s=p%d", envName, i))
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		gate, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running, outputs, gates = append(running, cmd), append(outputs, out), append(gates, gate)
	}
	for _, gate := range gates {
		gate.Close()
	}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, strings.TrimSpace(outputs[i].String()))
		}
	}
	if latest := wantAppends(t, dir, processes*appendsPerProcess); latest != processes*appendsPerProcess {
		t.Errorf("%d commits of mounts that share nothing", latest)
	}
	wantGrowingTimes(t, openTable(t, dir))
}

// wantGrowingTimes checks the in-commit timestamps from version 1 on.
func wantGrowingTimes(t *testing.T, table *snapshot.Table) {
	t.Helper()
	var last int64
	for v := int64(1); v <= table.Latest(); v++ {
		as, err := table.ReadCommit(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		info, ok := as[0].(*action.CommitInfo)
		if !ok {
			t.Fatalf("version %d begins with a %s action", v, as[0].Kind())
		}
		at, ok := info.InCommitTimestamp()
		if !ok || at <= last {
			t.Errorf("version %d: commit time %d after %d", v, at, last)
		}
		last = at
	}
}
