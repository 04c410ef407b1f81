package metacache

import (
	"context"
	"iter"
)

// Dir implements Index.
func (m *Memory) Dir(ctx context.Context, v int64, dir, after string) iter.Seq2[File, error] {
	from := Key{Dir: dir}
	if after != "" {
		from.Name = firstAfter(after)
	}
	return m.scan(ctx, v, from, func(r *record) bool { return r.dir.Value() == dir })
}

// Files implements Index.
func (m *Memory) Files(ctx context.Context, v int64) iter.Seq2[File, error] {
	return m.scan(ctx, v, Key{}, func(*record) bool { return true })
}

// scan yields the files from a key on for as long as they are wanted.
func (m *Memory) scan(ctx context.Context, v int64, from Key, wanted func(*record) bool) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		s, err := m.version(ctx, v)
		if err != nil {
			yield(File{}, err)
			return
		}
		s.byKey.AscendGreaterOrEqual(pivot(from), func(r *record) bool {
			if !wanted(r) {
				return false
			}
			if err := ctx.Err(); err != nil {
				yield(File{}, err)
				return false
			}
			return yield(r.file(), nil)
		})
	}
}

// Subdirs implements Index, with one search for each directory yielded.
func (m *Memory) Subdirs(ctx context.Context, v int64, dir, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s, err := m.version(ctx, v)
		if err != nil {
			yield("", err)
			return
		}
		from := firstBelow(dir)
		if after != "" {
			from = firstAfter(join(dir, after))
		}
		for {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			child := s.childFrom(dir, from)
			if child == "" || !yield(child, nil) {
				return
			}
			from = firstAfter(join(dir, child))
		}
	}
}

// childFrom returns the directory directly below dir that holds the first
// file at or after the directory from, "" if there is none.
func (s *state) childFrom(dir, from string) string {
	child := ""
	s.byKey.AscendGreaterOrEqual(pivot(Key{Dir: from}), func(r *record) bool {
		child = childOf(dir, r.dir.Value())
		return false
	})
	return child
}

// Lookup implements Index.
func (m *Memory) Lookup(ctx context.Context, v int64, dir, name string) ([]File, error) {
	s, err := m.version(ctx, v)
	if err != nil {
		return nil, err
	}
	var found []File
	s.byKey.AscendGreaterOrEqual(pivot(Key{Dir: dir, Name: name}), func(r *record) bool {
		if r.name() != name || r.dir.Value() != dir {
			return false
		}
		found = append(found, r.file())
		return true
	})
	return found, nil
}

// ByPath implements Index.
func (m *Memory) ByPath(ctx context.Context, v int64, path string) (File, bool, error) {
	s, err := m.version(ctx, v)
	if err != nil {
		return File{}, false, err
	}
	r := s.at(path)
	if r == nil {
		return File{}, false, nil
	}
	return r.file(), true, nil
}

// ByID implements Index. A file that was in dropped versions only is not
// found until one of them is loaded again.
func (m *Memory) ByID(ctx context.Context, id FileID) (File, bool, error) {
	if err := ctx.Err(); err != nil {
		return File{}, false, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if id >= FileID(len(m.files)) || m.files[id] == nil {
		return File{}, false, nil
	}
	return m.files[id].file(), true, nil
}

// LastID implements Index.
func (m *Memory) LastID() FileID {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return FileID(len(m.files) - 1)
}

// Note implements Index.
func (m *Memory) Note(ctx context.Context, v int64) ([]byte, error) {
	s, err := m.version(ctx, v)
	if err != nil {
		return nil, err
	}
	return s.note, nil
}

// Totals implements Index.
func (m *Memory) Totals(ctx context.Context, v int64) (Totals, error) {
	s, err := m.version(ctx, v)
	if err != nil {
		return Totals{}, err
	}
	return s.totals(), nil
}
