package metacache_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/deltafs/deltafs/metacache"
	"github.com/deltafs/deltafs/metacache/indextest"
)

func openKept(t *testing.T, k *metacache.FakeKeeper) *metacache.Runs {
	t.Helper()
	x, err := k.Open()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// closeKept closes an index and looks at how its keeper was called.
func closeKept(t *testing.T, x *metacache.Runs, k *metacache.FakeKeeper) {
	t.Helper()
	if err := errors.Join(x.Close(), k.Problems()); err != nil {
		t.Error(err)
	}
}

// ticking is an index whose keeper goes one step now and then, between the
// steps of its user and in their midst.
type ticking struct {
	*metacache.Runs
	tick func()
}

func (x ticking) Load(ctx context.Context, v int64, note []byte, files iter.Seq2[metacache.File, error]) error {
	x.tick()
	return x.Runs.Load(ctx, v, note, ticks(files, x.tick))
}

func (x ticking) Apply(ctx context.Context, v int64, note []byte, gone []metacache.Gone, added []metacache.File) error {
	x.tick()
	return x.Runs.Apply(ctx, v, note, gone, added)
}

func (x ticking) Files(ctx context.Context, v int64) iter.Seq2[metacache.File, error] {
	return ticks(x.Runs.Files(ctx, v), x.tick)
}

func (x ticking) Subdirs(ctx context.Context, v int64, dir, after string) iter.Seq2[string, error] {
	return ticks(x.Runs.Subdirs(ctx, v, dir, after), x.tick)
}

func ticks[T any](items iter.Seq2[T, error], tick func()) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range items {
			tick()
			if !yield(item, err) {
				return
			}
		}
	}
}

// openTicking returns an index whose keeper fails in some of its steps if
// fails is set.
func openTicking(t *testing.T, maxRuns int, fails bool) ticking {
	gate := make(chan error)
	k := &metacache.FakeKeeper{Before: func() error { return <-gate }}
	x := openKept(t, k)
	x.FoldBytes, x.MaxRuns, x.MaxUnread = 1, maxRuns, maxRuns
	t.Cleanup(func() {
		close(gate)
		closeKept(t, x, k)
	})
	var r = rand.New(rand.NewPCG(3, 4)) //nolint:gosec // repeatable
	return ticking{x, func() {
		var err error
		if fails && r.IntN(4) == 0 {
			err = errors.New("no space")
		}
		select {
		case gate <- err:
			runtime.Gosched()
		default:
		}
	}}
}

func TestRunsWithAKeeper(t *testing.T) {
	indextest.Run(t, func(t *testing.T) metacache.Index {
		k := &metacache.FakeKeeper{}
		x := openKept(t, k)
		x.FoldBytes, x.MaxRuns, x.MaxUnread = 1, 1000, 1000
		t.Cleanup(func() { closeKept(t, x, k) })
		return x
	})
}

func TestRunsWhoseKeeperIsSlow(t *testing.T) {
	for _, maxRuns := range []int{1000, 3} {
		indextest.RandomHistory(t, func(t *testing.T) metacache.Index { return openTicking(t, maxRuns, false) })
	}
}

func TestRunsWhoseKeeperFails(t *testing.T) {
	indextest.RandomHistory(t, func(t *testing.T) metacache.Index { return openTicking(t, 4, true) })
}

// comingBack is an index that is closed and opened again before some steps.
type comingBack struct {
	*metacache.Runs
	t *testing.T
	k *metacache.FakeKeeper
	r *rand.Rand
}

func (x *comingBack) Load(ctx context.Context, v int64, note []byte, files iter.Seq2[metacache.File, error]) error {
	x.reopen()
	return x.Runs.Load(ctx, v, note, files)
}

func (x *comingBack) Apply(ctx context.Context, v int64, note []byte, gone []metacache.Gone, added []metacache.File) error {
	x.reopen()
	return x.Runs.Apply(ctx, v, note, gone, added)
}

func (x *comingBack) reopen() {
	if x.r.IntN(4) > 0 {
		return
	}
	x.Settle()
	covered := x.Coverage()
	x.k.LastID = x.LastID()
	closeKept(x.t, x.Runs, x.k)
	before := x.Runs
	x.Runs = openKept(x.t, x.k)
	x.FoldBytes, x.MaxRuns, x.MaxUnread = before.FoldBytes, before.MaxRuns, before.MaxUnread
	if got := x.Coverage(); !slices.Equal(got, covered) {
		x.t.Errorf("covers %v, before %v", got, covered)
	}
}

func TestKeptRunsComeBack(t *testing.T) {
	for _, maxRuns := range []int{7, 3} {
		indextest.RandomHistory(t, func(t *testing.T) metacache.Index {
			x := &comingBack{t: t, k: &metacache.FakeKeeper{}, r: rand.New(rand.NewPCG(5, 6))} //nolint:gosec // repeatable
			x.Runs = openKept(t, x.k)
			x.FoldBytes, x.MaxRuns, x.MaxUnread = 1, maxRuns, maxRuns
			t.Cleanup(func() { closeKept(t, x.Runs, x.k) })
			return x
		})
	}
}

func TestCloseHandsOverWhatWasApplied(t *testing.T) {
	gate := make(chan struct{}, 1)
	k := &metacache.FakeKeeper{Before: func() error { <-gate; return nil }}
	x := openKept(t, k)
	load(t, x, 3, "a")
	gate <- struct{}{}
	x.Settle()
	apply(t, x, 4, "a", named("b"))
	apply(t, x, 5, "", named("c"))
	close(gate)
	closeKept(t, x, k)
	x = openKept(t, k)
	if got := x.Coverage(); !slices.Equal(got, spans(3, 5)) {
		t.Errorf("coverage %v", got)
	}
	if idOf(t, x, 5, "a") != 0 || idOf(t, x, 5, "b") == 0 || idOf(t, x, 5, "c") == 0 {
		t.Error("version 5 is another")
	}
	closeKept(t, x, k)
}

func TestRunDroppedWhileItIsKept(t *testing.T) {
	begun, gate := make(chan struct{}, 10), make(chan struct{})
	k := &metacache.FakeKeeper{Before: func() error { begun <- struct{}{}; <-gate; return nil }}
	x := openKept(t, k)
	x.MaxRuns = 2
	load(t, x, 1, "a")
	<-begun // version 1 is on its way
	for v := range int64(4) {
		load(t, x, v+2, "b")
	}
	close(gate)
	x.Settle()
	if kept, open := k.Runs(); kept != 2 || open != 2 {
		t.Errorf("%d runs are kept, %d open, want 2", kept, open)
	}
	closeKept(t, x, k)
}

func TestDroppedRunIsForgotten(t *testing.T) {
	k := &metacache.FakeKeeper{}
	x := openKept(t, k)
	x.MaxRuns = 2
	for v := range int64(6) {
		load(t, x, 2*v, "a", "b")
		for f, err := range x.Files(t.Context(), 2*v) {
			if f.Name == "a" {
				load(t, x, 100+2*v, "c")
				load(t, x, 200+2*v, "c")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		x.Settle()
	}
	if kept, open := k.Runs(); kept != 2 || open != 2 {
		t.Errorf("%d runs are kept, %d open, want 2", kept, open)
	}
	closeKept(t, x, k)
}

func TestBaseThatDoesNotReadIsGivenUp(t *testing.T) {
	k := &metacache.FakeKeeper{}
	x := openKept(t, k)
	defer closeKept(t, x, k)
	for what, read := range map[string]func() error{
		"Files": func() error {
			for _, err := range x.Files(t.Context(), 3) {
				return err
			}
			return nil
		},
		"Lookup": func() error {
			_, err := x.Lookup(t.Context(), 3, "", "a")
			return err
		},
		"ByPath": func() error {
			_, _, err := x.ByPath(t.Context(), 3, "a")
			return err
		},
		"Apply": func() error {
			return x.Apply(t.Context(), 4, nil, nil, []metacache.File{named("x")})
		},
	} {
		load(t, x, 3, "a", "b")
		x.Settle()
		k.Break()
		if err := read(); !errors.Is(err, metacache.ErrNotCovered) {
			t.Errorf("%s: got %v, want ErrNotCovered", what, err)
		}
		if got := x.Coverage(); len(got) > 0 {
			t.Errorf("%s: coverage %v", what, got)
		}
	}
	load(t, x, 3, "a", "b")
	x.Settle()
	var errs []error
	for _, err := range x.Files(t.Context(), 3) {
		k.Break()
		errs = append(errs, err)
	}
	if len(errs) != 2 || errs[0] != nil || errs[1] == nil || errors.Is(errs[1], metacache.ErrNotCovered) {
		t.Errorf("got %v, want a file and another error than ErrNotCovered, which would mean to start again", errs)
	}
	load(t, x, 5, "a")
	x.Settle()
	k.Break()
	load(t, x, 7, "a", "b") // needs nothing of the other run
	if got := x.Coverage(); !slices.Equal(got, spans(7, 7)) {
		t.Errorf("coverage %v", got)
	}
}
