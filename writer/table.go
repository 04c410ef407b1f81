package writer

import (
	"context"
	"log/slog"

	"github.com/deltafs/deltafs/snapshot"
)

// Table is the write side of one table. It is safe for concurrent use.
type Table struct {
	table   *snapshot.Table
	opts    Options
	log     *slog.Logger
	commits *committer
	// checkpoints follow the commits.
	checkpoints *checkpointer
	live        *Live
}

// Open prepares writing to a table; nothing is written yet. A table that
// cannot be written opens too: Writable says why.
func Open(ctx context.Context, t *snapshot.Table, o Options) (*Table, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Table{
		table:       t,
		opts:        o,
		log:         o.Logger.With("table", t.Name()),
		commits:     newCommitter(t, o),
		checkpoints: newCheckpointer(t, o),
	}
	w.commits.afterCommit = w.checkpoints.committed
	live, err := newLive(ctx, w)
	if err != nil {
		return nil, err
	}
	w.live = live
	return w, nil
}

// Writable returns nil, or why the latest version cannot be written, naming
// the feature. It reads no file list.
func (w *Table) Writable(ctx context.Context) error { return w.commits.writable(ctx) }

// Commit makes one atomic commit and returns its version, when the snapshot
// of that version can be had from the table. Blind appends are rebased
// silently, and those that wait for each other share a commit; anything else
// that lost returns ErrConflict. ErrUnsure says that the commit may exist.
// Cancelling ctx stops a commit that waits for its turn, never one that has
// begun.
func (w *Table) Commit(ctx context.Context, spec *TxnSpec) (int64, error) {
	return w.commits.commit(ctx, spec)
}

// Live returns the tree under current/.
func (w *Table) Live() *Live { return w.live }

// Close commits pending unlinks, gives up the staging area and a checkpoint
// that takes long, and returns what could not be committed. The snapshot table
// stays open.
func (w *Table) Close(ctx context.Context) error {
	err := w.live.close(ctx)
	w.checkpoints.close(ctx)
	return err
}
