package metacache_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/deltafs/deltafs/metacache"
	"github.com/deltafs/deltafs/metacache/indextest"
)

func TestRuns(t *testing.T) {
	indextest.Run(t, func(t *testing.T) metacache.Index { return open(t) })
}

func TestRunsThatFold(t *testing.T) {
	indextest.Run(t, func(t *testing.T) metacache.Index {
		x := open(t)
		x.FoldBytes, x.MaxRuns, x.MaxUnread = 1, 1000, 1000
		return x
	})
}

func TestRunsThatFoldAndDrop(t *testing.T) {
	indextest.RandomHistory(t, func(t *testing.T) metacache.Index {
		x := open(t)
		x.FoldBytes, x.MaxRuns = 1, 3
		return x
	})
}

func open(t *testing.T) *metacache.Runs {
	x := metacache.NewMemory()
	t.Cleanup(func() { x.Close() })
	return x
}

func load(t *testing.T, x *metacache.Runs, v int64, names ...string) {
	t.Helper()
	err := x.Load(t.Context(), v, nil, func(yield func(metacache.File, error) bool) {
		for _, name := range names {
			if !yield(named(name), nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func named(name string) metacache.File {
	return metacache.File{Key: metacache.Key{Name: name, Path: name}}
}

func apply(t *testing.T, x *metacache.Runs, v int64, gone string, added ...metacache.File) {
	t.Helper()
	var g []metacache.Gone
	if gone != "" {
		g = append(g, metacache.Gone{Path: gone})
	}
	if err := x.Apply(t.Context(), v, nil, g, added); err != nil {
		t.Fatal(err)
	}
}

// idOf returns the ID of a live file, 0 if there is none.
func idOf(t *testing.T, x *metacache.Runs, v int64, path string) metacache.FileID {
	t.Helper()
	f, _, err := x.ByPath(t.Context(), v, path)
	if err != nil {
		t.Fatal(err)
	}
	return f.ID
}

func known(t *testing.T, x *metacache.Runs, id metacache.FileID) bool {
	t.Helper()
	_, ok, err := x.ByID(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func spans(pairs ...int64) []metacache.Span {
	var out []metacache.Span
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, metacache.Span{First: pairs[i], Last: pairs[i+1]})
	}
	return out
}

func TestLeastRecentlyUsedRunIsDropped(t *testing.T) {
	x := open(t)
	x.MaxRuns = 3
	load(t, x, 10, "a", "only10")
	load(t, x, 90, "a", "b")
	load(t, x, 20, "a", "only20")
	only10, only20, a := idOf(t, x, 10, "only10"), idOf(t, x, 20, "only20"), idOf(t, x, 10, "a")
	idOf(t, x, 10, "a") // 20 is now the one used longest ago, except for the newest
	load(t, x, 30, "c")
	if got, want := x.Coverage(), spans(10, 10, 30, 30, 90, 90); !slices.Equal(got, want) {
		t.Errorf("coverage %v, want %v", got, want)
	}
	if !known(t, x, only10) || known(t, x, only20) || !known(t, x, a) {
		t.Errorf("known: only10 %v, only20 %v, a %v", known(t, x, only10), known(t, x, only20), known(t, x, a))
	}
	load(t, x, 20, "a", "only20")
	if got := x.Coverage(); got[len(got)-1] != (metacache.Span{First: 90, Last: 90}) {
		t.Errorf("the newest version was dropped: %v", got)
	}
	if known(t, x, only20) {
		t.Error("an ID of a dropped version is known again")
	}
	if got := idOf(t, x, 20, "a"); got != a {
		t.Errorf("the ID of a was %d all the time, now it is %d", a, got)
	}
}

func TestLargeRunsAreDropped(t *testing.T) {
	x := open(t)
	x.MaxBytes = 12 << 20
	large := func(v int64) {
		if err := x.Load(t.Context(), v, nil, manyFiles(80_000)); err != nil { // 8 MB
			t.Fatal(err)
		}
	}
	load(t, x, 5, "small")
	large(10)
	large(20)
	if got, want := x.Coverage(), spans(5, 5, 10, 10, 20, 20); !slices.Equal(got, want) {
		t.Fatalf("coverage %v, want %v", got, want)
	}
	large(15)
	if got, want := x.Coverage(), spans(5, 5, 15, 15, 20, 20); !slices.Equal(got, want) {
		t.Errorf("coverage %v, want %v", got, want)
	}
}

func TestDroppedRunForgetsItsFilesOnly(t *testing.T) {
	x := open(t)
	x.MaxRuns = 1
	load(t, x, 90, "shared", "new")
	load(t, x, 1, "shared", "old")
	changed := named("shared")
	changed.Size = 5
	apply(t, x, 2, "old", named("two"), changed)
	apply(t, x, 3, "two", named("three"), named("old"))
	ids := map[string]metacache.FileID{
		"old": idOf(t, x, 1, "old"), "two": idOf(t, x, 2, "two"), "three": idOf(t, x, 3, "three"),
		"shared": idOf(t, x, 1, "shared"), "new": idOf(t, x, 90, "new"),
	}
	for name, id := range ids {
		if !known(t, x, id) {
			t.Errorf("%s is not known while its version is covered", name)
		}
	}
	load(t, x, 50, "fifty")
	if got, want := x.Coverage(), spans(50, 50, 90, 90); !slices.Equal(got, want) {
		t.Errorf("coverage %v, want %v: the newest, and the one loaded last", got, want)
	}
	for name, id := range ids {
		if want := name == "shared" || name == "new"; known(t, x, id) != want {
			t.Errorf("%s: known is %v after the drop, want %v", name, !want, want)
		}
	}
	if f, _, err := x.ByID(t.Context(), ids["shared"]); err != nil || f.Size != 0 {
		t.Errorf("got %+v, %v, want the file as it is in the version left", f, err)
	}
}

// TestLongRunFolds follows a table whose files come and go for long: what the
// index holds does not grow with the versions.
func TestLongRunFolds(t *testing.T) {
	const live, versions = 2000, 20_000
	x := open(t)
	x.FoldBytes, x.MaxRuns, x.MaxBytes = 1<<20, 100, 8<<20
	if err := x.Load(t.Context(), 0, nil, manyFiles(live)); err != nil {
		t.Fatal(err)
	}
	lasting := oneFile(live - 1)
	id := idOf(t, x, 0, lasting.Path)
	before := heap()
	for v := range int64(versions) {
		old := oneFile(int(v) % (live - 1))
		if err := x.Apply(t.Context(), v+1, fmt.Append(nil, v), []metacache.Gone{{Path: old.Path}}, []metacache.File{oneFile(live + int(v))}); err != nil {
			t.Fatal(err)
		}
		if v >= live-1 {
			if err := x.Apply(t.Context(), v+1, nil, nil, nil); err != nil { // changes nothing
				t.Fatal(err)
			}
		}
	}
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
	if got := x.Coverage(); len(got) != 1 || got[0].First == 0 || got[0].Last != versions {
		t.Errorf("coverage %v, want an end of the versions", got)
	}
	if got := idOf(t, x, versions, lasting.Path); got != id {
		t.Errorf("a file that was always there had ID %d, and has %d", id, got)
	}
}

func TestFoldDropsWhatNobodyReads(t *testing.T) {
	x := open(t)
	x.FoldBytes = 20_000 // of a base that takes less
	load(t, x, 0, "read", "a")
	load(t, x, 10, "unread")
	load(t, x, 100, "a")
	folds, first := 0, int64(100)
	for v := int64(101); folds < 4; v++ {
		apply(t, x, v, "", named(fmt.Sprint(v)))
		idOf(t, x, 0, "read")
		if now := x.RunStarts(); now[len(now)-1] > first {
			folds, first = folds+1, now[len(now)-1]
		}
	}
	if got := x.RunStarts(); len(got) != 3 || got[0] != 0 {
		t.Errorf("runs begin at %v, want what is read, what was folded last, and what came of it", got)
	}
}

// TestNewestVersionStaysWhenOldOnesFold: the next commit follows it.
func TestNewestVersionStaysWhenOldOnesFold(t *testing.T) {
	x := open(t)
	x.FoldBytes = 1
	load(t, x, 9, "a")
	load(t, x, 0, "a")
	for v := range int64(5) {
		apply(t, x, v+1, "", named(fmt.Sprint("b", v)))
	}
	if got := x.Coverage(); got[len(got)-1].Last != 9 || got[0].First == 0 {
		t.Errorf("coverage %v", got)
	}
}

func TestIterationOutlivesWhatItReads(t *testing.T) {
	x := open(t)
	x.FoldBytes, x.MaxRuns = 1, 1
	load(t, x, 0, "a", "b", "c")
	var during []string
	for f, err := range x.Files(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if len(during) == 0 {
			for v := range int64(100) {
				apply(t, x, v+1, "b", named(fmt.Sprint("b", v)))
			}
			if got := x.Coverage(); got[0].First == 0 {
				t.Fatalf("nothing was dropped: %v", got)
			}
		}
		during = append(during, f.Name)
	}
	if !slices.Equal(during, []string{"a", "b", "c"}) {
		t.Errorf("iteration saw %q", during)
	}
}

func TestCompareDirs(t *testing.T) {
	ordered := []string{"", "a", "a/b", "a/b/c", "a/b!", "a/b-", "a/c", "a\x00", "a!", "a-", "a-/b", "a.b", "a0", "ab", "b"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := metacache.CompareDirs(a, b); got != cmp.Compare(i, j) {
				t.Errorf("CompareDirs(%q, %q) = %d", a, b, got)
			}
		}
	}
}
