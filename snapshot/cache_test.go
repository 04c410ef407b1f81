package snapshot

import (
	"context"
	"errors"
	"testing"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
)

// openings counts how often an index was asked for, and fails on demand.
type openings struct {
	roots []string
	err   error
}

func (o *openings) Open(_ context.Context, root string) (metacache.Index, error) {
	o.roots = append(o.roots, root)
	return metacache.NewMemory(), o.err
}

func openWith(t *testing.T, f *fixture, c Cache) *Table {
	t.Helper()
	st, err := store.OpenLocal(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(t.Context(), st, Options{Name: "t", Cache: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

func TestIndexIsOpenedWhenFilesAreFirstNeeded(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1))
	o := &openings{}
	table := openWith(t, f, o)
	if _, _, err := table.Header(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if len(o.roots) != 0 {
		t.Errorf("opened for a header: %q", o.roots)
	}
	wantPaths(t, table, 1, "a b")
	wantPaths(t, table, 0, "a")
	if len(o.roots) != 1 || o.roots[0] != f.dir {
		t.Errorf("opened for %q, want once for %q", o.roots, f.dir)
	}
}

func TestCacheThatDoesNotOpenCostsNothingElse(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1))
	wantPaths(t, openWith(t, f, &openings{err: errors.New("no space")}), 0, "a")
}
