package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/deltafs/deltafs/internal/store"
)

func refresh(t *testing.T, table *Table) Event {
	t.Helper()
	e, err := table.Refresh(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestRefreshFindsNewCommits(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1))
	table := f.open()
	wantPaths(t, table, 0, "a")
	if e := refresh(t, table); e != (Event{From: 0, To: 0}) {
		t.Errorf("nothing new: %+v", e)
	}
	f.commit(1, addLine("b", 1)).commit(2, removeLine("a")).commit(4, addLine("gap", 1))
	if e := refresh(t, table); e != (Event{From: 0, To: 2}) {
		t.Errorf("two commits and one beyond a gap: %+v", e)
	}
	wantPaths(t, table, 2, "b")
	f.write(CommitName(3), "")
	if e := refresh(t, table); e.To != 2 {
		t.Errorf("a commit that is still empty counts: %+v", e)
	}
}

func TestRefreshIgnoresACommitUntilItHasBytes(t *testing.T) {
	f := newFixture(t).plain().write(CommitName(1), "")
	table := f.open()
	if _, err := table.At(context.Background(), 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an empty commit: %v", err)
	}
	f.commit(1, addLine("a", 1))
	if e := refresh(t, table); e.Recreated {
		t.Errorf("a filled commit: %+v", e)
	}
	wantPaths(t, table, 1, "a")
}

func TestVersionsFindTheCommitAfterOneThatIsStillEmpty(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1))
	table := f.open()
	f.write(CommitName(1), "").commit(2, addLine("c", 1))
	if spans, err := table.Versions(context.Background()); err != nil || fmt.Sprint(spans) != "[{0 0}]" || table.Latest() != 2 {
		t.Errorf("versions %v, %v, latest %d", spans, err, table.Latest())
	}
	if _, err := table.At(context.Background(), 2); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a version after an empty commit: %v", err)
	}
	f.commit(1, addLine("b", 1))
	refresh(t, table)
	wantPaths(t, table, 2, "a b c")
}

func TestRefreshReportsCommitsThatVersionsFound(t *testing.T) {
	f := newFixture(t).plain()
	table := f.open()
	f.commit(1, addLine("a", 1))
	if spans, err := table.Versions(context.Background()); err != nil || spans[0].Last != 1 || table.Latest() != 1 {
		t.Errorf("versions %v, %v, latest %d", spans, err, table.Latest())
	}
	if e := refresh(t, table); e != (Event{From: 0, To: 1}) {
		t.Errorf("event %+v", e)
	}
}

func TestRecreatedTableSharesNothing(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1), addLine("same", 1)).commit(1, addLine("b", 1))
	table := f.open()
	old := at(t, table, 1)
	oldSame, _, err := old.ByPath(context.Background(), "same")
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, table, 1, "a b same")

	if err := os.RemoveAll(filepath.Join(f.dir, logDir)); err != nil {
		t.Fatal(err)
	}
	if e := refresh(t, table); e != (Event{From: 1, To: -1, Recreated: true}) {
		t.Errorf("deleted: %+v", e)
	}
	if table.Latest() != -1 {
		t.Errorf("latest of a deleted table is %d", table.Latest())
	}
	if _, err := table.At(context.Background(), 0); !errors.Is(err, ErrNotTable) {
		t.Errorf("version of a deleted table: %v", err)
	}
	if e := refresh(t, table); e != (Event{From: -1, To: -1}) {
		t.Errorf("still deleted: %+v", e)
	}

	f.mkdir()
	f.plain(addLine("same", 3)).commit(1, addLine("c", 1))
	if e := refresh(t, table); e != (Event{From: -1, To: 1, Recreated: true}) {
		t.Errorf("made again: %+v", e)
	}
	wantPaths(t, table, 1, "c same")
	for file, err := range at(t, table, 1).Files(context.Background()) {
		if err != nil || file.ID <= oldSame.ID {
			t.Errorf("%s has the old id %d: %v", file.Name, file.ID, err)
		}
	}
	if file, err := table.FileByID(context.Background(), oldSame.ID); err == nil {
		t.Errorf("an id of the old table leads to %+v", file)
	}
	// A snapshot at hand goes on showing what it showed.
	if totals, err := old.Totals(context.Background()); err != nil || totals.Files != 3 {
		t.Errorf("the old snapshot has %+v, %v", totals, err)
	}
}

func TestRecreationInOneStepIsNoticed(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1))
	table := f.open()
	wantPaths(t, table, 1, "a b")
	for _, more := range []int64{1, 3} {
		if err := os.RemoveAll(filepath.Join(f.dir, logDir)); err != nil {
			t.Fatal(err)
		}
		f.mkdir()
		f.plain(addLine("x", 1))
		for v := int64(1); v <= more; v++ {
			f.commit(v, addLine(fmt.Sprint("y", v), 1))
		}
		if e := refresh(t, table); !e.Recreated || e.To != more {
			t.Errorf("made again with %d commits: %+v", more, e)
		}
		if _, ok, err := at(t, table, more).ByPath(context.Background(), "a"); ok || err != nil {
			t.Errorf("a file of the old table is shown: %v", err)
		}
	}
}

func TestReplayRefusesACommitThatWasReplacedMeanwhile(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1))
	table := f.open()
	f.commit(1, addLine("other", 1))
	if s, err := table.At(context.Background(), 1); err == nil {
		t.Errorf("read %v from a log that is not the one listed", s.Version())
	}
	if e := refresh(t, table); !e.Recreated {
		t.Errorf("event %+v", e)
	}
	wantPaths(t, table, 1, "a other")
}

func TestVersionsNoticesLogCleanup(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1)).commit(2, addLine("c", 1))
	writeCheckpoint(t, f, 2, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()},
		checkpointRow{Add: plainAdd("a")}, checkpointRow{Add: plainAdd("b")}, checkpointRow{Add: plainAdd("c")})
	table := f.open()
	f.remove(CommitName(0))
	f.remove(CommitName(1))
	spans, err := table.Versions(context.Background())
	if err != nil || len(spans) != 1 || spans[0].First != 2 {
		t.Errorf("versions %v, %v", spans, err)
	}
	if _, err := table.At(context.Background(), 1); !errors.Is(err, ErrNoVersion) {
		t.Errorf("a cleaned version: %v", err)
	}
	if e := refresh(t, table); e.Recreated {
		t.Errorf("cleanup passes for a recreation: %+v", e)
	}
	wantPaths(t, table, 2, "a b c")
}

func TestAtNoticesLogCleanupByItself(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1))
	table := f.open()
	writeCheckpoint(t, f, 1, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()},
		checkpointRow{Add: plainAdd("a")}, checkpointRow{Add: plainAdd("b")})
	f.remove(CommitName(0))
	wantPaths(t, table, 1, "a b")
}

// countingStore counts the requests.
type countingStore struct {
	store.Store
	mu    sync.Mutex
	calls []string
}

func (s *countingStore) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *countingStore) Head(ctx context.Context, name string) (store.Info, error) {
	s.note("head " + name)
	return s.Store.Head(ctx, name)
}

func (s *countingStore) Open(ctx context.Context, name string) (store.Object, error) {
	s.note("open " + name)
	return s.Store.Open(ctx, name)
}

func TestRefreshCostsTwoRequestsWhenNothingIsNew(t *testing.T) {
	table, st := countedTable(t, newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1)))
	refresh(t, table)
	if len(st.calls) != 2 {
		t.Errorf("requests %q", st.calls)
	}
}

func TestConcurrentReadersLoadAVersionOnce(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1))
	for v := int64(1); v <= 20; v++ {
		f.commit(v, addLine(fmt.Sprint("f", v), 1))
	}
	local, err := store.OpenLocal(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	st := &countingStore{Store: local}
	table, err := Open(context.Background(), st, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			v := int64(20 - i%3)
			s, err := table.At(context.Background(), v)
			if err != nil {
				t.Error(err)
				return
			}
			if totals, err := s.Totals(context.Background()); err != nil || totals.Files != v+1 {
				t.Errorf("version %d has %d files: %v", v, totals.Files, err)
			}
			refresh(t, table)
		})
	}
	wg.Wait()
	opened := map[string]int{}
	for _, call := range st.calls {
		opened[call]++
	}
	if n := opened["open "+CommitName(5)]; n != 1 {
		t.Errorf("commit 5 was read %d times", n)
	}
}

func TestACancelledLoadDoesNotHurtOthers(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1))
	table := f.open()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := table.At(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	wantPaths(t, table, 1, "a b")
}
