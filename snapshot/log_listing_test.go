package snapshot

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/deltafs/deltafs/internal/store"
)

func TestLogNamesAreStrict(t *testing.T) {
	const v = "00000000000000000012"
	names := newLogNames()
	for base, want := range map[string]string{
		v + ".json":               "12 commit",
		v + ".checkpoint.parquet": "12 kind 0 1/1",
		v + ".checkpoint.0000000002.0000000003.parquet":                   "12 kind 1 2/3",
		v + ".checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json":       "12 kind 2 1/1",
		v + ".checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet":    "12 kind 2 1/1",
		v + ".checkpoint.0000000004.0000000003.parquet":                   "",
		v + ".checkpoint.0000000000.0000000003.parquet":                   "",
		v + ".checkpoint.2.3.parquet":                                     "",
		v + ".checkpoint.80a083e8.json":                                   "",
		v + ".checkpoint.json":                                            "",
		v + ".crc":                                                        "",
		v + "." + v + ".compacted.json":                                   "",
		"12.json":                                                         "",
		"0" + v + ".json":                                                 "",
		"99999999999999999999.json":                                       "",
		"._" + v + ".json":                                                "",
		"." + v + ".json.crc":                                             "",
		v + ".json.tmp":                                                   "",
		v + ".JSON":                                                       "",
		"_last_checkpoint":                                                "",
		"+000000000000000012.json":                                        "",
		v + ".80a083e8-7026-4e79-81be-64bd76c43a11.json":                  "",
		v + ".checkpoint.parquet.80a083e8-7026-4e79-81be-64bd76c43a11":    "",
		v + ".checkpoint.99999999999999999999.99999999999999999999.parqu": "",
	} {
		n, ok := names.parse(base)
		got := ""
		if ok && n.commit {
			got = fmt.Sprintf("%d commit", n.version)
		} else if ok {
			got = fmt.Sprintf("%d kind %d %d/%d", n.version, n.kind, n.part, n.parts)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", base, got, want)
		}
	}
}

func commitsFile(vs ...int64) (out []commitFile) {
	for _, v := range vs {
		out = append(out, commitFile{v, stamp{Size: 1}})
	}
	return out
}

func TestListingVersions(t *testing.T) {
	checkpoints := func(vs ...int64) (out []checkpointFile) {
		for _, v := range vs {
			out = append(out, checkpointFile{version: v})
		}
		return out
	}
	empty := commitsFile(0, 1, 2, 3)
	empty[2].info.Size = 0
	for _, c := range []struct {
		commits     []commitFile
		checkpoints []checkpointFile
		want        string
	}{
		{commitsFile(0, 1, 2), nil, "[{0 2}]"},
		{commitsFile(1, 2), nil, "[]"},
		{commitsFile(0, 2, 3), nil, "[{0 0}]"},
		{commitsFile(0, 1, 8, 9), checkpoints(8), "[{0 1} {8 9}]"},
		{commitsFile(9, 11), checkpoints(10), "[{10 11}]"},
		{commitsFile(5, 6, 7), checkpoints(3), "[{3 3}]"},
		{nil, checkpoints(10), "[{10 10}]"},
		{commitsFile(0, 1), checkpoints(1, 4), "[{0 1} {4 4}]"},
		{commitsFile(0, 1, 3), checkpoints(2, 2, 3), "[{0 3}]"},
		{empty, checkpoints(3), "[{0 1} {3 3}]"},
	} {
		l := &listing{commits: newSeries(c.commits), checkpoints: c.checkpoints}
		if n := len(c.commits); n > 0 {
			l.latest = c.commits[n-1].version
		}
		if n := len(c.checkpoints); n > 0 {
			l.latest = max(l.latest, c.checkpoints[n-1].version)
		}
		if got := fmt.Sprint(l.versions()); got != c.want {
			t.Errorf("commits %v, checkpoints %v: %s, want %s", c.commits, c.checkpoints, got, c.want)
		}
	}
}

func TestListingNeedsEveryPartOfACheckpoint(t *testing.T) {
	f := newFixture(t).plain()
	part := func(v, p, n int, data string) {
		f.write(fmt.Sprintf("%s/%020d.checkpoint.%010d.%010d.parquet", logDir, v, p, n), data)
	}
	part(3, 1, 2, "x")
	part(4, 1, 2, "x")
	part(4, 2, 2, "")
	part(5, 2, 2, "x")
	part(6, 1, 2, "x")
	part(6, 2, 2, "x")
	part(7, 1, 3, "x")
	part(7, 2, 3, "x")
	part(7, 1, 2, "x")
	part(7, 3, 3, "x")
	part(8, 1, 999999999, "x")
	f.write(fmt.Sprintf("%s/%020d.checkpoint.parquet", logDir, 9), "")
	st, err := store.OpenLocal(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := list(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range l.checkpoints {
		got += fmt.Sprintf("%d/%d ", c.version, len(c.parts))
	}
	if got != "6/2 7/3 " {
		t.Errorf("checkpoints %s", got)
	}
}

func TestListingPrefersTheBestCheckpoint(t *testing.T) {
	f := newFixture(t).plain()
	for _, name := range []string{
		"00000000000000000004.checkpoint.parquet",
		"00000000000000000004.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
		"00000000000000000004.checkpoint.0000000001.0000000001.parquet",
		"00000000000000000002.checkpoint.parquet",
		"00000000000000000009.checkpoint.parquet",
	} {
		f.write(logDir+"/"+name, "x")
	}
	st, err := store.OpenLocal(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := list(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range l.checkpointsUpTo(5) {
		got += fmt.Sprintf("%d:%d ", c.version, c.kind)
	}
	if got != "4:2 4:1 4:0 2:0 " {
		t.Errorf("checkpoints %s", got)
	}
}

func TestOpenWithoutALogIsNoTable(t *testing.T) {
	for name, prepare := range map[string]func(*fixture){
		"nothing":       func(f *fixture) { f.remove(logDir) },
		"empty log":     func(*fixture) {},
		"only the hint": func(f *fixture) { f.write(logDir+"/_last_checkpoint", `{"version":3,"size":1}`) },
		"a file":        func(f *fixture) { f.remove(logDir); f.write(logDir, "x") },
	} {
		f := newFixture(t)
		prepare(f)
		st, err := store.OpenLocal(f.dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(context.Background(), st, Options{}); !errors.Is(err, ErrNotTable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
