package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// day returns a time in May 2024, in milliseconds after midnight of the day.
func day(d int, millis int64) time.Time {
	return time.Date(2024, 5, d, 0, 0, 0, 0, time.UTC).Add(time.Duration(millis) * time.Millisecond)
}

func wantTime(t *testing.T, table *Table, v int64, want time.Time) {
	t.Helper()
	got, ok, err := table.CommitTime(context.Background(), v)
	if err != nil || ok == want.IsZero() || !got.Equal(want) {
		t.Errorf("version %d was committed at %v (%v, %v), want %v", v, got, ok, err, want)
	}
}

func wantAsOf(t *testing.T, table *Table, when time.Time, want int64) {
	t.Helper()
	got, err := table.VersionAsOf(context.Background(), when)
	if want < 0 {
		if !errors.Is(err, ErrNoVersion) {
			t.Errorf("%v is version %d, %v; want none", when, got, err)
		}
		return
	}
	if err != nil || got != want {
		t.Errorf("%v is version %d, %v; want %d", when, got, err, want)
	}
}

func TestCommitTimesAreMadeToRise(t *testing.T) {
	f := newFixture(t).plain()
	times := []time.Time{day(1, 0), day(3, 0), day(2, 0), day(3, 0), day(4, 0)}
	for v, at := range times {
		if v > 0 {
			f.commit(int64(v), `{"commitInfo":{"timestamp":1}}`)
		}
		f.setTime(CommitName(int64(v)), at)
	}
	table := f.open()
	for v, want := range []time.Time{day(1, 0), day(3, 0), day(3, 1), day(3, 2), day(4, 0)} {
		wantTime(t, table, int64(v), want)
		wantAsOf(t, table, want, int64(v))
	}
	wantTime(t, table, 5, time.Time{})
	wantAsOf(t, table, day(1, -1), -1)
	wantAsOf(t, table, day(2, 0), 0)
	wantAsOf(t, table, day(3, 3), 3)
	wantAsOf(t, table, time.Now(), 4)
	wantAsOf(t, table, time.Now().Add(time.Hour), -1)
}

func TestATimeBeforeTheNextMillisecondIsTheCommits(t *testing.T) {
	f := newFixture(t).plain()
	f.setTime(CommitName(0), day(1, 5).Add(900*time.Microsecond))
	table := f.open()
	wantTime(t, table, 0, day(1, 5))
	wantAsOf(t, table, day(1, 5), 0)
	wantAsOf(t, table, day(1, 4), -1)
}

func TestACommitFromAFastClockHasItsTime(t *testing.T) {
	f := newFixture(t).plain()
	future := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	f.setTime(CommitName(0), future)
	table := f.open()
	wantAsOf(t, table, future, 0)
	wantAsOf(t, table, future.Add(time.Millisecond), -1)
}

func commitAt(at time.Time) string {
	return fmt.Sprintf(`{"commitInfo":{"inCommitTimestamp":%d,"operation":"WRITE"}}`, at.UnixMilli())
}

func TestInCommitTimestampsFromTheirVersionOn(t *testing.T) {
	f := newFixture(t).plain()
	f.commit(1, `{"commitInfo":{}}`)
	f.commit(2, commitAt(day(10, 0)), metadataLine("", "delta.enableInCommitTimestamps", "true",
		"delta.inCommitTimestampEnablementVersion", "2", "delta.inCommitTimestampEnablementTimestamp", fmt.Sprint(day(10, 0).UnixMilli())))
	f.commit(3, commitAt(day(11, 0)), addLine("a", 1))
	f.commit(4, addLine("b", 1), commitAt(day(10, 500)))
	f.commit(5, addLine("c", 1))
	// The files were copied without their times.
	for v, at := range []time.Time{day(20, 0), day(20, 0), day(20, 0), day(20, 0), day(20, 0), day(12, 0)} {
		f.setTime(CommitName(int64(v)), at)
	}
	table := f.open()
	for v, want := range []time.Time{day(20, 0), day(20, 1), day(10, 0), day(11, 0), day(11, 1), day(12, 0)} {
		wantTime(t, table, int64(v), want)
	}
	wantAsOf(t, table, day(10, 0), 2)
	wantAsOf(t, table, day(11, 0), 3)
	wantAsOf(t, table, day(30, 0), 5)
	wantAsOf(t, table, day(9, 0), -1)
}

func TestInCommitTimestampsFromTheStart(t *testing.T) {
	f := newFixture(t).commit(0, commitAt(day(1, 0)), protocolLine, metadataLine("", "delta.enableInCommitTimestamps", "true"))
	f.commit(1, commitAt(day(2, 0)))
	table := f.open()
	wantTime(t, table, 0, day(1, 0))
	wantTime(t, table, 1, day(2, 0))
	f.commit(2, commitAt(day(3, 0)))
	refresh(t, table)
	wantTime(t, table, 2, day(3, 0))
	wantAsOf(t, table, day(2, 5), 1)
}

func TestCheckpointOnlyVersionsHaveNoTime(t *testing.T) {
	f := threeVersions(t)
	for v := int64(0); v <= 3; v++ {
		f.setTime(CommitName(v), day(int(v)+1, 0))
	}
	f.remove(CommitName(3))
	f.remove(CommitName(2))
	f.setTime(checkpointName(2), day(5, 0))
	table := f.open()
	wantTime(t, table, 1, day(2, 0))
	wantTime(t, table, 2, time.Time{})
	wantAsOf(t, table, day(4, 0), 1)
	wantAsOf(t, table, day(6, 0), 2)
}

func TestATimeWhoseVersionCannotBeRebuiltIsNoOther(t *testing.T) {
	f := threeVersions(t)
	for v := int64(0); v <= 3; v++ {
		f.setTime(CommitName(v), day(int(v)+1, 0))
	}
	f.remove(CommitName(0))
	table := f.open()
	wantAsOf(t, table, day(2, 0), -1)
	wantAsOf(t, table, day(3, 0), 2)
	wantAsOf(t, table, day(4, 0), 3)
}

func TestTimesOfATableWithACorruptTail(t *testing.T) {
	f := newFixture(t).plain().write(CommitName(1), "{")
	f.setTime(CommitName(0), day(1, 0))
	f.setTime(CommitName(1), day(2, 0))
	table := f.open()
	wantTime(t, table, 0, day(1, 0))
	wantAsOf(t, table, day(1, 5), 0)
}

// TestThirdPartyInCommitTimestamps: the table's second commit lies years before
// the first one, and the times of the files say nothing.
func TestThirdPartyInCommitTimestamps(t *testing.T) {
	root, _ := thirdPartyTables(t)
	table, err := openTable(t, filepath.Join(root, "data/delta-rs/cdc_ict_table"))
	if err != nil {
		t.Fatal(err)
	}
	times := []int64{1783874203271, 1783874203272, 1783874212175, 1783874213881}
	for v, want := range times {
		got, ok, err := table.CommitTime(t.Context(), int64(v))
		if err != nil || !ok || got.UnixMilli() != want {
			t.Errorf("version %d is of %v, %v, %v; want %d", v, got, ok, err, want)
		}
		if want > time.Now().UnixMilli() {
			continue
		}
		for delta, expected := range map[int64]int64{0: int64(v), -1: int64(v) - 1} {
			if asOf, err := table.VersionAsOf(t.Context(), time.UnixMilli(want+delta)); asOf != expected && (expected >= 0 || err == nil) {
				t.Errorf("as of %d: version %d, %v; want %d", want+delta, asOf, err, expected)
			}
		}
	}
}
