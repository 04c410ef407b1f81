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
	alone := newFold(false)
	alone.add(c)
	dirs := r.dirsOf(c.header.shape)
	moved := func(yield func(metacache.File, error) bool) {
		window := make([]File, 0, addWindow)
		flush := func() bool {
			adds, err := r.adds(ctx, window)
			if err != nil {
				return yield(metacache.File{}, err)
			}
			for i, add := range adds {
				f, err := indexFile(add, window[i].origin, dirs.ofMap(add.PartitionValues), r.table.store.Root())
				if !yield(f, err) || err != nil {
					return false
				}
			}
			window = window[:0]
			return true
		}
		for f, err := range alone.staying(r.filesOf(ctx, base)) {
			if err != nil {
				yield(f, err)
				return
			}
			if window = append(window, r.file(f, f.Name, base.version, 0)); len(window) == cap(window) && !flush() {
				return
			}
		}
		if flush() {
			sliceSeq(c.added)(yield)
		}
	}
	return r.cover(ctx, c.header, c.from, moved)
}
