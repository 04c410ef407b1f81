package snapshot

import (
	"context"
	"hash/maphash"

	"github.com/deltafs/deltafs/metacache"
)

const (
	// foldBeyond is how many versions are covered one by one at most. More of
	// them are folded: who asks for a version far away seldom wants all those on
	// the way, which would take much more time and memory.
	foldBeyond = 500
	// unfolded versions before the one that is wanted are covered all the same.
	unfolded = 100
)

// fold is what a row of commits does to the files before them, in little
// memory: the files themselves are read again from the commits. Paths are
// known by hashes under random seeds, so that no log can be made to collide.
type fold struct {
	seeds [2]maphash.Seed
	// fates are what became of paths that were added.
	fates map[pathHash]fate
	// gone are the files of before that were removed.
	gone map[goneHash]bool
	// first says that there was nothing before.
	first bool
}

type pathHash [2]uint64

type goneHash struct {
	path pathHash
	dv   uint64
}

// fate is which commit added the file that a path names, noCommit if it was
// removed again, and the hash of its deletion vector. Whatever the path named
// before is gone.
type fate struct {
	version int64
	dv      uint64
}

const noCommit = -1

func newFold(first bool) *fold {
	return &fold{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		fates: map[pathHash]fate{}, gone: map[goneHash]bool{}, first: first,
	}
}

func (f *fold) hash(path, dv string) goneHash {
	return goneHash{pathHash{maphash.String(f.seeds[0], path), maphash.String(f.seeds[1], path)}, maphash.String(f.seeds[0], dv)}
}

func (f *fold) add(c *change) {
	for _, g := range c.gone {
		h := f.hash(g.Path, g.DV)
		now, added := f.fates[h.path]
		switch {
		case added && now.dv != h.dv:
		case added && f.first:
			delete(f.fates, h.path)
		case added:
			f.fates[h.path] = fate{version: noCommit}
		case !f.first:
			f.gone[h] = true
		}
	}
	for _, file := range c.added {
		h := f.hash(file.Path, file.DV)
		f.fates[h.path] = fate{c.header.version, h.dv}
	}
}

// staying yields the files of before that no commit removed or replaced.
func (f *fold) staying(before fileSeq) fileSeq {
	return func(yield func(metacache.File, error) bool) {
		for file, err := range before {
			if err == nil {
				h := f.hash(file.Path, file.DV)
				if _, replaced := f.fates[h.path]; replaced || f.gone[h] {
					continue
				}
			}
			if !yield(file, err) || err != nil {
				return
			}
		}
	}
}

// survivors returns which of the files that a commit added were not replaced
// or removed later.
func (f *fold) survivors(c *change) (out []metacache.File) {
	for _, file := range c.added {
		if now, ok := f.fates[f.hash(file.Path, file.DV).path]; ok && now.version == c.header.version {
			out = append(out, file)
		}
	}
	return out
}

// fold covers a version as near to last as the layout of the files stays what
// it is, without those on the way. It returns nil if that is none.
func (r *fileReplay) fold(ctx context.Context, base *header, last int64) (*header, error) {
	folded := newFold(base == nil)
	var reached *change
	h := base
	for v := nextVersion(base); v <= last; v++ {
		c, err := r.readChange(ctx, h, v)
		if err != nil {
			return nil, err
		}
		if h != nil && !h.shape.sameLayout(c.header.shape) {
			break
		}
		folded.add(c)
		h, reached = c.header, c
	}
	if reached == nil {
		return nil, nil
	}
	return h, r.cover(ctx, h, reached.from, r.foldedFiles(ctx, base, h, folded))
}

// foldedFiles yields the files of a version that was folded onto base.
func (r *fileReplay) foldedFiles(ctx context.Context, base, reached *header, folded *fold) fileSeq {
	return func(yield func(metacache.File, error) bool) {
		if base != nil {
			for file, err := range folded.staying(r.opened().Files(ctx, base.version)) {
				if !yield(file, err) || err != nil {
					return
				}
			}
		}
		for v := nextVersion(base); v <= reached.version; v++ {
			c, _, err := r.scanChange(ctx, reached, v, reached.shape)
			if err != nil {
				yield(metacache.File{}, err)
				return
			}
			for _, file := range folded.survivors(c) {
				if !yield(file, nil) {
					return
				}
			}
		}
	}
}
