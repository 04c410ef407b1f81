package fsnode

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// aheadOf returns a handle on a directory that is listed ahead at once, and how
// many listings were.
func aheadOf(t *testing.T, d *fakeFrozenDir) (h *dirHandle, a *aheads, begun *int) {
	t.Helper()
	begun = new(int)
	a = newAheads(func(fn func()) { *begun++; fn() })
	h = &dirHandle{dir: d, ahead: dirAhead{aheads: a}}
	h.ctx, h.cancel = context.WithCancel(t.Context())
	t.Cleanup(h.release)
	return h, a, begun
}

func manyNames(n int) (names, listed []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%05d", i))
	}
	return names, append([]string{".", ".."}, names...)
}

func TestListingAheadShowsTheSame(t *testing.T) {
	names, want := manyNames(1000)
	h, a, begun := aheadOf(t, &fakeFrozenDir{fakeDir{names: names}})
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		at := r.IntN(len(want)) // it seeks there
		for at < len(want) {
			n := 1 + r.IntN(100)
			got := h.take(t, uint64(at), n)
			if end := min(at+n, len(want)); !slices.Equal(got, want[at:end]) {
				t.Fatalf("%d from %d: %v", n, at, got)
			}
			at += len(got)
		}
		if got := h.take(t, uint64(at), 1); len(got) > 0 {
			t.Fatalf("%v after the end", got)
		}
		if len(a.slots) > 0 {
			t.Fatal("it counts as ahead after the end")
		}
	}
	if *begun == 0 {
		t.Error("nothing was listed ahead")
	}
}

func TestListingAheadSparesListings(t *testing.T) {
	names, _ := manyNames(1000)
	d := &fakeFrozenDir{fakeDir{names: names}}
	h, _, begun := aheadOf(t, d)
	for at := 0; at < 1000; at += 100 {
		h.take(t, uint64(at), 100)
	}
	if d.lists > *begun+1 {
		t.Errorf("%d listings, %d of them ahead", d.lists, *begun)
	}
}

func TestListingAheadLeavesTheErrorToItsReader(t *testing.T) {
	names, want := manyNames(10)
	broken := errors.New("broken")
	d := &fakeFrozenDir{fakeDir{names: names, fail: broken}}
	h, _, _ := aheadOf(t, d)
	if got := h.take(t, 0, 8); !slices.Equal(got, want[:8]) {
		t.Errorf("%v", got)
	}
	if got := h.take(t, 8, 8); !slices.Equal(got, want[8:]) {
		t.Errorf("before the error: %v", got)
	}
	if err := h.read(12, func(child) bool { return false }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	d.fail = nil
	if got := h.take(t, 12, 8); len(got) > 0 {
		t.Errorf("%v at the end, when the error has passed", got)
	}
}

func TestListingAheadOutlivesItsPanic(t *testing.T) {
	names, want := manyNames(10)
	d := &fakeFrozenDir{fakeDir{names: names}}
	h, a, _ := aheadOf(t, d)
	panics := 0
	a.start = func(fn func()) {
		defer func() {
			if recover() != nil {
				panics++
			}
			d.panics = false
		}()
		d.panics = true
		fn()
	}
	h.take(t, 0, 4)
	if got := h.take(t, 4, 20); !slices.Equal(got, want[4:]) || panics != 1 {
		t.Errorf("%v after %d panics", got, panics)
	}
}

func TestAFewListingsAreAhead(t *testing.T) {
	names, want := manyNames(10)
	h, a, begun := aheadOf(t, &fakeFrozenDir{fakeDir{names: names}})
	for range maxAheads {
		a.slots <- struct{}{}
	}
	for at := 0; at < len(want); at += 4 {
		if got := h.take(t, uint64(at), 4); !slices.Equal(got, want[at:at+4]) {
			t.Errorf("from %d: %v", at, got)
		}
	}
	<-a.slots
	h.take(t, 0, 4)
	if *begun != 1 || len(a.slots) != maxAheads {
		t.Errorf("%d were begun, %d are ahead", *begun, len(a.slots))
	}
	h.release()
	if len(a.slots) != maxAheads-1 {
		t.Error("a handle counts as ahead after its end")
	}
}

// TestListingAheadGivesNoOldSizes: a size that was found out is shown by what
// is listed from then on, whenever that was read.
func TestListingAheadGivesNoOldSizes(t *testing.T) {
	names, _ := manyNames(20)
	d := &fakeFrozenDir{fakeDir{names: names}}
	h, _, begun := aheadOf(t, d)
	h.take(t, 0, 4)
	before := d.lists
	d.changed = true
	h.take(t, 4, 4)
	if d.lists == before || *begun != 1 {
		t.Errorf("%d more listings, %d ahead in all", d.lists-before, *begun)
	}
}
