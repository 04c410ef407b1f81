package writer

import (
	"context"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// readyCommit is a commit file that lies ready and durable, for one version of
// the table.
type readyCommit struct {
	txn   *txn
	draft store.Draft
}

// makeReady makes the commit file of a transaction that would follow the newest
// version known, before anybody commits it. It is of use if nothing else is
// committed until then.
func (c *committer) makeReady(ctx context.Context, spec *TxnSpec) error {
	t, err := c.begin(ctx, spec, snapshot.Event{})
	if err != nil {
		return err
	}
	data, err := t.encode(c.now().UnixMilli(), c.opts.EngineInfo)
	if err != nil {
		return err
	}
	draft, err := c.log.Store().Draft(ctx, snapshot.CommitName(t.version), data, spec.Published...)
	if err != nil {
		return err
	}
	spec.ready = &readyCommit{t, draft}
	return nil
}

// takeReady returns the transaction whose commit file lies ready, if it is that
// of the next version of the table it was made for.
func (c *committer) takeReady(spec *TxnSpec, ev snapshot.Event) *txn {
	r := spec.ready
	if r == nil || r.txn.version != c.log.Latest()+1 || c.sameTable(ev, spec, spec.Base) != nil {
		return nil
	}
	r.txn.ready = r.draft
	return r.txn
}

// discardReady gives the commit file up, used or not.
func (s *TxnSpec) discardReady() {
	if s.ready != nil {
		s.ready.draft.Discard()
		s.ready = nil
	}
}
