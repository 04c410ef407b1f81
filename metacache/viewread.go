package metacache

import (
	"context"
	"iter"
	"sort"
)

// part is a range of keys, and of the base's ranks in it.
type part struct {
	from       Key
	first, end int
	// holds reports whether a key at or after from is in the part.
	holds func(*Key) bool
}

func (v view) all() part {
	return part{end: v.base.count(), holds: func(*Key) bool { return true }}
}

// inDir is a directory from a visible name on.
func (v view) inDir(ctx context.Context, dir, name string) (part, error) {
	p := part{from: Key{Dir: dir, Name: name}, holds: func(k *Key) bool { return k.Dir == dir }}
	d, ok, err := seekDir(ctx, v.base, dir)
	if err != nil {
		return p, err
	}
	p.first, p.end = d.first, d.first
	if !ok {
		return p, nil
	}
	p.end = d.end()
	if name != "" {
		p.first, err = v.base.seekName(ctx, d, name)
	}
	return p, err
}

// named is the files of one visible name in a directory.
func (v view) named(ctx context.Context, dir, name string) (part, error) {
	p := part{from: Key{Dir: dir, Name: name}, holds: func(k *Key) bool { return k.Dir == dir && k.Name == name }}
	d, ok, err := seekDir(ctx, v.base, dir)
	if err != nil {
		return p, err
	}
	p.first, p.end = d.first, d.first
	if !ok {
		return p, nil
	}
	if h, ok := v.base.base.(*heapBase); ok && !h.isOrdered(d) && !h.names.mayHave(hashPath(h.paths.seed, name)) {
		p.first, p.end = unranked, unranked
		return p, nil
	}
	if p.first, err = v.base.seekName(ctx, d, name); err == nil {
		p.end, err = v.base.seekName(ctx, d, firstAfter(name))
	}
	return p, err
}

// rankOf returns the rank of a key that the base does not have, unranked where
// that would put a directory in order or read files from the disk.
func (v view) rankOf(ctx context.Context, k Key) (int, error) {
	d, ok, err := seekDir(ctx, v.base, k.Dir)
	if err != nil || !ok {
		return d.first, err
	}
	if h, ok := v.base.base.(*heapBase); !ok || !h.isOrdered(d) {
		return unranked, nil
	}
	return seekKey(ctx, v.base, k)
}

// seekDir returns a directory of a base; if it has no such one, false and the
// place where its files would be.
func seekDir(ctx context.Context, b base, dir string) (baseDir, bool, error) {
	number, err := b.seekDir(ctx, dir)
	if err != nil {
		return baseDir{}, false, err
	}
	d, ok, err := b.dir(ctx, number)
	switch {
	case err != nil || !ok:
		return baseDir{first: b.count()}, false, err
	case d.path != dir:
		return baseDir{first: d.first}, false, nil
	}
	return d, true, nil
}

// seekKey returns the rank of the first file of a base whose key is not less.
func seekKey(ctx context.Context, b base, k Key) (int, error) {
	d, ok, err := seekDir(ctx, b, k.Dir)
	if err != nil || !ok {
		return d.first, err
	}
	first, err := b.seekName(ctx, d, k.Name)
	if err != nil {
		return 0, err
	}
	end, err := b.seekName(ctx, d, firstAfter(k.Name))
	if err != nil {
		return 0, err
	}
	n := sort.Search(end-first, func(i int) bool {
		f, e := b.file(ctx, first+i)
		if e != nil {
			err = e
		}
		return f.Path >= k.Path
	})
	return first + n, err
}

// scan yields the files in a part: those of the base that the delta does not
// hide, and those of the delta.
func (v view) scan(ctx context.Context, p part) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		c := v.delta.cursor(v.version, p.first, p.from)
		emit := func(f *File) bool {
			if err := ctx.Err(); err != nil {
				yield(File{}, err)
				return false
			}
			return yield(*f, nil)
		}
		if p.first < p.end {
			rank := p.first
			for f, err := range v.base.scan(ctx, p.first, p.end) {
				if err != nil {
					yield(File{}, err)
					return
				}
				hidden := false
				for e := c.peek(); e != nil; e = c.peek() {
					if !e.isAt(rank, &f) {
						break
					}
					c.advance()
					hidden = hidden || e.inBase
					if !e.ended && !emit(&e.file) {
						return
					}
				}
				if !hidden && !emit(&f) {
					return
				}
				rank++
			}
		}
		for e := c.peek(); e != nil && p.holds(&e.file.Key); e = c.peek() {
			c.advance()
			if !e.ended && !emit(&e.file) {
				return
			}
		}
	}
}

// dirFrom returns the directory of the first file in a directory at or after
// this one; false if there is none. It reads no file of the base.
func (v view) dirFrom(ctx context.Context, from string) (string, bool, error) {
	number, err := v.base.seekDir(ctx, from)
	if err != nil {
		return "", false, err
	}
	d, ok, err := v.base.dir(ctx, number)
	if err != nil {
		return "", false, err
	}
	// rank is that of the first file that no entry hides, d its directory.
	rank := v.base.count()
	if ok {
		rank = d.first
	}
	c := v.delta.cursor(v.version, rank, Key{Dir: from})
	for e := c.peek(); e != nil; e = c.peek() {
		if e.rank != unranked && e.rank != rank || e.rank == unranked && ok && CompareDirs(e.file.Dir, d.path) > 0 {
			break
		}
		c.advance()
		if !e.ended {
			return e.file.Dir, true, nil
		}
		if !e.inBase {
			continue
		}
		for rank++; ok && d.end() <= rank; {
			number++
			if d, ok, err = v.base.dir(ctx, number); err != nil {
				return "", false, err
			}
		}
	}
	return d.path, ok, nil
}

// standing is what a view knows of a path.
type standing struct {
	// entry is the last one of the delta, nil without one.
	entry *entry
	// inBase is the file of the base, if hasBase is set.
	inBase  change
	hasBase bool
}

// find looks up a path.
func (v view) find(ctx context.Context, path string) (standing, error) {
	s := standing{entry: v.delta.at(path, v.version)}
	rank, ok, err := v.base.byPath(ctx, path)
	if err != nil || !ok {
		return s, err
	}
	f, err := v.base.file(ctx, rank)
	s.inBase, s.hasBase = change{file: f, rank: rank, inBase: true}, true
	return s, err
}

// live returns the live file, where it is.
func (s *standing) live() (change, bool) {
	if s.entry != nil {
		return s.entry.change, !s.entry.ended
	}
	return s.inBase, s.hasBase
}

// idOf returns the ID of a file that is in any version of the view's run, 0 if
// none is.
func (v view) idOf(ctx context.Context, path, dv string) (FileID, error) {
	if id := v.delta.idOf(path, dv); id != 0 {
		return id, nil
	}
	rank, ok, err := v.base.byPath(ctx, path)
	if err != nil || !ok {
		return 0, err
	}
	f, err := v.base.file(ctx, rank)
	if err != nil || f.DV != dv {
		return 0, err
	}
	return f.ID, nil
}

// identities visits every file that is in any version of the view's run, more
// than once if it was added again.
func (v view) identities(ctx context.Context, visit func(*File)) error {
	for f, err := range v.base.scan(ctx, 0, v.base.count()) {
		if err != nil {
			return err
		}
		visit(&f)
	}
	v.delta.each(func(e *entry) { visit(&e.file) })
	return nil
}

// withID returns a file by its ID.
func (v view) withID(ctx context.Context, id FileID) (File, bool, error) {
	if e := v.delta.withID(id); e != nil {
		return e.file, true, nil
	}
	rank, ok, err := v.base.byID(ctx, id)
	if err != nil || !ok {
		return File{}, false, err
	}
	f, err := v.base.file(ctx, rank)
	return f, err == nil, err
}
