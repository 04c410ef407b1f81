package metacache

import (
	"bytes"
	"context"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/deltafs/deltafs/internal/fault"
)

// Limits of a Memory index unless told otherwise.
const (
	DefaultMaxRuns     = 8
	DefaultMaxVersions = 1024
)

// Memory is an Index on the heap.
//
// Its coverage is a set of runs: versions in a row, each with its own root in
// persistent trees, so that a version costs what changed in it, and reading
// an old one costs no more than reading the newest. What was covered may be
// dropped, see the fields; FileIDs survive that, and a version that is loaded
// again has the same ones.
type Memory struct {
	// MaxRuns bounds the runs (DefaultMaxRuns). The least recently used is
	// dropped, but neither the one with the newest version nor the one loaded
	// last.
	MaxRuns int
	// MaxVersions bounds the versions of a run (DefaultMaxVersions); the
	// oldest are dropped.
	MaxVersions int

	clock atomic.Int64

	mu sync.RWMutex
	// runs are disjoint and ascending.
	runs []*run
	ids  map[identity]FileID
	// files holds, by ID, a record of the file that is in use, or nil.
	files []*record
	seeds [2]maphash.Seed
}

// run is a row of covered versions: states[i] is version first+i.
type run struct {
	first  int64
	states []*state
	used   atomic.Int64
}

func (r *run) last() int64 { return r.first + int64(len(r.states)) - 1 }

// identity stands for a (path, deletion vector) pair. It is a hash under
// random seeds, so that IDs cost little and no log can be made to collide.
type identity [2]uint64

var _ Index = (*Memory)(nil)

// NewMemory returns an empty index.
func NewMemory() *Memory {
	return &Memory{
		MaxRuns:     DefaultMaxRuns,
		MaxVersions: DefaultMaxVersions,
		ids:         map[identity]FileID{},
		files:       make([]*record, 1), // 0 is no ID
		seeds:       [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
}

// Load implements Index.
func (m *Memory) Load(ctx context.Context, v int64, note []byte, files iter.Seq2[File, error]) error {
	if m.covers(v) {
		return nil
	}
	s, err := m.build(ctx, files)
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.release(s.added...)
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.release(s.removed...)
	if m.find(v) != nil {
		m.releaseLive(s)
		return nil
	}
	s.added, s.removed, s.note = nil, nil, bytes.Clone(note)
	r := &run{first: v, states: []*state{s}}
	r.used.Store(m.clock.Add(1))
	at, _ := slices.BinarySearchFunc(m.runs, v, func(r *run, v int64) int { return int(r.first - v) })
	m.runs = slices.Insert(m.runs, at, r)
	m.dropRuns(r)
	return nil
}

// build collects the files. The records in added are in use, also with an
// error; of two files of one path the later counts.
func (m *Memory) build(ctx context.Context, files iter.Seq2[File, error]) (*state, error) {
	s := newState()
	for f, err := range files {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return s, err
		}
		m.mu.Lock()
		r := m.acquire(f)
		m.mu.Unlock()
		s.put(r)
	}
	return s, ctx.Err()
}

// Apply implements Index. A remove of a file that is not live with this
// deletion vector has no effect.
func (m *Memory) Apply(ctx context.Context, v int64, note []byte, gone []Gone, added []File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.find(v) != nil {
		return nil
	}
	r := m.find(v - 1)
	if r == nil {
		return notCovered(v - 1)
	}
	s := r.states[len(r.states)-1].next()
	s.note = bytes.Clone(note)
	for _, g := range gone {
		if old := s.at(g.Path); old != nil && old.dv() == g.DV {
			s.remove(old)
		}
	}
	for _, f := range added {
		s.put(m.acquire(f))
	}
	r.states = append(r.states, s)
	r.used.Store(m.clock.Add(1))
	m.dropVersions(r)
	return nil
}

// Coverage implements Index.
func (m *Memory) Coverage() []Span {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var spans []Span
	for _, r := range m.runs {
		if n := len(spans); n > 0 && spans[n-1].Last == r.first-1 {
			spans[n-1].Last = r.last()
			continue
		}
		spans = append(spans, Span{First: r.first, Last: r.last()})
	}
	return spans
}

// Close drops everything.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs, m.files = nil, m.files[:1]
	clear(m.ids)
	return nil
}

func (m *Memory) covers(v int64) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.find(v) != nil
}

// find returns the run that covers v, or nil. The caller holds mu.
func (m *Memory) find(v int64) *run {
	for _, r := range m.runs {
		if r.first <= v && v <= r.last() {
			return r
		}
	}
	return nil
}

// version returns the state of v, for reading without a lock.
func (m *Memory) version(ctx context.Context, v int64) (*state, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	r := m.find(v)
	if r == nil {
		return nil, notCovered(v)
	}
	r.used.Store(m.clock.Add(1))
	return r.states[v-r.first], nil
}

func notCovered(v int64) error { return fault.New(ErrNotCovered, "").AtVersion(v) }
