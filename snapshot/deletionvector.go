package snapshot

import (
	recency "container/list"
	"context"
	"errors"
	"sync"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/deletionvector"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
)

// DeletionVector returns the physical rows of a data file that are deleted; nil
// without a deletion vector. The bitmap is shared: callers must not change it.
// Whoever knows how many rows the file has checks it by
// [deletionvector.CheckRows]. ErrFileGone, ErrOutside, ErrCorrupt.
func (t *Table) DeletionVector(ctx context.Context, add *action.Add) (*roaring64.Bitmap, error) {
	d := add.DeletionVector
	if d == nil {
		return nil, nil
	}
	life, err := t.current()
	if err != nil {
		return nil, err
	}
	key := vectorKey{d.ID(), d.SizeInBytes, d.Cardinality}
	if rows := life.vectors.get(key); rows != nil {
		return rows, nil
	}
	rows, err := deletionvector.Load(ctx, d, t.openVector)
	if err != nil {
		return nil, t.fault(vectorFault(err, add.Path))
	}
	life.vectors.put(key, rows)
	return rows, nil
}

// openVector opens a file with deletion vectors under the rules for data files.
func (t *Table) openVector(ctx context.Context, path string) (deletionvector.Object, int64, error) {
	object, err := t.openPath(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	return object, object.Info().Size, nil
}

// vectorFault says which data file cannot be shown without its deletion vector.
func vectorFault(err error, path string) error {
	switch {
	case errors.Is(err, deletionvector.ErrBroken):
		return fault.Wrap(ErrCorrupt, err, "the file's deletion vector is broken").InFile(path).
			WithHint("read another version; without the vector deleted rows would show")
	case errors.Is(err, store.ErrNotExist):
		return fault.Wrap(ErrFileGone, err, "the file's deletion vector is not there").InFile(path).
			WithHint("restore it, or read another version; without the vector deleted rows would show")
	case errors.Is(err, store.ErrOutside):
		return fault.Wrap(ErrOutside, err, "the file's deletion vector lies outside the table").InFile(path)
	}
	return err
}

// vectorKey is a descriptor: vectors are immutable, and so are the files that
// hold them.
type vectorKey struct {
	id                string
	size, cardinality int64
}

// mostVectorBytes bounds what a vectorCache holds. Files are read from many
// times, and tables seldom have more than a few large vectors.
const mostVectorBytes = 16 << 20

// vectorCache keeps the vectors that were used last. Its zero value is empty.
type vectorCache struct {
	mu    sync.Mutex
	byKey map[vectorKey]*recency.Element
	order recency.List // of *keptVector; the most recently used one first
	bytes int
}

type keptVector struct {
	key   vectorKey
	rows  *roaring64.Bitmap
	bytes int
}

func (c *vectorCache) get(key vectorKey) *roaring64.Bitmap {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*keptVector).rows
}

func (c *vectorCache) put(key vectorKey, rows *roaring64.Bitmap) {
	const overhead = 512 // of an entry, about
	v := &keptVector{key, rows, overhead + 2*len(key.id) + int(min(rows.GetSizeInBytes(), mostVectorBytes))}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.bytes > mostVectorBytes || c.byKey[key] != nil {
		return
	}
	if c.byKey == nil {
		c.byKey = map[vectorKey]*recency.Element{}
	}
	c.byKey[key] = c.order.PushFront(v)
	c.bytes += v.bytes
	for c.bytes > mostVectorBytes {
		last := c.order.Remove(c.order.Back()).(*keptVector)
		delete(c.byKey, last.key)
		c.bytes -= last.bytes
	}
}
