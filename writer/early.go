package writer

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// maxEarly is how old an early append may get: VACUUM must take its file for a
// new one, and its commit says when it was made.
const maxEarly = time.Second

// early is an append that was made ready by the write that completed its file,
// side by side with making the bytes durable: they are published, and the commit
// file lies ready. Closing the file then only gives that its name.
type early struct {
	p    *publication
	spec *TxnSpec
	// What the spec says of the file.
	verdict *verdict
	timeSet bool
	modTime time.Time
	made    time.Time
}

// mayEarly reports whether the append of a file can be made ready, and nothing
// suggests that another commit comes first.
func (l *Live) mayEarly(s *Staged, b binding) bool {
	return l.makeReady != nil && b.commits() && b.replaces == nil && b.drops == nil && l.isAlone(s)
}

// makeEarly makes the append of a file ready; op is held, and the bytes need not
// be durable yet: it calls beginSync when the file has
// its name. Then a file system with a journal writes the bytes, the name and the
// commit file in one go. That it cannot is no failure.
func (l *Live) makeEarly(ctx context.Context, s *Staged, b binding, verdict *verdict, beginSync func()) {
	v, err := l.view(ctx)
	if err != nil || !sameMetadata(verdict.For, v.Metadata()) {
		return
	}
	e := &early{p: &publication{live: l, s: s, b: b}, verdict: verdict, made: time.Now()}
	s.mu.Lock()
	e.timeSet, e.modTime = s.timeSet, s.modTime
	s.mu.Unlock()
	if e.spec, err = e.p.assemble(ctx, v, verdict); err == nil && !s.isLinked() {
		err = errors.ErrUnsupported
	}
	if err == nil {
		beginSync()
		e.spec.Base, e.spec.Incarnation = v.Version(), v.Incarnation()
		err = l.makeReady(ctx, e.spec)
	}
	if err != nil {
		e.p.takeBack(ctx)
		return
	}
	s.mu.Lock()
	s.early = e
	s.mu.Unlock()
}

// isAlone reports whether no other file is about to be committed, and nothing
// that would have to go first.
func (l *Live) isAlone(s *Staged) bool {
	if l.burst.any() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.all {
		if other == s || !other.bind.commits() {
			continue
		}
		other.mu.Lock()
		busy := other.writers > 0 && (other.state == stateOpen || other.state == stateComplete)
		other.mu.Unlock()
		if busy {
			return false
		}
	}
	return true
}

// publicationFor begins the commit of a file as b says: with what lies ready if
// that is of use. The caller ends it with done.
func (s *Staged) publicationFor(ctx context.Context, b binding, removes []unlinked) (p *publication, done func()) {
	s.mu.Lock()
	e := s.early
	s.early = nil
	s.mu.Unlock()
	if e != nil && (e.p.b.place.dir != b.place.dir || time.Since(e.made) > maxEarly || !s.isLinked()) {
		e.undo(ctx)
		e = nil
	}
	if e == nil {
		return &publication{live: s.live, s: s, b: b, removes: removes}, func() {}
	}
	p = e.p
	if p.b.name == b.name && b.replaces == nil && b.drops == nil && len(removes) == 0 {
		p.early = e
	}
	p.b, p.removes = b, removes
	return p, e.spec.discardReady
}

// isLinked reports whether the bytes have the name of a data file too, which a
// VACUUM without retention takes away.
func (s *Staged) isLinked() bool {
	s.mu.Lock()
	file := s.file
	s.mu.Unlock()
	var st unix.Stat_t
	return file != nil && unix.Fstat(int(file.Fd()), &st) == nil && st.Nlink > 1
}

// suits reports whether the append is what a commit after v would be.
func (e *early) suits(v view) bool {
	s := e.p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.spec.ready != nil && e.spec.Base == v.Version() && e.spec.Incarnation == v.Incarnation() &&
		e.verdict == s.verdict && e.timeSet == s.timeSet && (!e.timeSet || e.modTime.Equal(s.modTime))
}

// undo takes everything back.
func (e *early) undo(ctx context.Context) {
	e.spec.discardReady()
	e.p.takeBack(ctx)
}

// dropEarly takes back what was made ready, before the file becomes another one
// or goes; op is held.
func (s *Staged) dropEarly(ctx context.Context) {
	s.mu.Lock()
	e := s.early
	s.early = nil
	s.mu.Unlock()
	if e != nil {
		e.undo(context.WithoutCancel(ctx))
	}
}
