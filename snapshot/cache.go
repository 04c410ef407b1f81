package snapshot

import (
	"context"

	"github.com/deltafs/deltafs/metacache"
)

// Cache opens indexes that outlive the process.
type Cache interface {
	// Open returns the index of the table with this root, with whatever it
	// covers already. It is called when the index is first needed.
	Open(ctx context.Context, root string) (metacache.Index, error)
}

// openIndex opens the index of the table's files: a cache that fails costs
// time and nothing else.
func (t *Table) openIndex(ctx context.Context) (metacache.Index, error) {
	if t.cache == nil {
		return metacache.NewMemory(), nil
	}
	index, err := t.cache.Open(ctx, t.store.Root())
	switch {
	case err == nil:
		return index, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	t.log.Warn("the cache does not open", "op", "load", "table", t.name, "err", err)
	return metacache.NewMemory(), nil
}
