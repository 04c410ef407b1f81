package snapshot

import (
	"context"
	"iter"

	"github.com/deltafs/deltafs/metacache"
)

type fileSeq = iter.Seq2[metacache.File, error]

func sliceSeq(files []metacache.File) fileSeq {
	return func(yield func(metacache.File, error) bool) {
		for _, f := range files {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// rearrange indexes a commit that changes the partition columns: the files
// that stay appear in other directories, so the version is loaded as a whole.
func (r *fileReplay) rearrange(ctx context.Context, base *header, c *change) error {
	replaced := make(map[string]bool, len(c.added))
	for _, f := range c.added {
		replaced[f.Path] = true
	}
	gone := make(map[metacache.Gone]bool, len(c.gone))
	for _, g := range c.gone {
		gone[g] = true
	}
	return r.index.Load(ctx, c.header.version, func(yield func(metacache.File, error) bool) {
		for f, err := range r.index.Files(ctx, base.version) {
			if err == nil && (replaced[f.Path] || gone[metacache.Gone{Path: f.Path, DV: f.DV}]) {
				continue
			}
			if err == nil {
				f, err = r.moved(f, c.header)
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
		sliceSeq(c.added)(yield)
	})
}

// moved returns the entry under the layout of h.
func (r *fileReplay) moved(f metacache.File, h *header) (metacache.File, error) {
	add, err := decodeAdd(f.Add)
	if err != nil {
		return f, err
	}
	return indexFile(add, h, r.table.store.Root())
}
