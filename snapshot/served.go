package snapshot

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/deltafs/deltafs/internal/action"
)

// noteSize remembers the size of a file that is shown raw if it contradicts the
// log.
func (t *Table) noteSize(f File, size int64) {
	if size == f.Size {
		return
	}
	t.sizes.keep(f, size)
	t.sizes.contradicted.Store(true)
	t.log.Warn("a data file has another size than the log says", "op", "open", "table", t.name,
		"version", f.Version, "path", f.Path, "logged", f.Size, "found", size)
}

// HasOtherSizes reports whether a data file that is shown raw was found to have
// another size than the log says. Files that were shown before show the log's.
func (t *Table) HasOtherSizes() bool { return t.sizes.contradicted.Load() }

// KnownSize returns the size in which a file is served, if that is known without
// looking at it.
func (t *Table) KnownSize(f File) (int64, bool) {
	if f.SchemaOrdinal == 0 {
		return f.Size, true
	}
	return t.sizes.get(f)
}

// ServedSize returns the size in which a file is served. Where it is not known it
// is read from the file's footer and its deletion vector, never from its data.
// Errors are those of Open.
func (t *Table) ServedSize(ctx context.Context, f File) (int64, error) {
	size, err := t.servedSize(ctx, f, nil)
	if err != nil {
		return 0, t.fileFault(f, err)
	}
	return size, nil
}

func (t *Table) servedSize(ctx context.Context, f File, add *action.Add) (int64, error) {
	if size, ok := t.KnownSize(f); ok {
		return size, nil
	}
	object, err := t.openObject(ctx, f)
	if err != nil {
		return 0, err
	}
	defer object.Close()
	p, err := t.planned(ctx, f, add, object)
	switch {
	case err != nil:
		return 0, err
	case p == nil:
		return object.Info().Size, nil
	}
	return p.Size, nil
}

// ReadSizes finds out the sizes of many files, as many at a time as there are
// processors. Who asks for one of those that cannot be read is told why.
func (t *Table) ReadSizes(ctx context.Context, files []File) {
	adds := make([]*action.Add, len(files))
	if i := slices.IndexFunc(files, func(f File) bool { return f.DV != "" }); i >= 0 && files[i].life != nil {
		// Together they cost little more than one.
		if found, err := files[i].life.adds(ctx, files); err == nil {
			adds = found
		}
	}
	t.sizesOf(ctx, files, adds)
}

// sizesOf returns the sizes in which files are served, -1 for one that cannot be
// read. An add may be nil.
func (t *Table) sizesOf(ctx context.Context, files []File, adds []*action.Add) []int64 {
	out := slices.Repeat([]int64{-1}, len(files))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(files), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(files)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if size, err := t.servedSize(ctx, files[i], adds[i]); err == nil {
					out[i] = size
				}
			}
		})
	}
	workers.Wait()
	return out
}

// sizeWindow is how many files' sizes are found out before they are told.
const sizeWindow = 1024

// servedAdds is AllAdds with the sizes in which the files are served. One that
// cannot be read has the size that the log says, as a listing shows it.
func (s *Snapshot) servedAdds(ctx context.Context) iter.Seq2[FileAdd, error] {
	return func(yield func(FileAdd, error) bool) {
		var files []File
		var adds []*action.Add
		flush := func() bool {
			sizes := s.table.sizesOf(ctx, files, adds)
			if err := ctx.Err(); err != nil {
				yield(FileAdd{}, err)
				return false
			}
			for i, f := range files {
				if sizes[i] >= 0 {
					f.Size = sizes[i]
				}
				if !yield(FileAdd{f, adds[i]}, nil) {
					return false
				}
			}
			files, adds = files[:0], adds[:0]
			return true
		}
		for f, err := range s.AllAdds(ctx) {
			if err != nil {
				yield(FileAdd{}, err)
				return
			}
			files, adds = append(files, f.File), append(adds, f.Add)
			if len(files) == sizeWindow && !flush() {
				return
			}
		}
		flush()
	}
}
