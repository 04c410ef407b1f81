package main

import (
	"path"
	"strings"
	"time"
)

// outsideDelay is how long a commit past the mount may take to show in
// current/; on a quiet machine it is milliseconds.
const outsideDelay = 5 * time.Second

// listings checks listings of current/ against what was reported about names:
// a name that was there all the time has to be listed, and one that was gone
// all the time must not be.
type listings struct {
	// names has the reports about each name, by directory, in order.
	names map[string]map[string][]event
	// waiting are listings of the last interval: what happened beside them may
	// not be reported yet.
	waiting []event
}

func newListings() listings { return listings{names: map[string]map[string][]event{}} }

// change takes in an add or a remove.
func (l *listings) change(e event) {
	dir := path.Dir(e.Name)
	if l.names[dir] == nil {
		l.names[dir] = map[string][]event{}
	}
	l.names[dir][e.Name] = append(l.names[dir][e.Name], e)
}

// check checks the waiting listings and lets those given wait.
func (l *listings) check(find func(format string, args ...any), next []event) {
	var oldest time.Time
	for _, e := range next {
		if oldest.IsZero() || e.Start.Before(oldest) {
			oldest = e.Start
		}
	}
	for _, e := range l.waiting {
		l.checkOne(find, e)
	}
	l.waiting = next
	l.forget(oldest)
}

func (l *listings) checkOne(find func(format string, args ...any), e event) {
	listed := map[string]bool{}
	for _, base := range e.Names {
		name := path.Join(e.Name, base)
		if listed[name] {
			find("%s: %s was listed twice at %s", e.Who, name, e.Start.Format(clock))
		}
		listed[name] = true
		if _, known := l.names[e.Name][name]; !known {
			find("%s: %s was listed at %s, and nobody made it", e.Who, name, e.Start.Format(clock))
		}
	}
	for name, history := range l.names[e.Name] {
		switch {
		case !listed[name] && certain(history, e, opAdd, opRemove):
			find("%s: %s was there from %s to %s and not listed", e.Who, name, e.Start.Format(clock), e.End.Format(clock))
		case listed[name] && certain(history, e, opRemove, opAdd):
			find("%s: %s was gone from %s to %s and listed", e.Who, name, e.Start.Format(clock), e.End.Format(clock))
		}
	}
}

// certain says whether a name was for the whole time of a listing in the state
// that op brings about and that its opposite ends. Replacing a file does
// neither.
func certain(history []event, listing event, op, opposite string) bool {
	in := false
	for _, h := range history {
		delay := time.Duration(0)
		if strings.HasPrefix(h.Who, "outside") {
			delay = outsideDelay
		}
		switch {
		case h.Op == op && h.Old == 0:
			in = !h.End.Add(delay).After(listing.Start)
		case h.Op == opposite && h.Old == 0 && !h.Start.After(listing.End):
			in = false
		}
	}
	return in
}

// forget drops the names that were gone before anything that is still to be
// checked.
func (l *listings) forget(before time.Time) {
	for _, names := range l.names {
		for name, history := range names {
			last := history[len(history)-1]
			if last.Op == opRemove && last.End.Add(2*outsideDelay).Before(before) {
				delete(names, name)
			}
		}
	}
}
