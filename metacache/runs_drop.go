package metacache

import "slices"

// smallRun is too small to be dropped for its bytes.
const smallRun = 1 << 20

// evict takes out the least recently used runs that are too many or too large,
// and returns them; the caller, who holds mu, lets them go without it.
func (x *Runs) evict() []*run {
	var dropped []*run
	for {
		least := int64(0)
		if len(x.runs) <= x.MaxRuns {
			if x.bytes() <= x.MaxBytes {
				return dropped
			}
			least = smallRun
		}
		r := x.victim(least)
		if r == nil {
			return dropped
		}
		x.remove(r)
		dropped = append(dropped, r)
	}
}

// victim returns the least recently used run of at least so many bytes, or
// nil.
func (x *Runs) victim(least int64) *run {
	var victim *run
	for i, r := range x.runs {
		if i < len(x.runs)-1 && r != x.latest && r.bytes() >= least && (victim == nil || r.used.Load() < victim.used.Load()) {
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

// bytes is about what the index holds. The caller holds mu.
func (x *Runs) bytes() int64 {
	sum := int64(0)
	for _, r := range x.runs {
		sum += r.bytes()
	}
	return sum
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
