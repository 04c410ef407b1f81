package metacache

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
)

// keepState says how far a run has come to its keeper.
type keepState int

const (
	// notKept: there is no keeper, or it failed.
	notKept keepState = iota
	toKeep
	// isKept: the base is the keeper's, and so are the first versions.
	isKept
)

// keeping is the part of a run that its keeper is about; Runs.mu guards it.
type keeping struct {
	state keepState
	// handed is the number of versions that the keeper has.
	handed int
	// dropped says that the index gave up the run.
	dropped bool
	// cancel ends the keeping in progress, if it is not nil.
	cancel context.CancelFunc
}

func (k *keeping) drop() {
	k.dropped = true
	if k.cancel != nil {
		k.cancel()
	}
}

// keepWorker makes the calls to a keeper, one after the other, for an index
// that never waits for them. What is to do it finds in the runs. The index's
// mu guards forgotten and closing.
type keepWorker struct {
	index  *Runs
	keeper keeper
	wake   chan struct{}
	done   chan struct{}
	// bases counts those of the keeper that are not closed.
	bases sync.WaitGroup
	// forgotten are serials of runs that were dropped.
	forgotten []uint64
	closing   bool
}

// newRuns returns an index of what the keeper has.
func newRuns(ctx context.Context, k keeper) (*Runs, error) {
	kept, err := k.restore(ctx)
	if err != nil {
		return nil, err
	}
	x := NewMemory()
	x.worker = &keepWorker{index: x, keeper: k, wake: make(chan struct{}, 1), done: make(chan struct{})}
	x.lastID, x.lastSerial = kept.lastID, kept.lastSerial
	for _, r := range kept.runs {
		x.letGo(x.adopt(r))
	}
	go x.worker.work()
	return x, nil
}

// adopt enters a run that was kept, and returns those it drops for it.
func (x *Runs) adopt(k keptRun) []*run {
	r := &run{serial: k.serial, first: k.first, delta: newDelta()}
	r.base = x.worker.pin(r, k.base)
	r.keeping = keeping{state: isKept, handed: len(k.versions)}
	for _, v := range k.versions {
		entries := make([]*entry, len(v.changes))
		for i, c := range v.changes {
			entries[i] = newEntry(c, v.version)
		}
		r.delta.add(entries)
		r.versions = append(r.versions, versionInfo{note: v.note, totals: v.totals})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.enter(r)
}

// pin returns a run's base that the keeper made, with one user.
func (w *keepWorker) pin(r *run, b base) *pinned {
	w.bases.Add(1)
	return pin(b, func() {
		w.forget(r)
		w.bases.Done()
	})
}

// poke says that there may be something to do. w may be nil.
func (w *keepWorker) poke() {
	if w == nil {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// forget gives up a kept run whose base was closed, unless it was closed with
// the index.
func (w *keepWorker) forget(r *run) {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	if r.keeping.dropped {
		w.forgotten = append(w.forgotten, r.serial)
		w.poke()
	}
}

func (w *keepWorker) work() {
	defer close(w.done)
	for range w.wake {
		for job := w.next(); job != nil; job = w.next() {
			job()
		}
		if w.isClosing() {
			return
		}
	}
}

func (w *keepWorker) isClosing() bool {
	w.index.mu.RLock()
	defer w.index.mu.RUnlock()
	return w.closing
}

// next returns what is to do next, or nil: what is short before what is long,
// which is not begun at the end.
func (w *keepWorker) next() func() {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(w.forgotten); n > 0 {
		serial := w.forgotten[n-1]
		w.forgotten = w.forgotten[:n-1]
		return func() { _ = w.keeper.forget(context.Background(), serial) } // the keeper logs it
	}
	for _, r := range x.runs {
		if r.keeping.state == isKept && r.keeping.handed < len(r.versions) {
			v := r.kept(r.keeping.handed)
			return func() { w.hand(r, v) }
		}
	}
	for _, r := range slices.Backward(x.runs) {
		if !w.closing && w.wants(r) {
			var ctx context.Context
			ctx, r.keeping.cancel = context.WithCancel(context.Background())
			k := keptRun{serial: r.serial, base: r.base, first: r.first}
			for i := range r.versions {
				k.versions = append(k.versions, r.kept(i))
			}
			heap := r.base.base.(*heapBase)
			k.base, k.firstID, k.ownIDs = heap, heap.firstID, heap.own != nil
			return func() { w.keep(ctx, r, k) }
		}
	}
	return nil
}

// wants reports whether the keeper is to have a run that it has not.
func (w *keepWorker) wants(r *run) bool {
	last := r.versions[len(r.versions)-1]
	return r.keeping.state == toKeep && w.keeper.wants(len(r.versions), last.totals.Files)
}

// kept returns version first+i for the keeper.
func (r *run) kept(i int) keptVersion {
	info := &r.versions[i]
	v := keptVersion{version: r.first + int64(i), note: info.note, totals: info.totals}
	for _, e := range info.entries {
		v.changes = append(v.changes, e.change)
	}
	return v
}

// hand gives the keeper the next version of a run that it has.
func (w *keepWorker) hand(r *run, v keptVersion) {
	err := w.keeper.applied(context.Background(), r.serial, v)
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	if err != nil {
		r.release()
		return
	}
	r.versions[r.keeping.handed].entries = nil
	r.keeping.handed++
}

// freedBytes is the size of a base on the heap whose memory is given back to
// the system at once: another of that size seldom follows.
const freedBytes = 16 << 20

// keep gives the keeper a run, and puts the base it returns in place of that
// on the heap, which those go on to use who are reading it.
func (w *keepWorker) keep(ctx context.Context, r *run, k keptRun) {
	b, err := w.keeper.keep(ctx, k)
	x := w.index
	x.mu.Lock()
	r.keeping.cancel()
	r.keeping.cancel = nil
	switch {
	case err != nil:
		r.release()
		w.forgotten = append(w.forgotten, r.serial)
		x.mu.Unlock()
	case r.keeping.dropped:
		w.forgotten = append(w.forgotten, r.serial)
		x.mu.Unlock()
		b.close()
	default:
		before := r.base
		r.base = w.pin(r, b)
		r.keeping.state, r.keeping.handed = isKept, len(k.versions)
		for i := range k.versions {
			r.versions[i].entries = nil
		}
		x.mu.Unlock()
		large := before.bytes() >= freedBytes
		before.release()
		if large {
			debug.FreeOSMemory()
		}
	}
}

// release lets go of what the keeper will not want. The index's mu is held.
func (r *run) release() {
	r.keeping.state = notKept
	for i := range r.versions {
		r.versions[i].entries = nil
	}
}

// Close hands the keeper what it lacks of the runs it has, waits for readers
// and drops everything. Without a keeper it waits for nobody.
func (x *Runs) Close() error {
	w := x.worker
	if w != nil {
		x.mu.Lock()
		w.closing = true
		for _, r := range x.runs {
			if r.keeping.cancel != nil {
				r.keeping.cancel()
			}
		}
		x.mu.Unlock()
		w.poke()
		<-w.done
	}
	x.mu.Lock()
	runs := x.runs
	x.runs, x.latest = nil, nil
	x.mu.Unlock()
	x.letGo(runs)
	if w == nil {
		return nil
	}
	w.bases.Wait()
	for job := w.next(); job != nil; job = w.next() {
		job()
	}
	return w.keeper.close()
}
