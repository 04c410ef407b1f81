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
	same, err := t.sameLog(ctx, l)
	if err != nil {
		return Event{}, t.fault(err)
	}
	// A commit that the newest version lacks may come late, or be filled late.
	if !same || l.check(l.latest) != nil {
		return t.relist(ctx, life)
	}
	more, err := t.probe(ctx, l.latest+1)
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

// sameLog reports whether the file that stands for the newest version is
// still the one that was listed.
func (t *Table) sameLog(ctx context.Context, l *listing) (bool, error) {
	last := l.lastFile()
	info, err := t.store.Head(ctx, last.Name)
	if errors.Is(err, store.ErrNotExist) {
		return false, nil
	}
	return info.Identity == last.Identity, err
}

// lastFile is the newest commit file, or of a log without any a part of the
// newest checkpoint.
func (l *listing) lastFile() store.Info {
	if n := len(l.commits); n > 0 {
		return l.commits[n-1].info
	}
	return l.checkpoints[len(l.checkpoints)-1].parts[0]
}

// probe returns the commits that exist from v on. An empty file is one that a
// writer without put-if-absent is still writing.
func (t *Table) probe(ctx context.Context, v int64) ([]commitFile, error) {
	var more []commitFile
	for ; ; v++ {
		info, err := t.store.Head(ctx, CommitName(v))
		if errors.Is(err, store.ErrNotExist) || (err == nil && info.Size == 0) {
			return more, nil
		}
		if err != nil {
			return nil, err
		}
		more = append(more, commitFile{v, info})
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
	t.mu.Lock()
	if life != nil {
		t.idBase = life.end()
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
	for i, c := range before.commits {
		now, ok := l.commit(c.version)
		switch {
		case ok && now.info.Identity != c.info.Identity && c.info.Size > 0:
			return false
		case !ok && i == len(before.commits)-1:
			// Log cleanup never takes the newest commit.
			return false
		}
	}
	return true
}

// Versions returns the versions that can be rebuilt, ascending. It lists the
// log, so that it also notices a log that others cleaned up.
func (t *Table) Versions(ctx context.Context) ([]metacache.Span, error) {
	if err := t.refreshing.acquire(ctx); err != nil {
		return nil, err
	}
	defer t.refreshing.release()
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
