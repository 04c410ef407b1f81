package metacache

// Settled reports whether the keeper of a cached index has everything.
func Settled(x Index) bool {
	return x.(*cachedIndex).settled()
}

// SkipIDs makes a cached index assign only IDs after last.
func SkipIDs(x Index, last FileID) {
	runs := x.(*cachedIndex).Runs
	runs.mu.Lock()
	defer runs.mu.Unlock()
	runs.lastID = max(runs.lastID, last)
}

// RunStarts returns the first version of each run, ascending.
func (x *Runs) RunStarts() []int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []int64
	for _, r := range x.runs {
		out = append(out, r.first)
	}
	return out
}
