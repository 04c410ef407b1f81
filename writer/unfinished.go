package writer

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	// maxUnfinished is how many unfinished files keep their names, and
	// unfinishedTTL for how long.
	maxUnfinished = 64
	unfinishedTTL = time.Hour
)

// unfinished moves files to the rejected ones that nobody goes on with. A file
// that was closed and not committed keeps its name, for another program may write
// the rest; but not for ever, and no number of them does.
type unfinished struct {
	live *Live
	// most and ttl are the constants of these names.
	most int
	ttl  time.Duration

	// sweeping is held by whoever moves files; it comes before Staged.op.
	sweeping sync.Mutex
	stopped  bool // with sweeping held

	mu    sync.Mutex
	timer *time.Timer
}

func (u *unfinished) init(l *Live) { u.live, u.most, u.ttl = l, maxUnfinished, unfinishedTTL }

// look makes the next sweep come after at most d, on a goroutine of its own.
func (u *unfinished) look(d time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer == nil {
		u.timer = time.AfterFunc(d, u.sweep)
		return
	}
	u.timer.Reset(d)
}

// sweep moves the files that are too old or too many, the oldest first.
func (u *unfinished) sweep() {
	u.sweeping.Lock()
	defer u.sweeping.Unlock()
	if u.stopped {
		return
	}
	waiting := u.live.unfinishedFiles()
	for i, w := range waiting {
		left := u.ttl - time.Since(w.since)
		if left > 0 && len(waiting)-i <= u.most {
			u.look(left)
			return
		}
		w.file.setAside()
	}
}

// stop waits for a sweep under way; there is none afterwards.
func (u *unfinished) stop() {
	u.sweeping.Lock()
	u.stopped = true
	u.sweeping.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer != nil {
		u.timer.Stop()
	}
}

type unfinishedFile struct {
	file  *Staged
	since time.Time
}

// unfinishedFiles are ordered by when they were closed.
func (l *Live) unfinishedFiles() []unfinishedFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []unfinishedFile
	for _, s := range l.all {
		s.mu.Lock()
		if s.isUnfinished() {
			out = append(out, unfinishedFile{s, s.closedAt})
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b unfinishedFile) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.file.id, b.file.id))
	})
	return out
}

// isUnfinished reports whether the file was closed under a data name, its only
// one, or under that of what is left of a replacement, and not committed. Live.mu
// and s.mu are held.
func (s *Staged) isUnfinished() bool {
	if s.links != 1 || !s.bind.commits() && !(s.bind.bound && s.bind.partial) {
		return false
	}
	return s.readers+s.writers == 0 && !s.closedAt.IsZero() && s.touched && s.mayFinish()
}

// mayFinish reports whether the file may still be committed; s.mu is held.
func (s *Staged) mayFinish() bool {
	return s.state == stateOpen || s.state == stateComplete || s.state == statePoisoned
}

// setAside moves an unfinished file to the rejected ones, unless somebody has
// opened it meanwhile. An empty one has nothing to be kept.
func (s *Staged) setAside() {
	s.op.Lock()
	defer s.op.Unlock()
	b := s.binding()
	cause := s.live.fault(ErrIncomplete, b.key().String(), "closed before it was complete, and nobody wrote the rest").
		WithHint("its bytes are kept among the rejected files; write the whole file again")
	s.live.mu.Lock()
	s.mu.Lock()
	is, empty := s.isUnfinished(), s.size == 0
	if s.state == stateComplete {
		cause.Reason = "closed before it was committed, and nobody tried again"
	}
	if is && !empty {
		s.state, s.result = stateRejected, cause // nobody opens it from now on
	}
	s.mu.Unlock()
	s.live.mu.Unlock()
	if !is {
		return
	}
	if empty {
		s.live.vanish(s, b.key())
		return
	}
	s.live.opts.Report("reject", b.key().String(), s.live.refuse(s, cause))
}
