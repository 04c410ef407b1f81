package metacache_test

import (
	"context"
	"iter"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/deltafs/deltafs/metacache"
	"github.com/deltafs/deltafs/metacache/indextest"
)

// settle waits until the keeper of an index has everything.
func settle(t *testing.T, x metacache.Index) {
	t.Helper()
	for begun := time.Now(); !metacache.Settled(x); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the keeper does not get done")
		}
	}
}

func openCache(t *testing.T) *metacache.Cache {
	return metacache.OpenCache(metacache.CacheOptions{Dir: filepath.Join(t.TempDir(), "cache"), Size: 1 << 30})
}

func TestCachedIndex(t *testing.T) {
	indextest.Run(t, func(t *testing.T) metacache.Index {
		x, err := openCache(t).Open(t.Context(), "/tables/t")
		check(t, err)
		t.Cleanup(func() { check(t, x.Close()) })
		return &settling{Index: x, t: t}
	})
}

// settling is an index that is kept completely after each change.
type settling struct {
	metacache.Index
	t *testing.T
}

func (s *settling) Load(ctx context.Context, v int64, note []byte, files iter.Seq2[metacache.File, error]) error {
	err := s.Index.Load(ctx, v, note, files)
	settle(s.t, s.Index)
	return err
}

func (s *settling) Apply(ctx context.Context, v int64, note []byte, gone []metacache.Gone, added []metacache.File) error {
	err := s.Index.Apply(ctx, v, note, gone, added)
	settle(s.t, s.Index)
	return err
}

func TestIndexReopenedAfterEachChange(t *testing.T) {
	indextest.Run(t, func(t *testing.T) metacache.Index {
		x := &reopening{t: t, cache: openCache(t)}
		x.open()
		t.Cleanup(func() { check(t, x.index.Close()) })
		return x
	})
}

// reopening is an index that is closed and opened again after each change,
// unless somebody is reading it.
type reopening struct {
	t     *testing.T
	cache *metacache.Cache

	mu    sync.RWMutex
	index metacache.Index
	last  metacache.FileID
}

func (x *reopening) open() {
	index, err := x.cache.Open(context.Background(), "/tables/t")
	if err != nil {
		x.t.Error(err)
		return
	}
	// The IDs of an index are for the time that it is open.
	metacache.SkipIDs(index, x.last)
	x.index = index
}

func (x *reopening) reopen() {
	if !x.mu.TryLock() {
		return
	}
	defer x.mu.Unlock()
	settle(x.t, x.index)
	x.last = x.index.LastID()
	if err := x.index.Close(); err != nil {
		x.t.Error(err)
	}
	x.open()
}

func (x *reopening) read() func() {
	x.mu.RLock()
	return x.mu.RUnlock
}

func (x *reopening) Load(ctx context.Context, v int64, note []byte, files iter.Seq2[metacache.File, error]) error {
	defer x.reopen()
	defer x.read()()
	return x.index.Load(ctx, v, note, files)
}

func (x *reopening) Apply(ctx context.Context, v int64, note []byte, gone []metacache.Gone, added []metacache.File) error {
	defer x.reopen()
	defer x.read()()
	return x.index.Apply(ctx, v, note, gone, added)
}

func (x *reopening) Coverage() []metacache.Span {
	defer x.read()()
	return x.index.Coverage()
}

func (x *reopening) Note(ctx context.Context, v int64) ([]byte, error) {
	defer x.read()()
	return x.index.Note(ctx, v)
}

func (x *reopening) Dir(ctx context.Context, v int64, dir, after string) iter.Seq2[metacache.File, error] {
	return reading(x, func() iter.Seq2[metacache.File, error] { return x.index.Dir(ctx, v, dir, after) })
}

func (x *reopening) Subdirs(ctx context.Context, v int64, dir, after string) iter.Seq2[string, error] {
	return reading(x, func() iter.Seq2[string, error] { return x.index.Subdirs(ctx, v, dir, after) })
}

func (x *reopening) Files(ctx context.Context, v int64) iter.Seq2[metacache.File, error] {
	return reading(x, func() iter.Seq2[metacache.File, error] { return x.index.Files(ctx, v) })
}

func reading[T any](x *reopening, items func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer x.read()()
		items()(yield)
	}
}

func (x *reopening) Lookup(ctx context.Context, v int64, dir, name string) ([]metacache.File, error) {
	defer x.read()()
	return x.index.Lookup(ctx, v, dir, name)
}

func (x *reopening) ByPath(ctx context.Context, v int64, path string) (metacache.File, bool, error) {
	defer x.read()()
	return x.index.ByPath(ctx, v, path)
}

func (x *reopening) ByID(ctx context.Context, id metacache.FileID) (metacache.File, bool, error) {
	defer x.read()()
	return x.index.ByID(ctx, id)
}

func (x *reopening) LastID() metacache.FileID {
	defer x.read()()
	return x.index.LastID()
}

func (x *reopening) Totals(ctx context.Context, v int64) (metacache.Totals, error) {
	defer x.read()()
	return x.index.Totals(ctx, v)
}

func (x *reopening) Close() error {
	defer x.read()()
	return x.index.Close()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
