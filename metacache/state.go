package metacache

import "github.com/google/btree"

// state is the live files of one version: two trees of the same records. A
// state that was published is never changed; the next version starts as its
// clone, which shares all nodes until they are written.
type state struct {
	byKey, byPath *btree.BTreeG[*record]

	bytes, dvs int64
	// added and removed are the changes against the version before; they say
	// what to release when versions are dropped.
	added, removed []*record
	note           []byte
}

// degree is small, as a new version copies a path of nodes in each tree.
const degree = 16

func newState() *state {
	return &state{
		byKey:  btree.NewG(degree, func(a, b *record) bool { return compareKeys(a, b) < 0 }),
		byPath: btree.NewG(degree, func(a, b *record) bool { return a.path() < b.path() }),
	}
}

// next returns a copy to be changed.
func (s *state) next() *state {
	n := *s
	n.byKey, n.byPath = s.byKey.Clone(), s.byPath.Clone()
	n.added, n.removed = nil, nil
	return &n
}

// at returns the live record of a path, or nil.
func (s *state) at(path string) *record {
	r, _ := s.byPath.Get(pivot(Key{Path: path}))
	return r
}

// put makes r live in place of what its path named before.
func (s *state) put(r *record) {
	if old, replaced := s.byPath.ReplaceOrInsert(r); replaced {
		s.forget(old)
	}
	s.byKey.ReplaceOrInsert(r)
	s.count(r, 1)
	s.added = append(s.added, r)
}

// remove ends the life of r, which is live.
func (s *state) remove(r *record) {
	s.byPath.Delete(r)
	s.forget(r)
}

// forget finishes what removed r from byPath.
func (s *state) forget(r *record) {
	s.byKey.Delete(r)
	s.count(r, -1)
	s.removed = append(s.removed, r)
}

func (s *state) count(r *record, sign int64) {
	s.bytes += sign * r.size
	if r.dv() != "" {
		s.dvs += sign
	}
}

func (s *state) totals() Totals {
	return Totals{Files: int64(s.byKey.Len()), Bytes: s.bytes, DVs: s.dvs}
}
