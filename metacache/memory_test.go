package metacache_test

import (
	"cmp"
	"slices"
	"testing"
	"unsafe"

	"github.com/deltafs/deltafs/metacache"
	"github.com/deltafs/deltafs/metacache/indextest"
)

func TestMemory(t *testing.T) {
	indextest.Run(t, func(t *testing.T) metacache.Index {
		x := metacache.NewMemory()
		t.Cleanup(func() { x.Close() })
		return x
	})
}

func load(t *testing.T, x *metacache.Memory, v int64, names ...string) {
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

func apply(t *testing.T, x *metacache.Memory, v int64, gone string, added ...metacache.File) {
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
func idOf(t *testing.T, x *metacache.Memory, v int64, path string) metacache.FileID {
	t.Helper()
	f, _, err := x.ByPath(t.Context(), v, path)
	if err != nil {
		t.Fatal(err)
	}
	return f.ID
}

func known(t *testing.T, x *metacache.Memory, id metacache.FileID) bool {
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
	x := metacache.NewMemory()
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
	load(t, x, 20, "only20")
	if got := idOf(t, x, 20, "only20"); got != only20 {
		t.Errorf("the ID was %d, after a drop it is %d", only20, got)
	}
	if got := x.Coverage(); got[len(got)-1] != (metacache.Span{First: 90, Last: 90}) {
		t.Errorf("the newest version was dropped: %v", got)
	}
}

func TestDroppedRunForgetsItsFilesOnly(t *testing.T) {
	x := metacache.NewMemory()
	x.MaxRuns = 1
	load(t, x, 90, "shared", "new")
	load(t, x, 1, "shared", "old", "old") // the second old replaces the first
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
	for name, id := range ids {
		if want := name == "shared" || name == "new"; known(t, x, id) != want {
			t.Errorf("%s: known is %v after the drop, want %v", name, !want, want)
		}
	}
	if f, _, err := x.ByID(t.Context(), ids["shared"]); err != nil || f.Size != 0 {
		t.Errorf("got %+v, %v, want the file as it is in the version left", f, err)
	}
}

func TestOldestVersionsOfARunAreDropped(t *testing.T) {
	x := metacache.NewMemory()
	x.MaxVersions = 2
	load(t, x, 0, "a", "b")
	a, b := idOf(t, x, 0, "a"), idOf(t, x, 0, "b")
	apply(t, x, 1, "a", named("c"))
	c := idOf(t, x, 1, "c")
	var during []string
	for f, err := range x.Files(t.Context(), 0) { // an iteration in progress is not disturbed
		if err != nil {
			t.Fatal(err)
		}
		if len(during) == 0 {
			apply(t, x, 2, "c")
			apply(t, x, 3, "", named("c"))
			apply(t, x, 4, "b", named("d"))
		}
		during = append(during, f.Name)
	}
	if !slices.Equal(during, []string{"a", "b"}) {
		t.Errorf("iteration saw %q", during)
	}
	if got, want := x.Coverage(), spans(3, 4); !slices.Equal(got, want) {
		t.Errorf("coverage %v, want %v", got, want)
	}
	if known(t, x, a) || !known(t, x, b) || !known(t, x, c) {
		t.Errorf("known: a %v, b %v, c %v", known(t, x, a), known(t, x, b), known(t, x, c))
	}
	if got := idOf(t, x, 4, "c"); got != c {
		t.Errorf("the ID of c was %d, now it is %d", c, got)
	}
	x.MaxRuns = 1
	load(t, x, 100, "z")
	load(t, x, 50, "y")
	for _, id := range []metacache.FileID{b, c} {
		if known(t, x, id) {
			t.Errorf("ID %d is known after its run was dropped", id)
		}
	}
}

func TestStringsOfLoadedFilesAreBorrowed(t *testing.T) {
	x := metacache.NewMemory()
	buffer := []byte("a")
	borrowed := unsafe.String(&buffer[0], 1)
	err := x.Load(t.Context(), 0, nil, func(yield func(metacache.File, error) bool) {
		for _, name := range []byte("abc") {
			buffer[0] = name
			f := metacache.File{Key: metacache.Key{Dir: borrowed, Name: borrowed, Path: borrowed}, DV: borrowed, Raw: borrowed}
			if !yield(f, nil) {
				return
			}
		}
		buffer[0] = 'x'
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		got, ok, err := x.ByPath(t.Context(), 0, name)
		want := metacache.File{Key: metacache.Key{Dir: name, Name: name, Path: name}, DV: name, Raw: name, ID: got.ID}
		if err != nil || !ok || got != want {
			t.Errorf("%s is %+v, %t, %v", name, got, ok, err)
		}
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
