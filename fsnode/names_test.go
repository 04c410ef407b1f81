package fsnode

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

func TestOnlyTheCanonicalSpellingIsAVersion(t *testing.T) {
	for name, want := range map[string]int64{
		"@v0": 0, "@v7": 7, "@v10": 10, "@v9223372036854775807": 1<<63 - 1,
		"@v007": -1, "@v-1": -1, "@V3": -1, "@v": -1, "@v+1": -1, "@v1 ": -1, "@v9223372036854775808": -1, "v1": -1, "@v1.csv": -1,
	} {
		v, ok := parseVersion(name)
		if ok != (want >= 0) || ok && v != want {
			t.Errorf("%s: %d, %v", name, v, ok)
		}
	}
}

func TestListVersionsFlag(t *testing.T) {
	for text, want := range map[string]ListVersions{"all": ListAll, "none": ListNone, "20": 20, "0": ListNone} {
		var l ListVersions
		if err := l.Set(text); err != nil || l != want {
			t.Errorf("%s: %v, %v", text, l, err)
		}
	}
	for _, text := range []string{"", "-1", "x", "99999999999"} {
		if _, err := ParseListVersions(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if ListAll.String() != "all" || ListNone.String() != "none" || ListVersions(5).String() != "5" {
		t.Error("String does not invert Parse")
	}
}

func TestLifetimes(t *testing.T) {
	_, inc := testTree(t)
	for _, tc := range []struct {
		name string
		n    node
		want time.Duration
	}{
		{"file", &dataFile{inc: inc}, forever},
		{"snapshot", inc.snapshotDir(1, ""), forever},
		{"text of a version", &textFile{inc.controlAt(1), textDDL}, forever},
		{"text of the table", &textFile{inc.t.control(), textDDL}, never},
		{"current", inc.liveDir(""), liveTTL},
		{"staged", &stagedFile{inc: inc}, never},
	} {
		if got := tc.n.attrTTL(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestSomeNamesMustNotBeCached(t *testing.T) {
	_, inc := testTree(t)
	dir := "p=1"
	for _, tc := range []struct {
		name string
		node writer.Node
		want time.Duration
	}{
		{"directory", writer.Node{Dir: &dir}, liveTTL},
		{"file", writer.Node{File: &snapshot.File{ID: 1}}, never},
		{"staged", writer.Node{Staged: new(writer.Staged)}, never},
	} {
		c, err := inc.liveDir("").child(tc.name, tc.node)
		if err != nil || c.ttl != tc.want {
			t.Errorf("%s: %v, %v", tc.name, c.ttl, err)
		}
	}
}

// fakeDir lists names, or ends with an error.
type fakeDir struct {
	liveDir
	names []string
	fail  error
	lists int
	// changed says that it is not settled, panics that it panics when listed.
	changed, panics bool
}

func (d *fakeDir) list(context.Context) iter.Seq2[child, error] {
	d.lists++
	if d.panics {
		panic("listed")
	}
	return func(yield func(child, error) bool) {
		for _, n := range d.names {
			if !yield(child{name: n}, nil) {
				return
			}
		}
		if d.fail != nil {
			yield(child{}, d.fail)
		}
	}
}

// fakeFrozenDir is a fakeDir that is resumable.
type fakeFrozenDir struct{ fakeDir }

func (d *fakeFrozenDir) listAfter(ctx context.Context, name string) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		for c, err := range d.list(ctx) {
			if (err != nil || c.name > name) && (!yield(c, err) || err != nil) {
				return
			}
		}
	}
}

func (d *fakeFrozenDir) settled() bool { return !d.changed }

// bothKinds runs a test with a directory that is resumable, and one that is not.
func bothKinds(t *testing.T, names []string, fail error, test func(t *testing.T, d *fakeDir, h *dirHandle)) {
	for kind, d := range map[string]directory{
		"held":      &fakeDir{names: names, fail: fail},
		"resumable": &fakeFrozenDir{fakeDir{names: names, fail: fail}},
	} {
		t.Run(kind, func(t *testing.T) {
			h := &dirHandle{dir: d}
			h.ctx, h.cancel = context.WithCancel(context.Background())
			defer h.release()
			fake, ok := d.(*fakeDir)
			if !ok {
				fake = &d.(*fakeFrozenDir).fakeDir
			}
			test(t, fake, h)
		})
	}
}

// take reads n entries from an offset on; one more is refused.
func (h *dirHandle) take(t *testing.T, off uint64, n int) []string {
	t.Helper()
	var out []string
	err := h.read(off, func(c child) bool {
		if len(out) == n {
			return false
		}
		out = append(out, c.name)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReaddirGoesOnWhereItEnded(t *testing.T) {
	bothKinds(t, []string{"a", "b", "c"}, nil, func(t *testing.T, d *fakeDir, h *dirHandle) {
		got := h.take(t, 0, 1)
		for len(got) < 5 {
			got = append(got, h.take(t, uint64(len(got)), 1)...)
		}
		got = append(got, h.take(t, 5, 1)...)
		if want := []string{".", "..", "a", "b", "c"}; !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
		if h.next != nil && d.lists != 1 {
			t.Errorf("%d listings", d.lists)
		}
	})
}

func TestReaddirSeeksBack(t *testing.T) {
	bothKinds(t, []string{"a", "b", "c"}, nil, func(t *testing.T, _ *fakeDir, h *dirHandle) {
		h.take(t, 0, 5)
		for off, want := range map[uint64][]string{3: {"b", "c"}, 0: {".", "..", "a", "b", "c"}, 1: {"..", "a", "b", "c"}, 99: nil} {
			if got := h.take(t, off, 10); !slices.Equal(got, want) {
				t.Errorf("from %d: %v", off, got)
			}
		}
	})
}

func TestReaddirEndsWithTheError(t *testing.T) {
	want := errors.New("broken")
	bothKinds(t, []string{"a"}, want, func(t *testing.T, _ *fakeDir, h *dirHandle) {
		if got := h.take(t, 0, 10); len(got) != 3 {
			t.Errorf("before the error: %v", got)
		}
		for range 2 { // it is not taken for the end when asked again
			err := h.read(3, func(c child) bool {
				t.Errorf("%s after the end", c.name)
				return false
			})
			if !errors.Is(err, want) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestGateLetsChangesEnd(t *testing.T) {
	var g gate
	if err := g.enter(false); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error)
	go func() { stopped <- g.stop(context.Background()) }()
	for g.open() { // until stop has shut it
		runtime.Gosched()
	}
	if err := g.enter(false); !errors.Is(err, errStopping) {
		t.Errorf("a new change got in: %v", err)
	}
	if err := g.enter(true); err != nil {
		t.Errorf("the end of an old one did not: %v", err)
	}
	g.leave()
	select {
	case <-stopped:
		t.Fatal("stopped with a change under way")
	default:
	}
	g.leave()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	g.reopen()
	if err := g.enter(false); err != nil {
		t.Error(err)
	}
}

func TestTextCacheIsBoundedAndMakesOnce(t *testing.T) {
	var c textCache
	made := 0
	get := func(v int64, size int) {
		t.Helper()
		b, err := c.get(textKey{textDDL, v}, func() ([]byte, error) { made++; return make([]byte, size), nil })
		if err != nil || len(b) != size {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	get(1, 100)
	get(1, 100)
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	for v := range int64(20) {
		get(v+2, textCacheBytes/10)
	}
	if c.size > textCacheBytes || len(c.byKey) != c.order.Len() {
		t.Errorf("%d bytes in %d texts, %d keys", c.size, c.order.Len(), len(c.byKey))
	}
	get(1, 100)
	if made != 22 {
		t.Errorf("the oldest was not dropped: made %d times", made)
	}
}

func TestListingGivesTheAttributesThatAreKept(t *testing.T) {
	_, inc := testTree(t)
	inc.snap = &snapshot.Table{}
	dir := inc.snapshotDir(1, "")
	file := child{"a.parquet", &dataFile{inc: inc, File: &snapshot.File{Size: 7}}, forever}
	h := &dirHandle{dir: dir}
	if !h.givesAttributes(file) {
		t.Error("not of a file in a snapshot")
	}
	if h.givesAttributes(child{name: ".."}) || h.givesAttributes(child{"a.parquet", file.node, never}) {
		t.Error("of a name that the kernel asks for again anyway")
	}
	if h.givesAttributes(child{textDetail, &textFile{inc.controlAt(1), textDetail}, forever}) {
		t.Error("of a text that would have to be made for it")
	}
	if h.givesAttributes(child{"b.parquet", &dataFile{inc: inc, File: &snapshot.File{Size: 7, SchemaOrdinal: 1}}, forever}) {
		t.Error("of a file whose footer would have to be read for it")
	}
	h.pos = attributed
	if h.givesAttributes(file) {
		t.Error("of any number of files that nobody has asked about")
	}
	dir.lookups.Add(1)
	if !h.givesAttributes(file) {
		t.Error("not to somebody who asks for them one by one")
	}
}
