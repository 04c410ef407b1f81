package metacache

import (
	"iter"
	"math"
	"runtime/debug"
	"slices"
)

// smallRun is too small to be dropped for its bytes.
const smallRun = 1 << 20

// evict takes out the least recently used runs that are too many or too large,
// and returns them; the caller, who holds mu, lets them go without it.
func (x *Runs) evict() []*run {
	var dropped []*run
	for {
		least := int64(0)
		if len(x.runs) <= x.MaxRuns {
			if x.excess(0) <= 0 {
				return dropped
			}
			least = smallRun
		}
		r := x.victim(least, x.latest)
		if r == nil {
			return dropped
		}
		x.remove(r)
		dropped = append(dropped, r)
	}
}

// heapFileBytes is about what a base on the heap takes for a file.
const heapFileBytes = 100

// withRoom makes room for a run that begins with version v, as large as its
// neighbor, once the first of its files is there: then a run that they come from
// is pinned. One that has to go then holds no memory while they are read.
func (x *Runs) withRoom(v int64, files iter.Seq2[File, error]) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		made := false
		for f, err := range files {
			if !made && err == nil {
				made = true
				x.makeRoom(v)
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

func (x *Runs) makeRoom(v int64) {
	x.mu.Lock()
	var dropped []*run
	expected := int64(x.filesNear(v)) * heapFileBytes
	for x.excess(expected) > 0 {
		r := x.victim(smallRun, nil)
		if r == nil {
			break
		}
		x.remove(r)
		dropped = append(dropped, r)
	}
	x.mu.Unlock()
	if len(dropped) > 0 {
		x.letGo(dropped)
		debug.FreeOSMemory()
	}
}

// filesNear is how many files the base has that is nearest to a version, 0
// without one. The caller holds mu.
func (x *Runs) filesNear(v int64) int {
	files, least := 0, int64(math.MaxInt64)
	for _, r := range x.runs {
		if d := max(r.first-v, v-r.last(), 0); d < least {
			files, least = r.base.count(), d
		}
	}
	return files
}

// victim returns the least recently used run of at least so many bytes, or nil;
// neither the one with the newest version nor this one.
func (x *Runs) victim(least int64, spared *run) *run {
	var victim *run
	for i, r := range x.runs {
		if i < len(x.runs)-1 && r != spared && r.bytes() >= least && (victim == nil || r.used.Load() < victim.used.Load()) {
			victim = r
		}
	}
	return victim
}

// dropUnread drops the oldest runs that nobody has read since the fold before,
// if they are too many; but not the one that was just folded nor the one that
// came of it, as the versions that are listed may lie in either, nor the one with
// the newest version, which the next commit follows.
func (x *Runs) dropUnread(folded *run) {
	x.mu.Lock()
	var dropped []*run
	unread := 0
	runs := slices.Clone(x.runs)
	for i, r := range slices.Backward(runs) {
		if i == len(runs)-1 || r == folded || r == x.latest || r.used.Load() >= x.folded {
			continue
		}
		if unread++; unread > x.MaxUnread && x.remove(r) {
			dropped = append(dropped, r)
		}
	}
	x.folded = x.clock.Add(1)
	x.mu.Unlock()
	x.letGo(dropped)
}

// excess is by how much the index would exceed its bytes with one more run of so
// many. The caller holds mu.
func (x *Runs) excess(more int64) int64 {
	sum, largest := more, more
	for _, r := range x.runs {
		n := r.bytes()
		sum += n
		largest = max(largest, n)
	}
	return sum - largest - x.MaxBytes
}

// drop gives up a run.
func (x *Runs) drop(r *run) {
	x.mu.Lock()
	found := x.remove(r)
	x.mu.Unlock()
	if found {
		x.letGo([]*run{r})
	}
}

// remove takes a run out. The caller holds mu.
func (x *Runs) remove(r *run) bool {
	at := slices.Index(x.runs, r)
	if at < 0 {
		return false
	}
	x.runs = slices.Delete(x.runs, at, at+1)
	r.keeping.drop()
	return true
}

// letGo ends the index's use of runs that were taken out.
func (x *Runs) letGo(runs []*run) {
	for _, r := range runs {
		r.base.release()
	}
	x.worker.poke()
}
