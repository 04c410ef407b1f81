package writer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
	"github.com/deltafs/deltafs/snapshot"
)

// checkpointBuilder makes the checkpoint of one version.
type checkpointBuilder struct {
	table   *snapshot.Table
	version int64
	tooOld  tooOld
	limits  checkpointLimits
}

// checkpointDraft is a complete checkpoint that has no name yet.
type checkpointDraft struct {
	file    *os.File
	version int64
	size    int64
	// rows is the number of actions, totals sums the adds up.
	rows   int64
	totals metacache.Totals
}

func (d *checkpointDraft) close() { d.file.Close() }

// build makes the checkpoint from the newest one before it and the commits
// since. Of the commits a bounded part is held in memory: when there are more,
// a draft stands in for the checkpoint before the rest. The caller closes the
// draft.
func (b *checkpointBuilder) build(ctx context.Context) (*checkpointDraft, error) {
	base, err := b.table.OpenCheckpoint(ctx, b.version)
	if err != nil {
		return nil, err
	}
	for d := (*checkpointDraft)(nil); ; {
		next, err := b.step(ctx, base)
		if base != nil {
			base.Close()
		}
		if d != nil {
			d.close()
		}
		if err != nil || next.version == b.version {
			return next, err
		}
		d = next
		if base, err = b.table.OpenCheckpointDraft(ctx, d.file, d.version); err != nil {
			d.close()
			return nil, err
		}
	}
}

// step makes a draft from a checkpoint, nil for none, and as many of the
// commits after it as may be held in memory.
func (b *checkpointBuilder) step(ctx context.Context, base *snapshot.Checkpoint) (*checkpointDraft, error) {
	c := newChanges(b.table.Store().Root(), base)
	v := int64(-1)
	if base != nil {
		v = base.Version()
	}
	for v < b.version && c.bytes < b.limits.changes {
		v++
		if err := b.read(ctx, v, c); err != nil {
			return nil, err
		}
	}
	return b.draft(ctx, base, c, v)
}

// read takes in one commit.
func (b *checkpointBuilder) read(ctx context.Context, v int64, c *changes) error {
	actions, err := b.table.ReadCommit(ctx, v)
	if err != nil {
		return err
	}
	if err := c.apply(actions); err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return f.AtVersion(v)
		}
		return err
	}
	return nil
}

// draft writes a checkpoint to a file without a name.
func (b *checkpointBuilder) draft(ctx context.Context, base *snapshot.Checkpoint, c *changes, v int64) (*checkpointDraft, error) {
	if c.protocol == nil || c.metadata == nil {
		return nil, fault.New(snapshot.ErrCorrupt, "the log describes no table").AtVersion(v)
	}
	file, err := stage(ctx, b.table.Store(), snapshot.CheckpointName(v))
	if err != nil {
		return nil, err
	}
	d := &checkpointDraft{file: file, version: v}
	if err := guarded(func() error { return b.fill(ctx, d, base, c) }); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// fill writes a draft and makes it durable.
func (b *checkpointBuilder) fill(ctx context.Context, d *checkpointDraft, base *snapshot.Checkpoint, c *changes) error {
	layout, err := newCheckpointLayout(c.tableState)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(d.file, 1<<20)
	w := &checkpointWriter{checkpointEncoder: newCheckpointEncoder(out, layout, b.limits), draft: d, changes: c, tooOld: b.tooOld}
	if err := w.all(ctx, base); err != nil {
		return err
	}
	if err := errors.Join(w.close(), out.Flush()); err != nil {
		return err
	}
	if err := dropColumnIndexes(d.file, layout.unordered()); err != nil {
		return err
	}
	if err := d.file.Sync(); err != nil {
		return err
	}
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	d.size, d.rows = info.Size(), w.total
	return nil
}

// stage opens a file without a name.
func stage(ctx context.Context, st store.Store, name string) (*os.File, error) {
	s, ok := st.(interface {
		Stage(ctx context.Context, name string) (*os.File, error)
	})
	if !ok {
		return nil, fault.New(ErrNoCheckpoint, "the storage takes no checkpoints yet")
	}
	return s.Stage(ctx, name)
}

// checkpointWriter writes the rows of one checkpoint.
type checkpointWriter struct {
	*checkpointEncoder
	draft   *checkpointDraft
	changes *changes
	tooOld  tooOld
}

// all writes what the version is without its files, then the row groups of the
// checkpoint before that stay as they are, and then the other files: removed
// ones first, so that they share no row group with the others, which outlive
// them.
func (w *checkpointWriter) all(ctx context.Context, base *snapshot.Checkpoint) error {
	if err := w.state(); err != nil {
		return err
	}
	rest, err := w.copyGroups(ctx, base)
	if err != nil {
		return err
	}
	for _, g := range rest {
		if err := g.writeRemoves(ctx, w); err != nil {
			return err
		}
	}
	for r := range w.changes.removes() {
		if err := w.remove(r); err != nil {
			return err
		}
	}
	if err := w.endGroup(); err != nil {
		return err
	}
	for _, g := range rest {
		if err := g.writeAdds(ctx, w); err != nil {
			return err
		}
	}
	for a := range w.changes.adds() {
		if err := w.add(a); err != nil {
			return err
		}
	}
	return nil
}

// state writes the actions that are not about files.
func (w *checkpointWriter) state() error {
	s := &w.changes.tableState
	rows := []action.Action{s.protocol, s.metadata}
	for _, app := range slices.Sorted(maps.Keys(s.txns)) {
		txn := s.txns[app]
		if w.tooOld.txns == never || txn.LastUpdated != nil && *txn.LastUpdated > w.tooOld.txns {
			rows = append(rows, txn)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.domains)) {
		if d := s.domains[name]; !d.Removed {
			rows = append(rows, d)
		}
	}
	for _, a := range rows {
		if err := w.write(a); err != nil {
			return err
		}
	}
	return w.endGroup()
}

func (w *checkpointWriter) remove(r *action.Remove) error {
	if r.DeletionTimestamp == nil || *r.DeletionTimestamp <= w.tooOld.removes {
		return nil
	}
	return w.write(r)
}

func (w *checkpointWriter) add(a *action.Add) error {
	count(&w.draft.totals, a.Size, a.DVID())
	return w.write(a)
}

// verify reads the draft back and compares what it holds with what was to be
// written, and with the index if that knows the version: the two came about in
// different ways.
func (b *checkpointBuilder) verify(ctx context.Context, d *checkpointDraft) error {
	mismatch := func(what string) error {
		return fault.New(ErrInvalid, "the checkpoint holds other %s than the table", what).AtVersion(d.version)
	}
	if want, ok := b.table.IndexedTotals(ctx, d.version); ok && want != d.totals {
		return mismatch("files")
	}
	c, err := b.table.OpenCheckpointDraft(ctx, d.file, d.version)
	if err != nil {
		return err
	}
	defer c.Close()
	var found metacache.Totals
	rows := int64(2 + len(c.Txns()) + len(c.Domains()))
	for _, g := range c.Groups() {
		for f, err := range g.Files(ctx) {
			if err != nil {
				return err
			}
			rows++
			if !f.Removed {
				count(&found, f.Size, f.DV)
			}
		}
	}
	switch {
	case found != d.totals:
		return mismatch("files")
	case rows != d.rows:
		return mismatch("actions")
	}
	return nil
}

// guarded runs f and turns a panic into an error: parquet-go panics on some
// damaged files.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic while copying a checkpoint: %v", r)
		}
	}()
	return f()
}
