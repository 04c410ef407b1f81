package metacache

import (
	"fmt"
	"iter"
	"slices"
	"testing"
)

// TestRoomIsMadeBeforeALoad visits versions that are far from each other.
func TestRoomIsMadeBeforeALoad(t *testing.T) {
	const files = 30_000
	x := NewMemory()
	defer x.Close()
	starts := func() (out []int64) {
		for _, r := range x.runs {
			out = append(out, r.first)
		}
		return out
	}
	var meanwhile []int64
	all := func(seen func()) iter.Seq2[File, error] {
		return func(yield func(File, error) bool) {
			for i := range files {
				if i == files/2 {
					seen()
				}
				name := fmt.Sprintf("part-%05d-3dc00ad7-c552-47af-8d83-fa9f1d3bda12.c000.snappy.parquet", i)
				if !yield(File{Key: Key{Name: name, Path: name}, Size: int64(i)}, nil) {
					return
				}
			}
		}
	}
	load := func(v int64) {
		t.Helper()
		check(t, x.Load(t.Context(), v, nil, all(func() { meanwhile = starts() })))
	}
	load(500)
	size := x.runs[0].bytes()
	if size < smallRun {
		t.Fatalf("a run of %d bytes is never dropped", size)
	}
	x.MaxBytes = size * 5 / 4

	load(400)
	if want := []int64{400, 500}; !slices.Equal(meanwhile, want[1:]) || !slices.Equal(starts(), want) {
		t.Errorf("a run beside the largest does not fit: %v, then %v", meanwhile, starts())
	}
	for v := int64(300); v > 0; v -= 100 {
		load(v)
		if !slices.Equal(meanwhile, []int64{500}) {
			t.Errorf("while version %d was loaded there were %v", v, meanwhile)
		}
		if want := []int64{v, 500}; !slices.Equal(starts(), want) {
			t.Errorf("after version %d there are %v, want %v", v, starts(), want)
		}
	}

	// A version loaded from one that makes room for it.
	load(600)
	check(t, x.Load(t.Context(), 700, nil, x.Files(t.Context(), 600)))
	if got, err := x.Totals(t.Context(), 700); err != nil || got.Files != files {
		t.Errorf("version 700 has %d files, %v", got.Files, err)
	}
}
