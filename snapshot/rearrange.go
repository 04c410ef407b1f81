package snapshot

import (
	"context"
	"iter"
	"slices"

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
	staying, err := r.staying(ctx, base, c)
	if err != nil {
		return err
	}
	return r.opened().Load(ctx, c.header.version, nil, func(yield func(metacache.File, error) bool) {
		for window := range slices.Chunk(staying, addWindow) {
			adds, err := r.adds(ctx, window)
			if err != nil {
				yield(metacache.File{}, err)
				return
			}
			for i, add := range adds {
				f, err := indexFile(add, window[i].origin, c.header, r.table.store.Root())
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
		sliceSeq(c.added)(yield)
	})
}

// staying returns the files of base that the commit neither removes nor
// replaces.
func (r *fileReplay) staying(ctx context.Context, base *header, c *change) ([]File, error) {
	replaced := make(map[string]bool, len(c.added))
	for _, f := range c.added {
		replaced[f.Path] = true
	}
	gone := make(map[metacache.Gone]bool, len(c.gone))
	for _, g := range c.gone {
		gone[g] = true
	}
	var out []File
	for f, err := range r.opened().Files(ctx, base.version) {
		if err != nil {
			return nil, err
		}
		if !replaced[f.Path] && !gone[metacache.Gone{Path: f.Path, DV: f.DV}] {
			out = append(out, r.file(f, f.Name, base.version))
		}
	}
	return out, nil
}
