package snapshot

import (
	"context"
	"hash/maphash"
	"iter"

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
	// touched has a bit for the first hash of each path in fates and gone.
	touched []uint64
	// first says that there was nothing before.
	first bool
	// changes are the commits themselves, nil if they add too many files.
	changes []*change
	added   int
}

// maxAdded is how many added files are kept until they are covered; more are
// read again.
const maxAdded = 1 << 15

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

// touchedBits is far more than the paths that a few commits touch.
const touchedBits = 1 << 17

func newFold(first bool) *fold {
	return &fold{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		fates: map[pathHash]fate{}, gone: map[goneHash]bool{}, first: first,
		touched: make([]uint64, touchedBits/64),
	}
}

func (f *fold) hash(path, dv string) goneHash {
	return goneHash{pathHash{maphash.String(f.seeds[0], path), maphash.String(f.seeds[1], path)}, maphash.String(f.seeds[0], dv)}
}

func (f *fold) touch(h pathHash) {
	bit := h[0] % touchedBits
	f.touched[bit/64] |= 1 << (bit % 64)
}

func (f *fold) mayTouch(path string) bool {
	bit := maphash.String(f.seeds[0], path) % touchedBits
	return f.touched[bit/64]>>(bit%64)&1 != 0
}

func (f *fold) add(c *change) {
	f.added += len(c.added)
	if f.added <= maxAdded {
		f.changes = append(f.changes, c)
	} else {
		f.changes = nil
	}
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
			f.touch(h.path)
		}
	}
	for _, file := range c.added {
		h := f.hash(file.Path, file.DV)
		f.fates[h.path] = fate{c.header.version, h.dv}
		f.touch(h.path)
	}
}

// keeps reports whether no commit removed or replaced a file of before.
func (f *fold) keeps(file *metacache.File) bool {
	if !f.mayTouch(file.Path) {
		return true
	}
	h := f.hash(file.Path, file.DV)
	_, replaced := f.fates[h.path]
	return !replaced && !f.gone[h]
}

// staying yields the files of before that no commit removed or replaced.
func (f *fold) staying(before fileSeq) fileSeq {
	return func(yield func(metacache.File, error) bool) {
		for file, err := range before {
			if err == nil && !f.keeps(&file) {
				continue
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

// fold reads the commits after base, nil for nothing, as near to last as the
// layout of the files stays what it is, and returns the last one; nil if that
// is none.
func (r *fileReplay) fold(ctx context.Context, base *header, last int64) (*fold, *change, error) {
	folded := newFold(base == nil)
	var reached *change
	h := base
	for v := nextVersion(base); v <= last; v++ {
		c, err := r.readChange(ctx, h, v)
		if err != nil {
			return nil, nil, err
		}
		if h != nil && !h.shape.sameLayout(c.header.shape) {
			break
		}
		folded.add(c)
		h, reached = c.header, &change{header: c.header, from: c.from}
	}
	return folded, reached, nil
}

// foldOnto covers the version that was reached from base, of which these files
// stay.
func (r *fileReplay) foldOnto(ctx context.Context, base *header, staying fileSeq, folded *fold, reached *change) error {
	h := reached.header
	return r.cover(ctx, h, reached.from, func(yield func(metacache.File, error) bool) {
		for file, err := range staying {
			if !yield(file, err) || err != nil {
				return
			}
		}
		for c, err := range r.changes(ctx, base, folded, h) {
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
	})
}

// changes yields the commits that were folded, up to the version reached.
func (r *fileReplay) changes(ctx context.Context, base *header, folded *fold, reached *header) iter.Seq2[*change, error] {
	return func(yield func(*change, error) bool) {
		for i, v := 0, nextVersion(base); v <= reached.version; i, v = i+1, v+1 {
			if folded.changes != nil {
				if !yield(folded.changes[i], nil) {
					return
				}
				continue
			}
			c, _, err := r.scanChange(ctx, reached, v, reached.shape)
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}
