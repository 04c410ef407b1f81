package metacache

import (
	"hash/maphash"
	"slices"
)

// acquire returns the record of a file, in use once more. The caller holds mu.
func (m *Memory) acquire(f File) *record {
	id := m.id(f.Path, f.DV)
	for r := m.files[id]; r != nil; r = r.older {
		if r.holds(f) {
			r.refs++
			return r
		}
	}
	r := newRecord(f, id)
	r.refs, r.older = 1, m.files[id]
	m.files[id] = r
	return r
}

// id returns the ID of a file, a new one if it has none.
func (m *Memory) id(path, dv string) FileID {
	var key identity
	for i, seed := range m.seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		h.WriteString(path)
		h.WriteByte(0)
		h.WriteString(dv)
		key[i] = h.Sum64()
	}
	id, ok := m.ids[key]
	if !ok {
		id = FileID(len(m.files))
		m.ids[key] = id
		m.files = append(m.files, nil)
	}
	return id
}

// release ends one use of each record; one without uses is forgotten. The
// caller holds mu.
func (m *Memory) release(records ...*record) {
	for _, r := range records {
		if r.refs--; r.refs > 0 {
			continue
		}
		at := &m.files[r.id]
		for *at != r {
			at = &(*at).older
		}
		*at = r.older
	}
}

// releaseLive releases the live records of a version.
func (m *Memory) releaseLive(s *state) {
	s.byKey.Ascend(func(r *record) bool {
		m.release(r)
		return true
	})
}

// dropRuns drops the least recently used runs that are too many, but not the
// newest versions and not keep.
func (m *Memory) dropRuns(keep *run) {
	for len(m.runs) > m.MaxRuns {
		victim := -1
		for i, r := range m.runs[:len(m.runs)-1] {
			if r != keep && (victim < 0 || r.used.Load() < m.runs[victim].used.Load()) {
				victim = i
			}
		}
		if victim < 0 {
			return
		}
		r := m.runs[victim]
		m.releaseLive(r.states[0])
		for _, s := range r.states[1:] {
			m.release(s.added...)
		}
		m.runs = slices.Delete(m.runs, victim, victim+1)
	}
}

// dropVersions drops the oldest versions of a run that are too many. A file
// that the next version no longer has is released.
func (m *Memory) dropVersions(r *run) {
	for len(r.states) > max(m.MaxVersions, 1) {
		second := r.states[1]
		m.release(second.removed...)
		second.added, second.removed = nil, nil
		r.states[0] = nil
		r.states = r.states[1:]
		r.first++
	}
}
