package indextest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/deltafs/deltafs/metacache"
)

// commit is one step of a history.
type commit struct {
	gone  []metacache.Gone
	added []metacache.File
}

// history is a table as plain maps: versions[v] is the live files of v by
// path, and commits[v] leads from v-1 to v.
type history struct {
	commits  []commit
	versions []map[string]metacache.File
	// ids are the IDs of the files that may be in a covered version, and owners
	// the files of all IDs ever seen.
	ids    map[metacache.Gone]metacache.FileID
	owners map[metacache.FileID]metacache.Gone
}

func newHistory() *history {
	return &history{ids: map[metacache.Gone]metacache.FileID{}, owners: map[metacache.FileID]metacache.Gone{}}
}

func identity(f metacache.File) metacache.Gone { return metacache.Gone{Path: f.Path, DV: f.DV} }

// forget drops the IDs of files that are in no covered version but fresh, which
// was covered after others were dropped: these may have new ones.
func (h *history) forget(coverage []metacache.Span, fresh int64) {
	covered := map[metacache.Gone]bool{}
	for _, s := range coverage {
		for v := s.First; v <= s.Last; v++ {
			if v == fresh {
				continue
			}
			for _, f := range h.versions[v] {
				covered[identity(f)] = true
			}
		}
	}
	maps.DeleteFunc(h.ids, func(file metacache.Gone, _ metacache.FileID) bool { return !covered[file] })
}

// add appends a commit.
func (h *history) add(c commit) {
	live := map[string]metacache.File{}
	if n := len(h.versions); n > 0 {
		live = maps.Clone(h.versions[n-1])
	}
	for _, g := range c.gone {
		if f, ok := live[g.Path]; ok && f.DV == g.DV {
			delete(live, g.Path)
		}
	}
	for _, f := range c.added {
		live[f.Path] = f
	}
	h.commits = append(h.commits, c)
	h.versions = append(h.versions, live)
}

// sorted returns the files of a version in key order.
func (h *history) sorted(v int64) []metacache.File {
	return slices.SortedFunc(maps.Values(h.versions[v]), func(a, b metacache.File) int {
		return slices.Compare(sortKey(a.Key), sortKey(b.Key))
	})
}

// sortKey is the elements of the directory, an empty one, name and path: the
// order that metacache.Key documents, by other means.
func sortKey(k metacache.Key) []string {
	var key []string
	if k.Dir != "" {
		key = strings.Split(k.Dir, "/")
	}
	return append(key, "", k.Name, k.Path)
}

// note is what is kept with a version: some have the same as others.
func note(v int64) []byte {
	if v%5 == 0 {
		return nil
	}
	return fmt.Append(nil, "note ", v/2)
}

// load is the files of a version in some order, for Index.Load.
func (h *history) load(v int64, r *rand.Rand) iter.Seq2[metacache.File, error] {
	files := h.sorted(v)
	r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	return seq(files, nil)
}

// seq yields the files, then err if it is not nil. The strings of a file are
// overwritten after it.
func seq(files []metacache.File, err error) iter.Seq2[metacache.File, error] {
	return func(yield func(metacache.File, error) bool) {
		buffer := make([]byte, 0, 1024)
		for _, f := range files {
			buffer = buffer[:0]
			for _, s := range []*string{&f.Dir, &f.Name, &f.Path, &f.DV, &f.Raw} {
				at := len(buffer)
				buffer = append(buffer, *s...)
				*s = unsafe.String(unsafe.SliceData(buffer[at:]), len(*s))
			}
			more := yield(f, nil)
			for i := range buffer {
				buffer[i] = '?'
			}
			if !more {
				return
			}
		}
		if err != nil {
			yield(metacache.File{}, err)
		}
	}
}

// check compares everything that the index says about a covered version with
// the model.
func (h *history) check(t *testing.T, x metacache.Index, v int64) {
	t.Helper()
	ctx := t.Context()
	want := h.sorted(v)
	h.same(t, fmt.Sprintf("Files(%d)", v), collect(t, x.Files(ctx, v)), want)

	var totals metacache.Totals
	dirs := map[string][]metacache.File{"": nil, "no such": nil}
	children := map[string]map[string]bool{}
	for _, f := range want {
		totals.Files++
		totals.Bytes += f.Size
		if f.DV != "" {
			totals.DVs++
		}
		dirs[f.Dir] = append(dirs[f.Dir], f)
		var parent string
		for dir := f.Dir; dir != ""; dir = parent {
			name := dir
			parent = ""
			if i := strings.LastIndexByte(dir, '/'); i >= 0 {
				parent, name = dir[:i], dir[i+1:]
			}
			if children[parent] == nil {
				children[parent] = map[string]bool{}
			}
			children[parent][name] = true
			dirs[parent] = append(dirs[parent], nil...)
		}
	}
	if got, err := x.Note(ctx, v); err != nil || !bytes.Equal(got, note(v)) {
		t.Errorf("Note(%d) = %q, %v, want %q", v, got, err, note(v))
	}
	if got, err := x.Totals(ctx, v); err != nil || got != totals {
		t.Errorf("Totals(%d) = %+v, %v, want %+v", v, got, err, totals)
	}
	for dir, files := range dirs {
		h.same(t, fmt.Sprintf("Dir(%d, %q)", v, dir), collect(t, x.Dir(ctx, v, dir, "")), files)
		names := slices.Sorted(maps.Keys(children[dir]))
		if got := collect(t, x.Subdirs(ctx, v, dir, "")); !slices.Equal(got, names) {
			t.Errorf("Subdirs(%d, %q) = %q, want %q", v, dir, got, names)
		}
		h.checkResume(t, x, v, dir, files, names)
	}
	h.checkPoints(t, x, v)
}

// checkResume reads on after each name in turn.
func (h *history) checkResume(t *testing.T, x metacache.Index, v int64, dir string, files []metacache.File, children []string) {
	t.Helper()
	for _, f := range files {
		rest := slices.DeleteFunc(slices.Clone(files), func(o metacache.File) bool { return o.Name <= f.Name })
		h.same(t, fmt.Sprintf("Dir(%d, %q) after %q", v, dir, f.Name), collect(t, x.Dir(t.Context(), v, dir, f.Name)), rest)
		named := slices.DeleteFunc(slices.Clone(files), func(o metacache.File) bool { return o.Name != f.Name })
		got, err := x.Lookup(t.Context(), v, dir, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		h.same(t, fmt.Sprintf("Lookup(%d, %q, %q)", v, dir, f.Name), got, named)
	}
	for i, name := range children {
		if got := collect(t, x.Subdirs(t.Context(), v, dir, name)); !slices.Equal(got, children[i+1:]) {
			t.Errorf("Subdirs(%d, %q) after %q = %q, want %q", v, dir, name, got, children[i+1:])
		}
	}
}

// checkPoints looks up the paths of all versions in this one.
func (h *history) checkPoints(t *testing.T, x metacache.Index, v int64) {
	t.Helper()
	for _, live := range h.versions {
		for path := range live {
			want, wantOK := h.versions[v][path]
			got, ok, err := x.ByPath(t.Context(), v, path)
			if err != nil || ok != wantOK {
				t.Fatalf("ByPath(%d, %q) = %v, %v, want %v", v, path, ok, err, wantOK)
			}
			if !ok {
				continue
			}
			h.same(t, fmt.Sprintf("ByPath(%d, %q)", v, path), []metacache.File{got}, []metacache.File{want})
			byID, ok, err := x.ByID(t.Context(), got.ID)
			if err != nil || !ok || byID.Path != path || byID.DV != want.DV || byID.ID != got.ID {
				t.Errorf("ByID(%d) = %+v, %v, %v, want path %q and deletion vector %q", got.ID, byID, ok, err, path, want.DV)
			}
		}
	}
}

// same compares files in order, and each ID with the one that the file has in
// other covered versions.
func (h *history) same(t *testing.T, what string, got, want []metacache.File) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d files, want %d\ngot  %s\nwant %s", what, len(got), len(want), names(got), names(want))
	}
	for i, g := range got {
		w := want[i]
		if w.ID = g.ID; g != w {
			t.Fatalf("%s: file %d is\n%+v, want\n%+v", what, i, g, w)
		}
		key := identity(g)
		if h.ids[key] == 0 {
			h.ids[key] = g.ID
		}
		if g.ID == 0 || g.ID >= 1<<40 || g.ID != h.ids[key] {
			t.Fatalf("%s: %+v has ID %d, before it had %d", what, key, g.ID, h.ids[key])
		}
		if owner, ok := h.owners[g.ID]; ok && owner != key {
			t.Fatalf("%s: %+v has ID %d, which named %+v before", what, key, g.ID, owner)
		}
		h.owners[g.ID] = key
	}
}

// checkIDs looks up all IDs ever seen: those of covered versions are known,
// and none names another file than it did.
func (h *history) checkIDs(t *testing.T, x metacache.Index) {
	t.Helper()
	for id, owner := range h.owners {
		f, ok, err := x.ByID(t.Context(), id)
		switch {
		case err != nil || ok && (identity(f) != owner || f.ID != id):
			t.Fatalf("ByID(%d) = %+v, %v, want %+v", id, f, err, owner)
		case !ok && h.ids[owner] == id:
			t.Fatalf("ByID(%d) does not know %+v, which is in a covered version", id, owner)
		case id > x.LastID():
			t.Fatalf("%+v has ID %d, and the last is %d", owner, id, x.LastID())
		}
	}
}

func names(files []metacache.File) string {
	var out []string
	for _, f := range files {
		out = append(out, fmt.Sprintf("%s|%s|%s|%s", f.Dir, f.Name, f.Path, f.DV))
	}
	return strings.Join(out, "  ")
}

// collect drains an iterator that must not fail.
func collect[T any](t *testing.T, items iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for item, err := range items {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, item)
	}
	return out
}

// firstErr is the first error of an iterator, nil if it ends without one.
func firstErr[T any](items iter.Seq2[T, error]) error {
	for _, err := range items {
		if err != nil {
			return err
		}
	}
	return nil
}

// loadAll loads version v of the history.
func (h *history) loadAll(ctx context.Context, x metacache.Index, v int64, r *rand.Rand) error {
	return x.Load(ctx, v, note(v), h.load(v, r))
}

// apply applies version v of the history.
func (h *history) apply(ctx context.Context, x metacache.Index, v int64) error {
	return x.Apply(ctx, v, note(v), h.commits[v].gone, h.commits[v].added)
}
