package snapshot

import (
	"context"
	"errors"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
)

// Refresh probes the log for new commits and for a recreated table. It costs
// two requests when nothing is new. A log that vanished counts as recreated,
// with To -1.
func (t *Table) Refresh(ctx context.Context) (Event, error) {
	if err := t.refreshing.acquire(ctx); err != nil {
		return Event{}, err
	}
	defer t.refreshing.release()
	life, err := t.current()
	if err != nil {
		return t.relist(ctx, nil)
	}
	l := life.log()
	same, err := t.isSame(ctx, l.lastFile())
	if err != nil {
		return Event{}, t.fault(err)
	}
	// A commit that the newest version lacks may come late, or be filled late.
	if !same || l.check(l.latest) != nil {
		return t.relist(ctx, life)
	}
	more, _, err := t.probe(ctx, l.latest+1)
	if err != nil {
		return Event{}, t.fault(err)
	}
	if len(more) > 0 {
		life.setLog(l.extended(more))
	}
	return t.announce(false), nil
}

// announce makes the event that brings the caller up to date.
func (t *Table) announce(recreated bool) Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := Event{From: t.announced, To: -1, Recreated: recreated}
	if t.life != nil {
		e.To = t.life.log().latest
	}
	t.announced = e.To
	return e
}

// isSame reports whether a file is still the one that was listed.
func (t *Table) isSame(ctx context.Context, file logFile) (bool, error) {
	info, err := t.store.Head(ctx, file.name)
	if errors.Is(err, store.ErrNotExist) {
		return false, nil
	}
	return info.Identity == file.identity, err
}

// lastFile is the newest commit file, or of a log without any a part of the
// newest checkpoint.
func (l *listing) lastFile() logFile {
	if n := len(l.commits.all); n > 0 {
		return l.commits.all[n-1].file()
	}
	return l.checkpoints[len(l.checkpoints)-1].file()
}

// probe returns the commits that exist from v on. An empty file, which ends
// them, is one that a writer without put-if-absent is still writing.
func (t *Table) probe(ctx context.Context, v int64) (more []commitFile, empty bool, err error) {
	for ; ; v++ {
		info, err := t.store.Head(ctx, CommitName(v))
		if errors.Is(err, store.ErrNotExist) || err == nil && info.Size == 0 {
			return more, err == nil, nil
		}
		if err != nil {
			return nil, false, err
		}
		more = append(more, commitFile{v, stampOf(info)})
	}
}

// relist lists the log anew, and begins a new incarnation unless it is the
// log of this one. The caller holds refreshing.
func (t *Table) relist(ctx context.Context, life *incarnation) (Event, error) {
	fresh, err := list(ctx, t.store)
	if err != nil && !errors.Is(err, ErrNotTable) {
		return Event{}, t.fault(err)
	}
	switch {
	case err == nil && life != nil && fresh.continues(life.log()):
		life.setLog(fresh)
		return t.announce(false), nil
	case err != nil && life == nil:
		return t.announce(false), nil
	}
	t.log.Warn("the table was deleted or made again", "op", "refresh", "table", t.name)
	if life != nil {
		t.idBase = life.end()
		t.discard(life.opened())
	}
	t.mu.Lock()
	if life != nil {
		t.retired = life.retire(t.retired)
	}
	t.life = nil
	if err == nil {
		t.life = newIncarnation(t, fresh, t.idBase)
	}
	t.mu.Unlock()
	return t.announce(true), nil
}

// continues reports whether the listing is a later state of the log that was
// seen before: nothing went back and no commit was replaced.
func (l *listing) continues(before *listing) bool {
	if l.latest < before.latest {
		return false
	}
	now := l.commits.all
	for i, c := range before.commits.all {
		for len(now) > 0 && now[0].version < c.version {
			now = now[1:]
		}
		there := len(now) > 0 && now[0].version == c.version
		switch {
		case there && now[0].info.Identity != c.info.Identity && c.info.Size > 0:
			return false
		case !there && i == len(before.commits.all)-1:
			// Log cleanup never takes the newest commit.
			return false
		}
	}
	return true
}

// Versions returns the versions that can be rebuilt, ascending. It looks for
// newer ones, and for a log that others cleaned up.
func (t *Table) Versions(ctx context.Context) ([]metacache.Span, error) {
	if err := t.refreshing.acquire(ctx); err != nil {
		return nil, err
	}
	defer t.refreshing.release()
	life, err := t.current()
	if err != nil {
		return nil, err
	}
	l, err := t.intact(ctx, life.log())
	if err != nil {
		return nil, t.fault(err)
	}
	if l == nil {
		return t.listAgain(ctx)
	}
	life.setLog(l)
	return l.spans, nil
}

// intact returns the listing, extended by the commits that came since, if
// nothing else happened to the log: cleanup takes the oldest files first, so it
// is enough that the first one needed is there. A commit that is missing may
// come back at any time, so that only a listing without gaps can be.
func (t *Table) intact(ctx context.Context, l *listing) (*listing, error) {
	if len(l.spans) != 1 || l.spans[0].Last != l.latest {
		return nil, nil
	}
	for _, file := range []logFile{l.lastFile(), l.start(l.spans[0].First)} {
		if same, err := t.isSame(ctx, file); err != nil || !same {
			return nil, err
		}
	}
	more, empty, err := t.probe(ctx, l.latest+1)
	switch {
	case err != nil || empty: // after which there may be others
		return nil, err
	case len(more) == 0:
		return l, nil
	}
	return l.extended(more), nil
}

// HasVersion reports whether a version can be rebuilt. It asks for the files of
// the log at which that begins and ends, and lists the log only if one of them
// is not what it was, or if it had a gap.
func (t *Table) HasVersion(ctx context.Context, v int64) (bool, error) {
	life, err := t.current()
	if err != nil {
		return false, err
	}
	l := life.log()
	if l.check(v) == nil {
		there, err := t.isSame(ctx, l.start(v))
		if c, ok := l.commit(v); ok && there && err == nil {
			there, err = t.isSame(ctx, c.file())
		}
		if there || err != nil {
			return there, t.fault(err)
		}
	} else if v > l.latest || len(l.spans) > 0 && v < l.spans[0].First {
		return false, nil
	}
	if err := t.refreshing.acquire(ctx); err != nil {
		return false, err
	}
	defer t.refreshing.release()
	spans, err := t.listAgain(ctx)
	for _, s := range spans {
		if s.First <= v && v <= s.Last {
			return true, nil
		}
	}
	return false, err
}

// relisted lists the log of the table at hand.
func (t *Table) relisted(ctx context.Context) error {
	if err := t.refreshing.acquire(ctx); err != nil {
		return err
	}
	defer t.refreshing.release()
	_, err := t.listAgain(ctx)
	return err
}

// listAgain lists the log and returns which versions can be rebuilt. The caller
// holds refreshing.
func (t *Table) listAgain(ctx context.Context) ([]metacache.Span, error) {
	life, err := t.current()
	if err != nil {
		return nil, err
	}
	fresh, err := list(ctx, t.store)
	if err != nil {
		return nil, t.fault(err)
	}
	if fresh.continues(life.log()) {
		life.setLog(fresh)
	}
	// Else the next Refresh begins a new incarnation and reports it.
	return fresh.spans, nil
}
