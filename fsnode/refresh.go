package fsnode

import (
	"context"
	"time"

	"github.com/deltafs/deltafs/snapshot"
)

const (
	// freshFor is how old a probe of a log of which nothing is heard may be to
	// answer what latest is.
	freshFor = 50 * time.Millisecond
	// safety is how old a probe may be where every change should be heard of:
	// it finds what no event tells, such as a log whose path leads elsewhere
	// since a directory far above it was renamed.
	safety = 10 * time.Second
	// slowest is the longest interval between two probes of a table in use.
	slowest = 10 * time.Second
	// unknownCommit stands for a change that may concern any version.
	unknownCommit = -1
)

// poll takes in what is new in the log, or was found by somebody else. It
// probes the log if something was heard of it, or else if the last probe is
// older than maxAge, where nothing can be heard. A probe that fails leaves the
// last known state in force.
func (t *table) poll(ctx context.Context, maxAge time.Duration) error {
	if inc := t.present(); inc == nil || t.isFresh(maxAge) && inc.isHandled() {
		return nil
	}
	t.pollMu.Lock()
	defer t.pollMu.Unlock()
	inc := t.present()
	if inc == nil {
		return nil
	}
	if !t.isFresh(maxAge) {
		if err := t.probe(ctx, inc); err != nil {
			return err
		}
	}
	return t.handle(context.WithoutCancel(ctx), inc)
}

// isFresh reports whether the log was probed since it changed, as far as can
// be told without touching it.
func (t *table) isFresh(maxAge time.Duration) bool {
	if t.hears.Load() && maxAge > 0 {
		t.fs.watcher.drain()
		maxAge = safety
	}
	return t.events.Load() == t.probed.Load() && time.Since(time.Unix(0, t.polled.Load())) < maxAge
}

// probe looks into the log; pollMu is held. An error is the caller's who gave
// up.
func (t *table) probe(ctx context.Context, inc *incarnation) error {
	failing := true // also of what panics
	defer func() { t.failing.Store(failing) }()
	t.listen() // before the look, so that nothing falls in between
	events := t.events.Load()
	_, err := inc.snap.Refresh(ctx)
	if err != nil && ctx.Err() != nil {
		failing = t.failing.Load()
		return ctx.Err()
	}
	t.polled.Store(time.Now().UnixNano())
	if err != nil {
		t.fs.report(t, opRefresh, "", toErrno(err), err)
		return nil
	}
	t.probed.Store(events)
	failing = false
	return nil
}

// listen asks for the events of the log, if nothing is heard of it.
func (t *table) listen() {
	if !t.hears.Load() {
		t.hears.Store(t.fs.watcher.add(t))
	}
}

// heard says that version v, or what is known of it, changed in the log. A
// table that nobody uses looks at it only when what it has shown may be gone;
// new versions wait for its next use. The watcher's lock is held.
func (t *table) heard(v int64) {
	t.events.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inc != nil && (v <= t.inc.seen.Load() || t.idle() < t.fs.opt.Idle) {
		t.attend()
	}
}

// deaf says that nothing more will be heard of the log: it went, or another
// may be at its path. The watcher's lock is held.
func (t *table) deaf() {
	t.hears.Store(false)
	t.heard(unknownCommit)
}

// isHandled reports whether nothing is new since handle.
func (inc *incarnation) isHandled() bool {
	return inc.snap.Incarnation() == inc.life && inc.snap.Latest() == inc.seen.Load()
}

// handle takes over a new version or a new incarnation; pollMu is held. Commits
// of this mount probe the log too, so what was seen counts, not what this probe
// has found.
func (t *table) handle(ctx context.Context, inc *incarnation) error {
	if inc.snap.Incarnation() != inc.life {
		return t.recreated(ctx, inc)
	}
	from, to := inc.seen.Load(), inc.snap.Latest()
	if from == to {
		return nil
	}
	inc.live.Refreshed(ctx, snapshot.Event{From: from, To: to})
	if inc.live.Version() < to {
		// The new version does not read, and may do so later: a commit before it
		// is still to come, or is still being written.
		return nil
	}
	inc.seen.Store(to)
	t.fs.notifier.do(func() { t.fs.notifyChanges(inc, from, to) })
	return nil
}

// recreated replaces the incarnation: every node id of the old one is stale.
func (t *table) recreated(ctx context.Context, old *incarnation) error {
	inc := t.incarnate(old.store, old.snap, old.w)
	t.fs.log.Warn("table is gone, was made again, or a commit was rewritten", "table", t.source, "version", inc.seen.Load())
	t.fs.end(old)
	if err := t.fs.assignSlot(inc); err != nil {
		return err
	}
	// What is watched may not be what is at the path.
	t.fs.watcher.remove(t)
	t.hears.Store(false)
	t.events.Add(1)
	t.mu.Lock()
	t.inc = inc
	t.attend()
	t.mu.Unlock()
	inc.live.Refreshed(ctx, snapshot.Event{From: old.seen.Load(), To: inc.seen.Load(), Recreated: true})
	t.fs.notifier.do(func() { t.fs.notifyAll(t) })
	return nil
}

// vanished gives a table up whose directory is gone from the lake.
func (t *table) vanished(inc *incarnation) {
	if inc.dead.Swap(true) {
		return
	}
	t.fs.log.Warn("table is gone", "table", t.source)
	t.mu.Lock()
	if t.inc == inc {
		t.inc = nil
	}
	t.mu.Unlock()
	t.unlisten()
	t.fs.end(inc)
	t.fs.notifier.do(func() {
		t.fs.notifyAll(t)
		if err := inc.close(t.fs.ctx); err != nil {
			t.fs.report(t, "close", "", toErrno(err), err)
		}
	})
}

// attend runs the refresher unless it runs already; t.mu is held.
func (t *table) attend() {
	if t.attended || t.fs.ctx.Err() != nil {
		return
	}
	t.attended = true
	t.fs.wg.Go(t.refresh)
}

// hurry lets the refresher look at the table: this mount has committed.
func (t *table) hurry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inc != nil {
		t.attend()
	}
}

// refresh takes in what is new, and ends when nothing is left to do: where every
// change is heard of, that is at once. Other tables are probed while they are
// in use, the more slowly the longer ago they were asked for.
func (t *table) refresh() {
	for {
		t.fs.guard("refresh", func() {
			if err := t.poll(t.fs.ctx, min(freshFor, t.fs.opt.Refresh)); err != nil && t.fs.ctx.Err() == nil {
				t.fs.log.Debug("probe failed", "table", t.source, "err", err)
			}
		})
		interval, more := t.pace()
		if !more {
			return
		}
		select {
		case <-t.fs.ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

// pace is how long to wait until the next look at the table; false ends the
// refresher.
func (t *table) pace() (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	idle := t.idle()
	switch {
	case t.inc == nil:
	case t.hears.Load() && !t.failing.Load():
		if t.events.Load() != t.probed.Load() {
			return 0, true
		}
	case idle < t.fs.opt.Idle:
		return min(max(idle/10, t.fs.opt.Refresh), slowest), true
	}
	t.attended = false
	return 0, false
}
