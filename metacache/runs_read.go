package metacache

import (
	"context"
	"iter"

	"github.com/deltafs/deltafs/internal/fault"
)

// Dir implements Index.
func (x *Runs) Dir(ctx context.Context, v int64, dir, after string) iter.Seq2[File, error] {
	return sequence(ctx, x, v, func(v view) iter.Seq2[File, error] {
		name := ""
		if after != "" {
			name = firstAfter(after)
		}
		p, err := v.inDir(ctx, dir, name)
		if err != nil {
			return failing[File](err)
		}
		return v.scan(ctx, p)
	})
}

// Files implements Index.
func (x *Runs) Files(ctx context.Context, v int64) iter.Seq2[File, error] {
	return sequence(ctx, x, v, func(v view) iter.Seq2[File, error] { return v.scan(ctx, v.all()) })
}

// Subdirs implements Index, with one search for each directory yielded.
func (x *Runs) Subdirs(ctx context.Context, v int64, dir, after string) iter.Seq2[string, error] {
	return sequence(ctx, x, v, func(v view) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			from := firstBelow(dir)
			if after != "" {
				from = firstAfter(join(dir, after))
			}
			for {
				found, ok, err := v.dirFrom(ctx, from)
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					yield("", err)
					return
				}
				child := childOf(dir, found)
				if !ok || child == "" || !yield(child, nil) {
					return
				}
				from = firstAfter(join(dir, child))
			}
		}
	})
}

// Lookup implements Index.
func (x *Runs) Lookup(ctx context.Context, v int64, dir, name string) ([]File, error) {
	return point(ctx, x, v, func(v view) (found []File, err error) {
		p, err := v.named(ctx, dir, name)
		if err != nil {
			return nil, err
		}
		for f, err := range v.scan(ctx, p) {
			if err != nil {
				return nil, err
			}
			found = append(found, f)
		}
		return found, nil
	})
}

// ByPath implements Index.
func (x *Runs) ByPath(ctx context.Context, v int64, path string) (File, bool, error) {
	ok := false
	f, err := point(ctx, x, v, func(v view) (File, error) {
		s, err := v.find(ctx, path)
		var c change
		if err == nil {
			c, ok = s.live()
		}
		return c.file, err
	})
	if err != nil || !ok {
		return File{}, false, err
	}
	return f, true, nil
}

// ByID implements Index.
func (x *Runs) ByID(ctx context.Context, id FileID) (File, bool, error) {
	if err := ctx.Err(); err != nil {
		return File{}, false, err
	}
	var buffer [DefaultMaxRuns]view
	views := x.views(buffer[:0])
	defer func() {
		for _, v := range views {
			v.release()
		}
	}()
	for _, v := range views {
		f, ok, err := v.withID(ctx, id)
		if ok && err == nil {
			v.run.used.Store(x.clock.Add(1))
			return f, true, nil
		}
		if err := x.failed(ctx, v, err); err != nil && ctx.Err() != nil {
			return File{}, false, err
		}
	}
	return File{}, false, nil
}

// LastID implements Index.
func (x *Runs) LastID() FileID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.lastID
}

// Note implements Index.
func (x *Runs) Note(ctx context.Context, v int64) ([]byte, error) {
	return point(ctx, x, v, func(v view) ([]byte, error) { return v.info.note, nil })
}

// Totals implements Index.
func (x *Runs) Totals(ctx context.Context, v int64) (Totals, error) {
	return point(ctx, x, v, func(v view) (Totals, error) { return v.info.totals, nil })
}

// point answers from one version.
func point[T any](ctx context.Context, x *Runs, version int64, ask func(view) (T, error)) (T, error) {
	v, err := x.view(ctx, version)
	if err != nil {
		var none T
		return none, err
	}
	defer v.release()
	out, err := ask(v)
	return out, x.failed(ctx, v, err)
}

// sequence yields what one version has, which stays at hand meanwhile. The
// first error is the end.
func sequence[T any](ctx context.Context, x *Runs, version int64, ask func(view) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		v, err := x.view(ctx, version)
		if err != nil {
			failing[T](err)(yield)
			return
		}
		defer v.release()
		begun := false
		for item, err := range ask(v) {
			if err != nil {
				lost := x.failed(ctx, v, err)
				if !begun {
					err = lost
				}
				yield(item, err)
				return
			}
			if begun = true; !yield(item, nil) {
				return
			}
		}
	}
}

func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// failed returns what an error of a view means. A base that does not read is
// given up with its run: the version is not covered, and can be loaded again.
func (x *Runs) failed(ctx context.Context, v view, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	x.drop(v.run)
	return fault.Wrap(ErrNotCovered, err, "what the index kept of it does not read").AtVersion(v.version)
}
