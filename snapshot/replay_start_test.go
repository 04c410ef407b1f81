package snapshot

import (
	"fmt"
	"slices"
	"testing"
)

// bigCommit is a commit of so many files.
func bigCommit(v, files int) (lines []string) {
	for i := range files {
		lines = append(lines, addLine(fmt.Sprintf("part-%d-%d.parquet", v, i), 1))
	}
	return lines
}

func TestLoadingStartsWhereItCostsLeast(t *testing.T) {
	for files, want := range map[int][]string{
		// The checkpoint is opened all the same, as it must not contradict itself.
		1:    {checkpointName(4), CommitName(0), CommitName(1), CommitName(2), CommitName(3), CommitName(4), CommitName(5)},
		1000: {checkpointName(4), CommitName(5), checkpointName(4)},
	} {
		f := newFixture(t).plain()
		rows := []checkpointRow{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}}
		for v := 1; v <= 5; v++ {
			f.commit(int64(v), bigCommit(v, files)...)
			for i := 0; v < 5 && i < files; i++ {
				rows = append(rows, checkpointRow{Add: plainAdd(fmt.Sprintf("part-%d-%d.parquet", v, i))})
			}
		}
		f.write(checkpointName(4), encodeAs[checkpointRow](t, rows, nil))
		table, w := reopened(t, f, nil)
		if n := len(filesOf(t, at(t, table, 5))); n != 5*files {
			t.Errorf("%d files, want %d", n, 5*files)
		}
		if !slices.Equal(w.opened, want) {
			t.Errorf("%d files a commit: opened %q, want %q", files, w.opened, want)
		}
	}
}

func TestFirstVersionWantedIsLoadedAtOnceAndItsNeighboursTogether(t *testing.T) {
	f := newFixture(t).plain()
	rows := []checkpointRow{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}}
	for i := range 5000 {
		rows = append(rows, checkpointRow{Add: plainAdd(fmt.Sprint("f", i))})
	}
	f.write(checkpointName(10), encodeAs[checkpointRow](t, rows, nil))
	for v := int64(11); v <= 20; v++ {
		f.commit(v, addLine(fmt.Sprint("g", v), 1))
	}
	table := f.open()
	for _, step := range []struct {
		version int64
		want    string
	}{
		{18, "[{18 18}]"}, {20, "[{18 20}]"}, {15, "[{10 15} {18 20}]"}, {17, "[{10 20}]"},
	} {
		if n := len(filesOf(t, at(t, table, step.version))); n != 5000+int(step.version)-10 {
			t.Errorf("version %d has %d files", step.version, n)
		}
		if got := fmt.Sprint(table.life.coverage()); got != step.want {
			t.Errorf("after version %d the index covers %s, want %s", step.version, got, step.want)
		}
	}
}
