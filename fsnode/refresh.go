package fsnode

import (
	"context"
	"errors"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

const (
	// idleAfter ends the refresher of a table that nobody uses and of which
	// the kernel knows nothing.
	idleAfter = 10 * time.Second
	// slowest is the longest interval between two probes of a table that the
	// kernel knows.
	slowest = 10 * time.Second
)

// poll probes the log unless that happened within maxAge, and hands on what
// it or somebody else found. A probe that fails leaves the last known state in force.
func (t *table) poll(ctx context.Context, maxAge time.Duration) error {
	t.pollMu.Lock()
	defer t.pollMu.Unlock()
	t.mu.Lock()
	inc, recent := t.inc, time.Since(t.polled) < maxAge
	t.mu.Unlock()
	if inc == nil {
		return nil
	}
	if recent {
		return t.handle(context.WithoutCancel(ctx), inc)
	}
	_, err := inc.snap.Refresh(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	t.mu.Lock()
	t.polled = time.Now()
	t.mu.Unlock()
	if err != nil {
		t.fs.report(t, opRefresh, "", toErrno(err), err)
		return nil
	}
	return t.handle(context.WithoutCancel(ctx), inc)
}

// handle takes over a new version or a new incarnation. Commits of this mount
// probe the log too, so what was seen counts, not what this probe has found.
func (t *table) handle(ctx context.Context, inc *incarnation) error {
	if inc.snap.Incarnation() != inc.life {
		return t.recreated(ctx, inc)
	}
	from, to := inc.seen, inc.snap.Latest()
	if from == to {
		return nil
	}
	inc.live.Refreshed(ctx, snapshot.Event{From: from, To: to})
	if inc.live.Version() < to {
		// The new version does not read, and may do so later: a commit before it
		// is still to come, or is still being written.
		return nil
	}
	inc.seen = to
	t.fs.notifier.do(func() { t.fs.notifyChanges(inc, from, to) })
	return nil
}

// recreated replaces the incarnation: every node id of the old one is stale.
func (t *table) recreated(ctx context.Context, old *incarnation) error {
	inc := t.incarnate(old.snap, old.w)
	t.fs.log.Warn("table is gone, was made again, or a commit was rewritten", "table", t.source, "version", inc.seen)
	old.dead.Store(true)
	t.fs.freeSlot(old)
	if err := t.fs.assignSlot(inc); err != nil {
		return err
	}
	t.mu.Lock()
	t.inc = inc
	t.mu.Unlock()
	inc.live.Refreshed(ctx, snapshot.Event{From: old.seen, To: inc.seen, Recreated: true})
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
	t.fs.freeSlot(inc)
	t.fs.notifier.do(func() {
		t.fs.notifyAll(t)
		if err := errors.Join(inc.w.Close(t.fs.ctx), inc.snap.Close()); err != nil {
			t.fs.report(t, "close", "", toErrno(err), err)
		}
	})
}

// hurry makes the refresher probe at once: this mount has committed.
func (t *table) hurry() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// watch runs the refresher unless it runs already; t.mu is held.
func (t *table) watch() {
	if t.watching || t.fs.ctx.Err() != nil {
		return
	}
	t.watching = true
	t.fs.wg.Go(t.refresh)
}

// refresh probes the table while it is in use, the more slowly the longer ago
// it was asked for. It ends when the kernel knows nothing of the table.
func (t *table) refresh() {
	for {
		idle := time.Since(time.Unix(0, t.used.Load()))
		t.mu.Lock()
		if t.inc == nil || (idle > idleAfter && t.known.Load() == 0) {
			t.watching = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		select {
		case <-t.fs.ctx.Done():
			return
		case <-t.wake:
		case <-time.After(min(max(idle/10, t.fs.opt.Refresh), slowest)):
		}
		t.fs.guard("refresh", func() {
			if err := t.poll(t.fs.ctx, 0); err != nil && t.fs.ctx.Err() == nil {
				t.fs.log.Debug("probe failed", "table", t.source, "err", err)
			}
		})
	}
}

// changes calls yield with the directory of every file that appeared or went
// between two versions.
func (inc *incarnation) changes(ctx context.Context, from, to int64, yield func(dir string)) error {
	before, err := inc.snap.At(ctx, from)
	if err != nil {
		return err
	}
	after, err := inc.snap.At(ctx, to)
	if err != nil {
		return err
	}
	for v := from + 1; v <= to; v++ {
		actions, err := inc.snap.ReadCommit(ctx, v)
		if err != nil {
			return err
		}
		for _, a := range actions {
			var path string
			at := after
			switch a := a.(type) {
			case *action.Add:
				path = a.Path
			case *action.Remove:
				at, path = before, a.Path
			default:
				continue
			}
			f, ok, err := at.ByPath(ctx, path)
			if err != nil {
				return err
			}
			if ok {
				yield(f.Dir)
			}
		}
	}
	return nil
}
