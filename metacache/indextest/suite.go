package indextest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/deltafs/deltafs/metacache"
)

// Run runs the suite. open returns an empty index that drops no version, and
// closes it with t.Cleanup if that is needed.
func Run(t *testing.T, open func(t *testing.T) metacache.Index) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, func(*testing.T) metacache.Index)
	}{
		{"EmptyIndexCoversNothing", testEmpty},
		{"EmptyVersion", testEmptyVersion},
		{"DirectoryOrder", testDirectoryOrder},
		{"RemoveNeedsTheSameDeletionVector", testRemoveByDV},
		{"ReAddOfALivePathReplacesIt", testReAdd},
		{"TombstoneEndsWithReAdd", testTombstone},
		{"ApplyAgainChangesNothing", testApplyAgain},
		{"LastOfOnePathCounts", testLoadTwice},
		{"IDsAscend", testIDsAscend},
		{"FailedLoadLeavesTheIndex", testFailedLoad},
		{"CancelledContext", testCancelled},
		{"StoppedIteration", testStopped},
		{"IterationSeesOneVersion", testIsolation},
		{"ConcurrentUse", testConcurrent},
		{"RandomHistory", RandomHistory},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, open) })
	}
}

func isNotCovered(err error) bool { return errors.Is(err, metacache.ErrNotCovered) }

// file is a file in dir whose path is made from its name.
func file(dir, name string) metacache.File {
	path := name
	if dir != "" {
		path = dir + "/" + name
	}
	return metacache.File{Key: metacache.Key{Dir: dir, Name: name, Path: path}, Size: 10, Origin: 1 << 60}
}

func gone(f metacache.File) metacache.Gone { return metacache.Gone{Path: f.Path, DV: f.DV} }

// start returns an index and a history that both hold version 0.
func start(t *testing.T, open func(*testing.T) metacache.Index, files ...metacache.File) (metacache.Index, *history) {
	t.Helper()
	h := newHistory()
	h.add(commit{added: files})
	x := open(t)
	if err := x.Load(t.Context(), 0, note(0), seq(files, nil)); err != nil {
		t.Fatal(err)
	}
	h.check(t, x, 0)
	return x, h
}

// step applies a commit to both and compares them, the versions before too.
func step(t *testing.T, x metacache.Index, h *history, c commit) {
	t.Helper()
	h.add(c)
	v := int64(len(h.versions) - 1)
	if err := h.apply(t.Context(), x, v); err != nil {
		t.Fatal(err)
	}
	for v := range int64(len(h.versions)) {
		h.check(t, x, v)
	}
}

func testEmpty(t *testing.T, open func(*testing.T) metacache.Index) {
	x, ctx := open(t), t.Context()
	if got := x.Coverage(); len(got) != 0 {
		t.Errorf("coverage %v", got)
	}
	_, lookupErr := x.Lookup(ctx, 0, "", "x")
	_, _, pathErr := x.ByPath(ctx, 0, "x")
	_, totalsErr := x.Totals(ctx, 0)
	_, noteErr := x.Note(ctx, 0)
	for what, err := range map[string]error{
		"Apply": x.Apply(ctx, 1, nil, nil, nil), "Dir": firstErr(x.Dir(ctx, 0, "", "")), "Subdirs": firstErr(x.Subdirs(ctx, 0, "", "")),
		"Files": firstErr(x.Files(ctx, 0)), "Lookup": lookupErr, "ByPath": pathErr, "Totals": totalsErr, "Note": noteErr,
	} {
		if !isNotCovered(err) {
			t.Errorf("%s: got %v, want ErrNotCovered", what, err)
		}
	}
	for _, id := range []metacache.FileID{0, 1, 1 << 39} {
		if f, ok, err := x.ByID(ctx, id); ok || err != nil {
			t.Errorf("ByID(%d) = %+v, %v, %v", id, f, ok, err)
		}
	}
}

func testLoadTwice(t *testing.T, open func(*testing.T) metacache.Index) {
	a, b := file("d", "a"), file("d", "b")
	again, moved := a, b
	again.Size, again.DV = 99, "u1"
	moved.Dir, moved.Name = "e", "moved"
	h := newHistory()
	h.add(commit{added: []metacache.File{again, moved}})
	x := open(t)
	if err := x.Load(t.Context(), 0, note(0), seq([]metacache.File{a, b, a, moved, again}, nil)); err != nil {
		t.Fatal(err)
	}
	h.check(t, x, 0)
	step(t, x, h, commit{gone: []metacache.Gone{identity(again)}, added: []metacache.File{b}})
	h.checkIDs(t, x)
}

func testIDsAscend(t *testing.T, open func(*testing.T) metacache.Index) {
	if last := open(t).LastID(); last != 0 {
		t.Errorf("an empty index has assigned %d", last)
	}
	x, h := start(t, open, file("", "a"), file("", "b"))
	before := x.LastID()
	step(t, x, h, commit{added: []metacache.File{file("", "c")}})
	f, _, err := x.ByPath(t.Context(), 1, "c")
	if err != nil || f.ID <= before || f.ID > x.LastID() {
		t.Errorf("c has ID %d, last were %d and %d: %v", f.ID, before, x.LastID(), err)
	}
	last := x.LastID()
	step(t, x, h, commit{gone: []metacache.Gone{gone(file("", "a"))}, added: []metacache.File{file("", "b")}})
	if x.LastID() != last {
		t.Errorf("no new file, but the last ID went from %d to %d", last, x.LastID())
	}
}

func testEmptyVersion(t *testing.T, open func(*testing.T) metacache.Index) {
	x, h := start(t, open)
	step(t, x, h, commit{added: []metacache.File{file("", "x")}})
	step(t, x, h, commit{gone: []metacache.Gone{{Path: "x"}}})
	step(t, x, h, commit{})
	if got := x.Coverage(); !slices.Equal(got, []metacache.Span{{First: 0, Last: 3}}) {
		t.Errorf("coverage %v", got)
	}
}

func testDirectoryOrder(t *testing.T, open func(*testing.T) metacache.Index) {
	x, _ := start(t, open, file("a-b", "1"), file("a/b-c", "1"), file("a", "1"), file("a/b/c", "1"), file("", "z"),
		file("a/b", "1"), file("a!", "1"), file("a/b", "0"), file("", "a"), file("a0", "1"))
	var got []string
	for _, f := range collect(t, x.Files(t.Context(), 0)) {
		got = append(got, f.Path)
	}
	want := []string{"a", "z", "a/1", "a/b/0", "a/b/1", "a/b/c/1", "a/b-c/1", "a!/1", "a-b/1", "a0/1"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := collect(t, x.Subdirs(t.Context(), 0, "", "a!")); !slices.Equal(got, []string{"a-b", "a0"}) {
		t.Errorf("after a!: %q", got)
	}
	// names that are not there, before, between and after those that are
	for after, want := range map[string]int{" ": 4, "a": 3, "a ": 3, "a$": 2, "a1": 0, "z": 0} {
		if got := collect(t, x.Subdirs(t.Context(), 0, "", after)); len(got) != want {
			t.Errorf("Subdirs after %q: %q", after, got)
		}
	}
	if got := collect(t, x.Dir(t.Context(), 0, "a/b", "00")); len(got) != 1 || got[0].Name != "1" {
		t.Errorf("Dir after a name that is not there: %s", names(got))
	}
	if got, err := x.Lookup(t.Context(), 0, "a", "b"); err != nil || len(got) != 0 {
		t.Errorf("Lookup of a directory: %s, %v", names(got), err)
	}
}

func testRemoveByDV(t *testing.T, open func(*testing.T) metacache.Index) {
	f := file("d", "x")
	x, h := start(t, open, f)
	withDV := f
	withDV.DV = "uabc@1"
	step(t, x, h, commit{gone: []metacache.Gone{gone(withDV)}})
	// The order inside a commit has no meaning: the remove is of the old one.
	step(t, x, h, commit{gone: []metacache.Gone{gone(f)}, added: []metacache.File{withDV}})
	step(t, x, h, commit{gone: []metacache.Gone{gone(f)}})
	step(t, x, h, commit{gone: []metacache.Gone{gone(withDV)}})
	h.checkIDs(t, x)
}

func testReAdd(t *testing.T, open func(*testing.T) metacache.Index) {
	f := file("d", "x")
	x, h := start(t, open, f, file("d", "y"))
	f.Size, f.Origin = 7, 3
	step(t, x, h, commit{added: []metacache.File{f}})
	f.Raw = "d/%78"
	step(t, x, h, commit{added: []metacache.File{f}})
	f.Dir, f.Name = "e", "renamed"
	step(t, x, h, commit{added: []metacache.File{f}})
	step(t, x, h, commit{added: []metacache.File{f}})
	f.DV = "i1"
	step(t, x, h, commit{added: []metacache.File{f}})
	step(t, x, h, commit{gone: []metacache.Gone{gone(f)}})
}

func testTombstone(t *testing.T, open func(*testing.T) metacache.Index) {
	f := file("", "x")
	x, h := start(t, open, f)
	step(t, x, h, commit{gone: []metacache.Gone{gone(f)}})
	step(t, x, h, commit{gone: []metacache.Gone{gone(f)}})
	step(t, x, h, commit{added: []metacache.File{f}})
	step(t, x, h, commit{gone: []metacache.Gone{gone(f)}, added: []metacache.File{f}})
	step(t, x, h, commit{gone: []metacache.Gone{gone(f), gone(f)}})
}

func testApplyAgain(t *testing.T, open func(*testing.T) metacache.Index) {
	x, h := start(t, open, file("", "x"))
	step(t, x, h, commit{added: []metacache.File{file("", "y")}})
	for v := range int64(2) {
		if err := x.Apply(t.Context(), v, nil, []metacache.Gone{{Path: "x"}}, []metacache.File{file("", "z")}); err != nil {
			t.Fatal(err)
		}
		h.check(t, x, v)
	}
	if err := x.Apply(t.Context(), 3, nil, nil, nil); !isNotCovered(err) {
		t.Errorf("Apply across a gap: %v", err)
	}
	if got := x.Coverage(); !slices.Equal(got, []metacache.Span{{First: 0, Last: 1}}) {
		t.Errorf("coverage %v", got)
	}
}

func testFailedLoad(t *testing.T, open func(*testing.T) metacache.Index) {
	x, h := start(t, open, file("", "x"))
	h.add(commit{added: []metacache.File{file("", "y")}})
	h.add(commit{added: []metacache.File{file("", "z")}})
	broken := errors.New("broken")
	if err := x.Load(t.Context(), 2, nil, seq(h.sorted(2), broken)); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the error of the files", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	files := func(yield func(metacache.File, error) bool) {
		for _, f := range h.sorted(2) {
			if !yield(f, nil) {
				return
			}
			cancel()
		}
	}
	if err := x.Load(ctx, 2, nil, files); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	if got := x.Coverage(); !slices.Equal(got, []metacache.Span{{First: 0, Last: 0}}) {
		t.Errorf("coverage %v", got)
	}
	h.check(t, x, 0)
	if err := x.Load(t.Context(), 2, note(2), seq(h.sorted(2), nil)); err != nil {
		t.Fatal(err)
	}
	h.check(t, x, 2)
}

func testCancelled(t *testing.T, open func(*testing.T) metacache.Index) {
	x, h := start(t, open, file("a", "x"), file("b", "y"), file("b", "z"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var iterErrs []error
	for f, err := range x.Files(ctx, 0) {
		iterErrs = append(iterErrs, err)
		if f.Name == "x" {
			cancel()
		}
	}
	if len(iterErrs) != 2 || !errors.Is(iterErrs[1], context.Canceled) {
		t.Errorf("iteration gave %v, want a file, then context.Canceled", iterErrs)
	}
	_, lookupErr := x.Lookup(ctx, 0, "", "x")
	_, _, pathErr := x.ByPath(ctx, 0, "x")
	_, _, idErr := x.ByID(ctx, 1)
	_, totalsErr := x.Totals(ctx, 0)
	for what, err := range map[string]error{
		"Load": x.Load(ctx, 5, nil, seq(h.sorted(0), nil)), "Apply": x.Apply(ctx, 1, nil, nil, nil),
		"Dir": firstErr(x.Dir(ctx, 0, "b", "")), "Subdirs": firstErr(x.Subdirs(ctx, 0, "", "")),
		"Lookup": lookupErr, "ByPath": pathErr, "ByID": idErr, "Totals": totalsErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", what, err)
		}
	}
	h.check(t, x, 0)
}

func testStopped(t *testing.T, open func(*testing.T) metacache.Index) {
	x, h := start(t, open, file("a", "x"), file("a", "y"), file("b", "z"))
	for range x.Files(t.Context(), 0) {
		break
	}
	for range x.Dir(t.Context(), 0, "a", "") {
		break
	}
	for range x.Subdirs(t.Context(), 0, "", "") {
		break
	}
	step(t, x, h, commit{added: []metacache.File{file("c", "w")}})
}

func testIsolation(t *testing.T, open func(*testing.T) metacache.Index) {
	var files []metacache.File
	for i := range 200 {
		files = append(files, file(fmt.Sprintf("d=%d", i%5), fmt.Sprintf("f%03d", i)))
	}
	x, h := start(t, open, files...)
	var seen []metacache.File
	for f, err := range x.Files(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if len(seen)%20 == 0 { // while we stand here, the next versions come
			v := len(h.versions)
			h.add(commit{
				gone:  []metacache.Gone{gone(files[v]), gone(files[199-v])},
				added: []metacache.File{file("d=0", fmt.Sprintf("f%03d-new", v)), file("z", fmt.Sprint(v))},
			})
			if err := h.apply(t.Context(), x, int64(v)); err != nil {
				t.Fatal(err)
			}
		}
		seen = append(seen, f)
	}
	h.same(t, "Files(0) during changes", seen, h.sorted(0))
	for v := range int64(len(h.versions)) {
		h.check(t, x, v)
	}
}

func testConcurrent(t *testing.T, open func(*testing.T) metacache.Index) {
	const versions = 60
	h := randomHistory(rand.New(rand.NewPCG(1, 2)), versions)
	x := open(t)
	if err := x.Load(t.Context(), 0, note(0), seq(h.sorted(0), nil)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for v := range int64(versions) {
				if err := h.apply(t.Context(), x, v); err != nil {
					t.Errorf("Apply(%d): %v", v, err)
				}
			}
		})
	}
	wg.Go(func() {
		for _, v := range []int64{50, 20, 35} {
			if err := x.Load(t.Context(), v, note(v), seq(h.sorted(v), nil)); err != nil {
				t.Errorf("Load(%d): %v", v, err)
			}
		}
	})
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 8))
		wg.Go(func() {
			for !covers(x.Coverage()[:1], versions-1) {
				spans := x.Coverage()
				s := spans[r.IntN(len(spans))]
				if err := h.readSome(t.Context(), x, s.First+r.Int64N(s.Last-s.First+1), r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for v := range int64(versions) {
		h.check(t, x, v)
	}
	h.checkIDs(t, x)
}

// readSome compares the list of all files of a version and what it says of one
// path with the model.
func (h *history) readSome(ctx context.Context, x metacache.Index, v int64, r *rand.Rand) error {
	want := h.sorted(v)
	i := 0
	for f, err := range x.Files(ctx, v) {
		if err != nil || i >= len(want) || f.Key != want[i].Key {
			return fmt.Errorf("Files(%d): item %d is %+v, %w", v, i, f.Key, err)
		}
		i++
	}
	if i != len(want) {
		return fmt.Errorf("Files(%d): %d files, want %d", v, i, len(want))
	}
	if len(want) == 0 {
		return nil
	}
	f := want[r.IntN(len(want))]
	got, ok, err := x.ByPath(ctx, v, f.Path)
	if err != nil || !ok || got.Key != f.Key || got.DV != f.DV {
		return fmt.Errorf("ByPath(%d, %q) = %+v, %t, %w", v, f.Path, got, ok, err)
	}
	if byID, ok, err := x.ByID(ctx, got.ID); err != nil || !ok || identity(byID) != identity(f) {
		return fmt.Errorf("ByID(%d) = %+v, %t, %w", got.ID, byID, ok, err)
	}
	for name, err := range x.Subdirs(ctx, v, "", "") {
		if err != nil || name == "" {
			return fmt.Errorf("Subdirs(%d) yields %q, %w", v, name, err)
		}
	}
	return nil
}
