package snapshot

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// filesOf returns the files of a version.
func filesOf(t *testing.T, s *Snapshot) (out []File) {
	t.Helper()
	for f, err := range s.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// checkpointed is a table whose version 2 has a checkpoint of a, b and c, with
// statistics that name the file, and whose version 3 adds d and removes c.
func checkpointed(t *testing.T) *fixture {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1)).commit(2, addLine("c", 1))
	writeStatsCheckpoint(t, f, 2, "a", "b", "c")
	return f.commit(3, addLine("d", 1), removeLine("c"))
}

func writeStatsCheckpoint(t *testing.T, f *fixture, v int64, names ...string) {
	t.Helper()
	rows := []checkpointRow{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}}
	for _, name := range names {
		add := plainAdd(name)
		add.Stats = "stats of " + name
		rows = append(rows, checkpointRow{Add: add})
	}
	writeCheckpoint(t, f, v, rows...)
}

func TestAddsAreFoundAfterTheLogWasCleanedUp(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture, table *Table)
		// stats is what the adds of a, b and d come with; "" is a commit.
		stats string
	}{
		"nothing": {func(*fixture, *Table) {}, "stats of a, stats of b, "},
		"newer checkpoint": {func(f *fixture, table *Table) {
			writeStatsCheckpoint(t, f, 3, "d", "b", "a")
			f.commit(4, addLine("e", 1))
			refresh(t, table)
			for v := range int64(4) {
				f.remove(CommitName(v))
			}
			f.remove(checkpointName(2))
		}, "stats of a, stats of b, stats of d"},
		"checkpoint removed": {func(f *fixture, _ *Table) { f.remove(checkpointName(2)) }, ", , "},
		"other rows":         {func(f *fixture, _ *Table) { writeStatsCheckpoint(t, f, 2, "x", "c", "b", "a") }, "stats of a, stats of b, "},
		"checkpoint damaged": {func(f *fixture, _ *Table) { f.write(checkpointName(2), "PAR1") }, ", , "},
		"commit removed": {func(f *fixture, table *Table) {
			writeStatsCheckpoint(t, f, 4, "d", "b", "a")
			f.commit(4, `{"commitInfo":{}}`)
			refresh(t, table)
			f.remove(CommitName(3))
		}, "stats of a, stats of b, stats of d"},
	} {
		t.Run(name, func(t *testing.T) {
			f := checkpointed(t)
			f.remove(CommitName(0)) // so that the checkpoint is loaded
			table := f.open()
			s := at(t, table, 3)
			files := filesOf(t, s)
			f.commit(0, protocolLine, metadataLine(""), addLine("a", 1))
			c.change(f, table)
			adds, err := s.Adds(t.Context(), files...)
			if err != nil {
				t.Fatal(err)
			}
			var stats []string
			for i, add := range adds {
				if add.Path != files[i].Path {
					t.Errorf("the add of %s is that of %s", files[i].Path, add.Path)
				}
				stats = append(stats, add.Stats)
			}
			if got := strings.Join(stats, ", "); got != c.stats {
				t.Errorf("the statistics are %q, want %q", got, c.stats)
			}
		})
	}
}

func TestAddThatTheLogNoLongerHoldsIsRefusedByName(t *testing.T) {
	f := checkpointed(t)
	f.remove(CommitName(0))
	table := f.open()
	files := filesOf(t, at(t, table, 2))
	s := at(t, table, 3)
	writeStatsCheckpoint(t, f, 3, "a", "b", "d")
	for v := int64(1); v <= 2; v++ {
		f.remove(CommitName(v))
	}
	f.remove(checkpointName(2))
	_, err := s.Adds(t.Context(), files...)
	if !errors.Is(err, ErrNoVersion) || !strings.Contains(err.Error(), "c: the log no longer holds the add") {
		t.Errorf("adds of %d files: %v", len(files), err)
	}
	if adds, err := s.Adds(t.Context(), files[:2]...); err != nil || adds[0].Path != "a" || adds[1].Path != "b" {
		t.Errorf("adds of files that live on: %v, %v", adds, err)
	}
}

func TestAddOfAPathAddedAgainIsNotTakenForTheOneBefore(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, removeLine("a")).commit(2, addLine("a", 2))
	table := f.open()
	old := filesOf(t, at(t, table, 0))
	s := at(t, table, 2)
	add := plainAdd("a")
	add.Size = 2
	writeCheckpoint(t, f, 2, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()}, checkpointRow{Add: add})
	f.remove(CommitName(0))
	f.remove(CommitName(1))
	if adds, err := s.Adds(t.Context(), old...); !errors.Is(err, ErrNoVersion) {
		t.Errorf("got %+v, %v", adds, err)
	}
	if adds, err := s.Adds(t.Context(), filesOf(t, s)...); err != nil || adds[0].Size != 2 {
		t.Errorf("got %+v, %v", adds, err)
	}
}

func TestAddsComeInTheOrderOfTheFiles(t *testing.T) {
	f := checkpointed(t)
	f.remove(CommitName(0))
	s := at(t, f.open(), 3)
	files := filesOf(t, s)
	files = append(files, files[1], files[0])
	slices.Reverse(files)
	adds, err := s.Adds(t.Context(), files...)
	if err != nil {
		t.Fatal(err)
	}
	for i, add := range adds {
		if add.Path != files[i].Path {
			t.Errorf("add %d is of %s, want %s", i, add.Path, files[i].Path)
		}
	}
}
