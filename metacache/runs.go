package metacache

import (
	"bytes"
	"context"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/deltafs/deltafs/internal/fault"
)

// Limits of an index unless told otherwise.
const (
	DefaultMaxRuns   = 8
	DefaultMaxBytes  = 208 << 20
	DefaultFoldBytes = 4 << 20
)

// Runs is an Index made of runs: each is a row of versions, the first of which
// is a compact base, and the others are a delta of what they changed. Covering
// a version costs what changed in it, whatever the size of the table, and a
// read merges the two.
//
// What was covered may be dropped, see the fields. A file has the same ID in
// all runs.
type Runs struct {
	// MaxRuns bounds the runs, and MaxBytes what they hold on the heap, but for
	// the largest of them. The least recently used is dropped, but neither the
	// one with the newest version nor the one that was given a version last. Room
	// for a new run is made before it is there.
	MaxRuns  int
	MaxBytes int64
	// FoldBytes bounds a delta, or what it may have for the size of its base if
	// that is more. The version that would exceed it becomes the base of a new
	// run.
	FoldBytes int64
	// MaxUnread bounds the runs that nobody has read between two folds, so that
	// what an index holds of a table does not grow with the commits that went by.
	MaxUnread int

	clock atomic.Int64
	// writing is held by whoever covers a version, and comes before mu.
	writing semaphore

	mu sync.RWMutex
	// runs ascend by their first version. The last version of one may be the
	// first of the next, never more.
	runs       []*run
	latest     *run // the one that was given a version last
	lastID     FileID
	lastSerial uint64
	// folded is the clock at the last fold.
	folded int64

	worker *keepWorker
}

var _ Index = (*Runs)(nil)

// NewMemory returns an empty index that keeps everything on the heap.
func NewMemory() *Runs {
	return &Runs{
		MaxRuns: DefaultMaxRuns, MaxBytes: DefaultMaxBytes, FoldBytes: DefaultFoldBytes,
		writing: newSemaphore(),
	}
}

// Load implements Index.
func (x *Runs) Load(ctx context.Context, v int64, note []byte, files iter.Seq2[File, error]) error {
	if x.covers(v) {
		return nil
	}
	b, err := build(ctx, newHeapBuilder(), x.withRoom(v, files))
	if err != nil {
		return err
	}
	freeLoad(b)
	defer freeLoad(b)
	if err := x.writing.acquire(ctx); err != nil {
		return err
	}
	defer x.writing.release()
	if x.covers(v) {
		return nil
	}
	lastID, err := x.assignIDs(ctx, b, v)
	if err != nil {
		return err
	}
	x.insert(b, versionInfo{note: bytes.Clone(note), totals: b.totals()}, v, lastID)
	return nil
}

// freeLoad gives back to the system what it took to load a large base: it is
// about as much as the base.
func freeLoad(b *heapBase) {
	if b.bytes() >= freedBytes {
		debug.FreeOSMemory()
	}
}

// checkEvery is how many files are taken between two looks at the context.
const checkEvery = 256

func build(ctx context.Context, b *heapBuilder, files iter.Seq2[File, error]) (*heapBase, error) {
	n := 0
	for f, err := range files {
		if err != nil {
			return nil, err
		}
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			break
		}
		if err := b.add(&f); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.finish(ctx)
}

// insert makes a run of a base, for version v. The caller holds writing.
func (x *Runs) insert(b *heapBase, info versionInfo, v int64, lastID FileID) {
	x.mu.Lock()
	x.lastID = lastID
	x.lastSerial++
	r := &run{serial: x.lastSerial, first: v, versions: []versionInfo{info}, delta: newDelta()}
	r.base = pin(b, func() {})
	if x.worker != nil {
		r.keeping.state = toKeep
	}
	dropped := x.enter(r)
	x.mu.Unlock()
	x.letGo(dropped)
}

// enter adds a run and returns those it drops for it. The caller holds mu.
func (x *Runs) enter(r *run) (dropped []*run) {
	r.used.Store(x.clock.Add(1))
	at, _ := slices.BinarySearchFunc(x.runs, r.first, func(r *run, v int64) int { return int(r.first - v) })
	x.runs = slices.Insert(x.runs, at, r)
	x.latest = r
	return x.evict()
}

// Coverage implements Index.
func (x *Runs) Coverage() []Span {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var spans []Span
	for _, r := range x.runs {
		if n := len(spans); n > 0 && spans[n-1].Last >= r.first-1 {
			spans[n-1].Last = max(spans[n-1].Last, r.last())
			continue
		}
		spans = append(spans, Span{First: r.first, Last: r.last()})
	}
	return spans
}

func (x *Runs) covers(v int64) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.find(v) != nil
}

// find returns the last run that covers v, or nil. The caller holds mu.
func (x *Runs) find(v int64) *run {
	for _, r := range slices.Backward(x.runs) {
		if r.first <= v && v <= r.last() {
			return r
		}
	}
	return nil
}

// view returns version v; the caller releases it.
func (x *Runs) view(ctx context.Context, v int64) (view, error) {
	if err := ctx.Err(); err != nil {
		return view{}, err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := x.find(v)
	if r == nil {
		return view{}, fault.New(ErrNotCovered, "").AtVersion(v)
	}
	r.used.Store(x.clock.Add(1))
	return r.view(v), nil
}

// views appends the last version of each run, the newest first. The caller
// releases them.
func (x *Runs) views(to []view) []view {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range slices.Backward(x.runs) {
		to = append(to, r.view(r.last()))
	}
	return to
}

// semaphore is a mutex that can be waited for with a context.
type semaphore chan struct{}

func newSemaphore() semaphore { return make(semaphore, 1) }

func (s semaphore) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s semaphore) release() { <-s }
