package metacache

// Settled reports whether the keeper of a cached index has everything.
func Settled(x Index) bool {
	runs := x.(*cachedIndex).Runs
	runs.mu.Lock()
	defer runs.mu.Unlock()
	for _, r := range runs.runs {
		if r.keeping.state == toKeep || r.keeping.state == isKept && r.keeping.handed < len(r.versions) {
			return false
		}
	}
	return len(runs.worker.forgotten) == 0
}

// SkipIDs makes a cached index assign only IDs after last.
func SkipIDs(x Index, last FileID) {
	runs := x.(*cachedIndex).Runs
	runs.mu.Lock()
	defer runs.mu.Unlock()
	runs.lastID = max(runs.lastID, last)
}
