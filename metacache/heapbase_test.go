package metacache_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deltafs/deltafs/metacache"
)

// oddNames are names that only differ late, or in being longer by bytes that
// look like none.
func oddNames(r *rand.Rand) string {
	const alphabet = "ab\x00\xff"
	name := make([]byte, r.IntN(12))
	for i := range name {
		name[i] = alphabet[r.IntN(len(alphabet))]
	}
	prefix := []string{"", "part-00000-ffffffffffffffff", strings.Repeat("\x00", 20), strings.Repeat("p", r.IntN(20))}[r.IntN(4)]
	if r.IntN(20) == 0 {
		return prefix
	}
	return prefix + string(name)
}

// TestManyOddFiles puts some chunks of files in order, with numbers of every
// width, and asks for them in every way.
func TestManyOddFiles(t *testing.T) {
	const files = 12_000
	r := rand.New(rand.NewPCG(9, 9)) //nolint:gosec // repeatable
	x := open(t)
	want := map[string]metacache.File{}
	var totals metacache.Totals
	number := func() int64 {
		return []int64{0, 1, math.MaxInt64, -1, math.MinInt64, r.Int64N(1 << 40)}[r.IntN(6)]
	}
	err := x.Load(t.Context(), 0, nil, func(yield func(metacache.File, error) bool) {
		for i := range files {
			name := oddNames(r)
			f := metacache.File{
				Key:  metacache.Key{Dir: []string{"", "a", "a/b"}[r.IntN(3)], Name: name, Path: fmt.Sprint("x", r.IntN(files))},
				Size: r.Int64N(1 << (1 + i/chunk*20)), ModTime: number(), Origin: uint64(number()),
			}
			if i > 2*chunk {
				f.DV, f.Raw = oddNames(r), oddNames(r)
			}
			want[f.Path] = f
			if !yield(f, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	order := slices.SortedFunc(maps.Values(want), func(a, b metacache.File) int { return a.Key.Compare(b.Key) })
	i := 0
	for f, err := range x.Files(t.Context(), 0) {
		if err != nil || i >= len(order) {
			t.Fatalf("file %d of %d: %v", i, len(order), err)
		}
		w := order[i]
		w.ID = f.ID
		if i++; f != w {
			t.Fatalf("file %d is\n%+v, want\n%+v", i, f, w)
		}
		byPath, ok, err := x.ByPath(t.Context(), 0, f.Path)
		if err != nil || !ok || byPath != f {
			t.Fatalf("ByPath(%q) = %+v, %t, %v", f.Path, byPath, ok, err)
		}
		byID, ok, err := x.ByID(t.Context(), f.ID)
		if err != nil || !ok || byID != f {
			t.Fatalf("ByID(%d) = %+v, %t, %v", f.ID, byID, ok, err)
		}
		named, err := x.Lookup(t.Context(), 0, f.Dir, f.Name)
		if err != nil || !slices.Contains(named, f) {
			t.Fatalf("Lookup(%q, %q) = %+v, %v", f.Dir, f.Name, named, err)
		}
		totals.Files++
		totals.Bytes += f.Size
		if f.DV != "" {
			totals.DVs++
		}
	}
	if i != len(order) {
		t.Errorf("%d files, want %d", i, len(order))
	}
	if got, err := x.Totals(t.Context(), 0); err != nil || got != totals {
		t.Errorf("totals %+v, %v, want %+v", got, err, totals)
	}
}

// chunk is how many files the index keeps together.
const chunk = 4096

// TestBaseThatWasReplacedIsFreed: neither the changes after a base nor the
// index hold what another base took the place of.
func TestBaseThatWasReplacedIsFreed(t *testing.T) {
	gate := make(chan struct{})
	k := &metacache.FakeKeeper{Before: func() error { <-gate; return nil }}
	x := openKept(t, k)
	defer closeKept(t, x, k)
	if err := x.Load(t.Context(), 0, nil, manyFiles(2*chunk)); err != nil {
		t.Fatal(err)
	}
	var gone []metacache.Gone
	for i := range 100 {
		gone = append(gone, metacache.Gone{Path: oneFile(50 * i).Path})
	}
	if err := x.Apply(t.Context(), 1, nil, gone, []metacache.File{oneFile(50*100 + 1)}); err != nil {
		t.Fatal(err)
	}
	freed := metacache.WatchTexts(x)
	var replace sync.Once
	for _, err := range x.Files(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		replace.Do(func() { // while it is read
			close(gate)
			x.Settle()
		})
	}
	for freed.Load() < 2 {
		runtime.GC()
	}
	if got, err := x.Totals(t.Context(), 1); err != nil || got.Files != 2*chunk-100 {
		t.Errorf("got %+v, %v", got, err)
	}
}
