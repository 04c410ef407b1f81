package snapshot

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/store"
)

func (s *countingStore) List(ctx context.Context, prefix, startAfter, delimiter string) iter.Seq2[store.Info, error] {
	s.note("list " + prefix)
	return s.Store.List(ctx, prefix, startAfter, delimiter)
}

// countedTable opens the table on storage that counts the requests.
func countedTable(t *testing.T, f *fixture) (*Table, *countingStore) {
	t.Helper()
	local, err := store.OpenLocal(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	st := &countingStore{Store: local}
	table, err := Open(context.Background(), st, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	st.calls = nil
	return table, st
}

func wantVersion(t *testing.T, table *Table, v int64, want bool) {
	t.Helper()
	if got, err := table.HasVersion(context.Background(), v); err != nil || got != want {
		t.Errorf("version %d: %v, %v, want %v", v, got, err, want)
	}
}

func TestVersionsOfALongLogNeedNoListing(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t).plain()
	for v := int64(1); v <= 500; v++ {
		f.commit(v, addLine(fmt.Sprint("f", v), 1))
	}
	table, st := countedTable(t, f)
	for v := int64(501); v <= 520; v++ {
		f.commit(v, addLine(fmt.Sprint("f", v), 1))
		refresh(t, table)
		for _, version := range []int64{0, 7, 250, v} {
			wantVersion(t, table, version, true)
		}
		for _, version := range []int64{-1, v + 1, 1 << 60} {
			wantVersion(t, table, version, false)
		}
		spans, err := table.Versions(ctx)
		if err != nil || fmt.Sprint(spans) != fmt.Sprintf("[{0 %d}]", v) {
			t.Fatalf("versions %v, %v", spans, err)
		}
	}
	if i := slices.IndexFunc(st.calls, func(call string) bool { return !strings.HasPrefix(call, "head ") }); i >= 0 {
		t.Errorf("asked for %q", st.calls[i])
	}
	if perCommit := len(st.calls) / 20; perCommit > 20 {
		t.Errorf("%d requests for each commit", perCommit)
	}
}

func TestHasVersionNoticesWhatHappenedToTheLog(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1))
	for v := int64(1); v <= 9; v++ {
		f.commit(v, addLine(fmt.Sprint("f", v), 1))
	}
	checkpoint := func(v int64) {
		rows := []checkpointRow{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}, {Add: plainAdd("a")}}
		for i := int64(1); i <= v; i++ {
			rows = append(rows, checkpointRow{Add: plainAdd(fmt.Sprint("f", i))})
		}
		writeCheckpoint(t, f, v, rows...)
	}
	table := f.open()
	// Cleaned up to a checkpoint that came after the table was opened.
	checkpoint(4)
	for v := range int64(4) {
		f.remove(CommitName(v))
	}
	wantVersion(t, table, 3, false)
	wantVersion(t, table, 4, true)
	wantVersion(t, table, 9, true)
	// A commit is missing, and comes back.
	text, err := os.ReadFile(filepath.Join(f.dir, CommitName(7)))
	if err != nil {
		t.Fatal(err)
	}
	f.remove(CommitName(7))
	checkpoint(8)
	wantVersion(t, table, 7, false)
	wantVersion(t, table, 6, true)
	wantVersion(t, table, 8, true)
	f.write(CommitName(7), string(text))
	wantVersion(t, table, 7, true)
	// The start of the newest versions goes last.
	f.remove(filepath.Join(logDir, "00000000000000000004.checkpoint.parquet"))
	wantVersion(t, table, 7, false)
	wantVersion(t, table, 8, true)
	if spans, err := table.Versions(context.Background()); err != nil || fmt.Sprint(spans) != "[{8 9}]" {
		t.Errorf("versions %v, %v", spans, err)
	}
}

// A listing and a timeline that were extended by and by say what new ones do.
func TestExtendedListingEqualsANewOne(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 0))
		f := newFixture(t).plain()
		if random.IntN(2) == 0 {
			f = newFixture(t)
			f.commit(0, `{"commitInfo":{"inCommitTimestamp":5000}}`, protocolLine,
				metadataLine("", "delta.enableInCommitTimestamps", "true"))
		}
		table := f.open()
		clock := time.Now().Add(-time.Hour)
		for v := int64(1); v < 30; {
			for range 1 + random.IntN(3) {
				f.commit(v, fmt.Sprintf(`{"commitInfo":{"inCommitTimestamp":%d}}`, 5000+v*int64(1+random.IntN(3))), addLine(fmt.Sprint("f", v), 1))
				clock = clock.Add(time.Duration(random.IntN(4)-1) * time.Millisecond)
				f.setTime(CommitName(v), clock)
				v++
			}
			if random.IntN(4) == 0 {
				if err := table.relisted(ctx); err != nil {
					t.Fatal(err)
				}
			}
			refresh(t, table)
			compareListings(t, table, f.open())
		}
	}
}

func compareListings(t *testing.T, extended, fresh *Table) {
	t.Helper()
	a, b := extended.life.log(), fresh.life.log()
	if fmt.Sprint(a.commits.all) != fmt.Sprint(b.commits.all) || !slices.Equal(a.spans, b.spans) || a.latest != b.latest {
		t.Fatalf("extended %v %v %d\nnew      %v %v %d", a.commits.all, a.spans, a.latest, b.commits.all, b.spans, b.latest)
	}
	ta, errA := extended.life.timelineOf(context.Background())
	tb, errB := fresh.life.timelineOf(context.Background())
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if !slices.Equal(ta.times.all, tb.times.all) || ta.split != tb.split || ta.from != tb.from {
		t.Fatalf("extended %v from %d at %d\nnew      %v from %d at %d", ta.times.all, ta.from, ta.split, tb.times.all, tb.from, tb.split)
	}
}

func TestCommitTimesOfALongLogNeedNoReplay(t *testing.T) {
	f := newFixture(t).plain()
	for v := int64(1); v <= 100; v++ {
		f.commit(v, addLine(fmt.Sprint("f", v), 1))
	}
	table, st := countedTable(t, f)
	at := func() int {
		st.calls = nil
		if _, ok, err := table.CommitTime(context.Background(), 50); !ok || err != nil {
			t.Fatal(ok, err)
		}
		return len(st.calls)
	}
	if got := at(); got > inCommitLook {
		t.Errorf("%d requests for the first time", got)
	}
	f.commit(101, addLine("last", 1))
	refresh(t, table)
	if got := at(); got > 1 {
		t.Errorf("%d requests after a commit", got)
	}
}

// The times change their nature when a commit turns the feature on or off.
func TestCommitTimesFollowTheMetadata(t *testing.T) {
	f := newFixture(t).plain()
	table := f.open()
	own := func(v int64) string { return fmt.Sprintf(`{"commitInfo":{"inCommitTimestamp":%d}}`, 1_000_000*v) }
	for v := int64(1); v < 40; v++ {
		switch {
		case v == 12:
			f.commit(v, own(v), metadataLine("", "delta.enableInCommitTimestamps", "true",
				"delta.inCommitTimestampEnablementVersion", "12", "delta.inCommitTimestampEnablementTimestamp", "12000000"))
		case v > 12 && v < 20:
			f.commit(v, own(v), addLine(fmt.Sprint("f", v), 1))
		case v == 20:
			f.commit(v, metadataLine("", "delta.enableInCommitTimestamps", "false"))
		default:
			f.commit(v, addLine(fmt.Sprint("f", v), 1))
		}
		refresh(t, table)
		compareListings(t, table, f.open())
	}
}
