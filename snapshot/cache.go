package snapshot

import (
	"context"
	"errors"

	"github.com/deltafs/deltafs/metacache"
)

// Cache opens indexes that outlive the process.
type Cache interface {
	// Open returns the index of the table with this root, with whatever it
	// covers already. It is called when the index is first needed.
	Open(ctx context.Context, root string) (metacache.Index, error)
}

// discard deletes what a cache has of the table, which is not the one of the
// log at hand. The index goes on to answer for what it has open.
func (t *Table) discard(index metacache.Index) {
	d, ok := index.(metacache.Discarder)
	if !ok {
		return
	}
	if err := d.Discard(); err != nil {
		t.log.Warn("the cache of another table stays", "op", "load", "table", t.name, "err", err)
	}
}

// newIndex opens the index of the table's files. A cache that does not open, or
// is not of the log at hand, costs time and nothing else.
func (n *incarnation) newIndex(ctx context.Context) (metacache.Index, error) {
	t := n.table
	if t.cache == nil {
		return metacache.NewMemory(), nil
	}
	for range 2 {
		index, err := t.cache.Open(ctx, t.store.Root())
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			t.log.Warn("the cache does not open", "op", "load", "table", t.name, "err", err)
			break
		}
		believed, err := n.believes(ctx, index)
		if err != nil {
			return nil, errors.Join(err, index.Close())
		}
		if believed {
			return index, nil
		}
		t.log.Info("the cache is of another table", "op", "load", "table", t.name)
		t.discard(index)
		if err := index.Close(); err != nil {
			t.log.Warn("the cache does not close", "op", "load", "table", t.name, "err", err)
		}
	}
	return metacache.NewMemory(), nil
}

// believes reports whether an index that was opened is of the log at hand: all
// versions that it covers must have been read from the files that the log still
// has of them, and there must be such files.
func (n *incarnation) believes(ctx context.Context, index metacache.Index) (bool, error) {
	l := n.log()
	spans := index.Coverage()
	if len(spans) == 0 {
		return true, nil
	}
	if spans[len(spans)-1].Last > l.latest {
		return false, nil // cleanup never takes the newest commit
	}
	proven := false
	for _, span := range spans {
		for v := span.First; v <= span.Last; v++ {
			text, err := index.Note(ctx, v)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err != nil {
				continue
			}
			head, _, err := decodeNoteHead(text)
			if err != nil {
				continue
			}
			same, there := n.holds(ctx, v, head.Files)
			if there && !same {
				return false, nil
			}
			proven = proven || there
		}
	}
	return proven, nil
}
