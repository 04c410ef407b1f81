package snapshot

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
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

// watchedStore notes which objects are opened.
type watchedStore struct {
	store.Store
	opened []string
}

func (s *watchedStore) Open(ctx context.Context, name string) (store.Object, error) {
	s.opened = append(s.opened, name)
	return s.Store.Open(ctx, name)
}

// reopened opens the table of a fixture as a new process does, and returns the
// names of the objects that are opened from then on.
func reopened(t *testing.T, f *fixture, c Cache) (*Table, *watchedStore) {
	t.Helper()
	st, err := store.OpenLocal(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	w := &watchedStore{Store: st}
	table, err := Open(t.Context(), w, Options{Name: "t", Cache: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table, w
}

// longLog is a table with transactions and domains in many commits.
func longLog(t *testing.T, last int64) *fixture {
	f := newFixture(t).plain(`{"domainMetadata":{"domain":"d","configuration":"x","removed":false}}`)
	for v := int64(1); v <= last; v++ {
		f.commit(v, addLine(fmt.Sprint("f", v), int(v)), fmt.Sprintf(`{"txn":{"appId":"app%d","version":%d}}`, v%3, v))
	}
	return f
}

func TestCacheSparesTheLog(t *testing.T) {
	const last = 200
	f, c := longLog(t, last), &keptCache{}
	table, _ := reopened(t, f, c)
	want := at(t, table, last)
	table, w := reopened(t, f, c)
	s := at(t, table, last)
	if len(w.opened) != 0 || c.discards != 0 {
		t.Errorf("the log is read all the same: %q, %d discarded", w.opened, c.discards)
	}
	if !reflect.DeepEqual(s.Metadata(), want.Metadata()) || !reflect.DeepEqual(s.Protocol(), want.Protocol()) ||
		!reflect.DeepEqual(s.Txns(), want.Txns()) || !reflect.DeepEqual(s.Domains(), want.Domains()) {
		t.Errorf("the header is %+v, want %+v", s.header, want.header)
	}
	if got := paths(t, table, last); len(strings.Fields(got)) != last {
		t.Errorf("%d files", len(strings.Fields(got)))
	}
	for _, v := range []int64{0, 1, 63, 64, 65, 128, 199} {
		if got, _ := at(t, table, v).Txn(fmt.Sprint("app", v%3)); got != v {
			t.Errorf("version %d: the transaction is %d", v, got)
		}
	}
	if len(w.opened) != 0 {
		t.Errorf("older versions need the log: %q", w.opened)
	}
	f.commit(last+1, addLine("new", 1))
	refresh(t, table)
	if got := len(strings.Fields(paths(t, table, last+1))); got != last+1 || !slices.Equal(w.opened, []string{CommitName(last + 1)}) {
		t.Errorf("%d files in the next version, from %q", got, w.opened)
	}
}

// notesRead counts the notes that are asked for.
type notesRead struct {
	metacache.Index
	notes int
}

func (x *notesRead) Open(context.Context, string) (metacache.Index, error) { return x, nil }

func (x *notesRead) Close() error { return nil }

func (x *notesRead) Note(ctx context.Context, v int64) ([]byte, error) {
	x.notes++
	return x.Index.Note(ctx, v)
}

func TestHeadersAreRestoredOneByOne(t *testing.T) {
	f, c := longLog(t, 400), &notesRead{Index: metacache.NewMemory()}
	table, _ := reopened(t, f, c)
	at(t, table, 400)
	c.notes = 0
	table, _ = reopened(t, f, c)
	at(t, table, 400)
	if heads := 401; c.notes > heads+fullNoteEvery+2 { // heads prove that the cache is of the log
		t.Errorf("%d notes were read for one version", c.notes)
	}
	if n := len(table.life.headers); n != 1 {
		t.Errorf("%d headers were made for one version", n)
	}
}

func TestHeadersOfDroppedVersionsGo(t *testing.T) {
	const last = 3*leastHeaders + 100
	table, _ := reopened(t, longLog(t, last), forgetful{})
	for v := range int64(last + 1) {
		at(t, table, v)
	}
	covered := table.life.coverage()[0]
	if covered.First < last/2 {
		t.Fatalf("the index covers %v, and has dropped too little", covered)
	}
	if n := len(table.life.headers); n > int(last-covered.First)+leastHeaders+2 {
		t.Errorf("%d headers are kept while the index covers %v", n, covered)
	}
	for _, v := range []int64{last, 3} {
		version, ok := at(t, table, v).Txn("app1")
		if want := v - (v+2)%3; !ok || version != want {
			t.Errorf("at version %d, app1 is at %d, %v, want %d", v, version, ok, want)
		}
	}
}

func TestCacheOfAnotherLogIsDiscarded(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(f *fixture)
		discards int
		want     string
	}{
		"same":                     {func(*fixture) {}, 0, "a b c"},
		"longer":                   {func(f *fixture) { f.commit(3, addLine("d", 1)) }, 0, "a b c d"},
		"replaced":                 {func(f *fixture) { f.remove(CommitName(2)); f.commit(2, addLine("x", 1)) }, 1, "a b x"},
		"replaced before the last": {func(f *fixture) { f.remove(CommitName(1)); f.commit(1, addLine("x", 1)) }, 1, "a c x"},
		"shorter":                  {func(f *fixture) { f.remove(CommitName(2)) }, 1, "a b"},
		"made again": {func(f *fixture) {
			for v := range int64(3) {
				f.remove(CommitName(v))
			}
			f.plain(addLine("y", 1)).commit(1, addLine("z", 1)).commit(2, addLine("a", 1)).commit(3, addLine("b", 1))
		}, 1, "a b y z"},
		"cleaned up": {func(f *fixture) {
			f.commit(3, addLine("d", 1))
			writeCheckpoint(t, f, 3, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()},
				checkpointRow{Add: plainAdd("a")}, checkpointRow{Add: plainAdd("b")}, checkpointRow{Add: plainAdd("c")}, checkpointRow{Add: plainAdd("d")})
			f.remove(CommitName(0))
			f.remove(CommitName(2))
		}, 0, "a b c d"},
		"nothing left": {func(f *fixture) {
			f.commit(3, addLine("d", 1))
			writeCheckpoint(t, f, 3, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()}, checkpointRow{Add: plainAdd("q")})
			for v := range int64(3) {
				f.remove(CommitName(v))
			}
		}, 1, "q"},
	} {
		t.Run(name, func(t *testing.T) {
			f, kept := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1)).commit(2, addLine("c", 1)), &keptCache{}
			table, _ := reopened(t, f, kept)
			wantPaths(t, table, 2, "a b c")
			c.change(f)
			table, _ = reopened(t, f, kept)
			wantPaths(t, table, table.Latest(), c.want)
			if kept.discards != c.discards {
				t.Errorf("discarded %d times, want %d", kept.discards, c.discards)
			}
		})
	}
}

// cancelling cancels who opens it.
type cancelling struct {
	*keptCache
	cancel func()
}

func (c cancelling) Open(ctx context.Context, root string) (metacache.Index, error) {
	defer c.cancel()
	return c.keptCache.Open(ctx, root)
}

func TestCancelledOpeningDiscardsNoCache(t *testing.T) {
	f, kept := newFixture(t).plain(addLine("a", 1)), &keptCache{}
	table, _ := reopened(t, f, kept)
	wantPaths(t, table, 0, "a")
	ctx, cancel := context.WithCancel(t.Context())
	table, _ = reopened(t, f, cancelling{kept, cancel})
	if _, err := table.At(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if kept.discards != 0 {
		t.Error("the cache was discarded")
	}
	wantPaths(t, table, 0, "a")
}

func TestTableMadeAgainDiscardsItsCache(t *testing.T) {
	f, kept := newFixture(t).plain(addLine("a", 1)), &keptCache{}
	table, _ := reopened(t, f, kept)
	before := at(t, table, 0)
	f.remove(CommitName(0))
	f.plain(addLine("b", 1))
	if e := refresh(t, table); !e.Recreated || kept.discards != 1 {
		t.Errorf("%+v, discarded %d times", e, kept.discards)
	}
	wantPaths(t, table, 0, "b")
	var names []string
	for f, err := range before.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Path)
	}
	if !slices.Equal(names, []string{"a"}) {
		t.Errorf("the snapshot of before shows %q", names)
	}
}

func TestCacheWithDamagedNotesCostsTimeOnly(t *testing.T) {
	for _, note := range []string{"", "x", "{}", `{"full":true,"files":[]}`, `{"full":true,"files":[]}` + "\n" + protocolLine} {
		index := metacache.NewMemory()
		err := index.Load(t.Context(), 0, []byte(note), func(yield func(metacache.File, error) bool) {
			yield(metacache.File{Key: metacache.Key{Name: "wrong", Path: "wrong"}}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		f := newFixture(t).plain(addLine("a", 1))
		kept := &keptCache{}
		kept.index = &keptIndex{index, kept}
		table, _ := reopened(t, f, kept)
		wantPaths(t, table, 0, "a")
		if kept.discards != 1 {
			t.Errorf("%q: discarded %d times", note, kept.discards)
		}
	}
}
