package writer

import (
	"context"
	"errors"
	"sync"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

const (
	// maxMembers is how many transactions may share a commit, and maxGroupBytes
	// about how long its text may get for that.
	maxMembers    = 64
	maxGroupBytes = 1 << 20
)

// member is a transaction that may share its commit with others.
type member struct {
	ctx  context.Context
	spec *TxnSpec
	// done is closed when the result is known.
	done    chan struct{}
	version int64
	err     error
}

func (m *member) finish(version int64, err error) {
	m.version, m.err = version, err
	close(m.done)
}

func (m *member) finished() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// queue holds the members that nobody has begun to commit, in the order in
// which they came.
type queue struct {
	mu      sync.Mutex
	members []*member
}

func (q *queue) add(m *member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.members = append(q.members, m)
}

// leave takes a member back, unless its commit has begun.
func (q *queue) leave(m *member) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.members {
		if other == m {
			q.members = append(q.members[:i:i], q.members[i+1:]...)
			return true
		}
	}
	return false
}

// take takes out the first members, as many as may share a commit.
func (q *queue) take() []*member {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.members) && n < maxMembers {
		if size += q.members[n].spec.size(); n > 0 && size > maxGroupBytes {
			break
		}
		n++
	}
	out := q.members[:n:n]
	q.members = q.members[n:]
	return out
}

// mayShare reports whether the transaction may share a commit: an append that
// rests on nothing it has read and says nothing of itself.
func (s *TxnSpec) mayShare() bool {
	if s.Operation != "WRITE" || s.Base < 0 || s.Parameters != nil || s.Metrics != nil || s.UserMetadata != "" ||
		s.ReadWhole || len(s.ReadFiles)+len(s.AppIDs) > 0 {
		return false
	}
	for _, a := range s.Actions {
		if add, ok := a.(*action.Add); !ok || !add.DataChange {
			return false
		}
	}
	return len(s.Actions) > 0
}

// size is about how long the text of the actions gets.
func (s *TxnSpec) size() int {
	const fields = 300
	size := 0
	for _, a := range s.Actions {
		if add, ok := a.(*action.Add); ok {
			size += fields + len(add.Path) + len(add.Stats)
		}
	}
	return size
}

// commitShared commits a transaction together with those that wait beside it.
// Whoever gets the turn commits for all of them.
func (c *committer) commitShared(ctx context.Context, spec *TxnSpec) (int64, error) {
	m := &member{ctx: ctx, spec: spec, done: make(chan struct{})}
	c.queue.add(m)
	select {
	case <-m.done:
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
		for !m.finished() {
			c.commitGroup(c.queue.take())
		}
	case <-ctx.Done():
		if c.queue.leave(m) {
			return 0, ctx.Err()
		}
		<-m.done
	}
	return m.version, m.err
}

// commitGroup gives each member its result; the turn is held. Those that cannot
// share, or whose shared commit failed, are committed one by one.
func (c *committer) commitGroup(members []*member) {
	defer func() {
		// A defect must not leave anybody waiting.
		for _, m := range members {
			if !m.finished() {
				m.finish(0, fault.New(ErrUnsure, "the commit was given up"))
			}
		}
	}()
	if len(members) > 1 {
		c.share(members)
	}
	for _, m := range members {
		if !m.finished() {
			m.finish(c.single(m.ctx, m.spec))
		}
	}
}

// share makes one commit of the members that can share it, and gives those their
// result; each one is checked alone first.
func (c *committer) share(members []*member) {
	ctx := context.WithoutCancel(members[0].ctx)
	ev, err := c.look(ctx)
	if err != nil {
		return // each will find out alone
	}
	latest := c.log.Latest()
	var sharing []*member
	var txns []*txn
	taken := map[string]bool{}
	for _, m := range members {
		t, err := c.prepare(m.ctx, m.spec, ev, latest)
		switch {
		case err != nil:
			m.finish(0, err)
		case !t.addsAnyOf(taken):
			for path := range t.adds {
				taken[path] = true
			}
			sharing, txns = append(sharing, m), append(txns, t)
		}
	}
	if len(txns) < 2 {
		return
	}
	shared, err := join(txns)
	var version int64
	if err == nil {
		version, err = c.complete(ctx, shared)
	}
	if err != nil && !errors.Is(err, ErrUnsure) {
		c.logger.Info("a shared commit failed, each member is tried alone", "members", len(sharing), "err", err)
		return
	}
	for _, m := range sharing {
		m.finish(version, err)
	}
}

// addsAnyOf reports whether the transaction adds one of the canonical paths.
func (t *txn) addsAnyOf(paths map[string]bool) bool {
	for path := range t.adds {
		if paths[path] {
			return true
		}
	}
	return false
}

// join makes one transaction of several that may share a commit and would follow
// the same version. What they have read, nothing but a version, is as old as the
// oldest.
func join(txns []*txn) (*txn, error) {
	first := txns[0]
	spec := &TxnSpec{Operation: first.spec.Operation, Base: first.spec.Base}
	floor := first.floor
	for _, t := range txns {
		spec.Base = min(spec.Base, t.spec.Base)
		if t.spec.Incarnation != nil {
			spec.Incarnation = t.spec.Incarnation
		}
		spec.Actions = append(spec.Actions, t.spec.Actions...)
		spec.Published = append(spec.Published, t.spec.Published...)
		floor = max(floor, t.floor)
	}
	shared, err := newTxn(spec, first.base, first.root)
	if err != nil {
		return nil, err
	}
	shared.version, shared.floor = first.version, floor
	return shared, nil
}
