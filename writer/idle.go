package writer

import "time"

// Idle reports whether nobody could miss the tree if it were closed and opened
// again: nothing is staged or being committed, no directory was made that holds
// nothing yet, no unlink waits, and no removed name is in its grace.
func (l *Live) Idle() bool {
	l.burst.mu.Lock()
	waiting := len(l.burst.waiting)
	l.burst.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return waiting == 0 && len(l.all) == 0 && len(l.made) == 0 && len(l.scratchDirs) == 0 &&
		len(l.hidden) == 0 && len(l.leaving) == 0 && !l.gone.holds(time.Now())
}

// holds reports whether a name is in its grace.
func (g *graveyard) holds(now time.Time) bool {
	for _, f := range g.files {
		if !now.After(f.until) {
			return true
		}
	}
	return false
}
