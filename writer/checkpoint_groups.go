package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/parquet-go/parquet-go"
)

// keptGroup is a row group of the checkpoint before, some of whose files the
// new checkpoint has too.
type keptGroup interface {
	// writeRemoves and writeAdds write those files.
	writeRemoves(ctx context.Context, w *checkpointWriter) error
	writeAdds(ctx context.Context, w *checkpointWriter) error
}

// copyGroups copies the row groups that stay as they are, and returns the
// others. Small ones are among the others, so that they become fewer.
func (w *checkpointWriter) copyGroups(ctx context.Context, base *snapshot.Checkpoint) (rest []keptGroup, err error) {
	if base == nil {
		return nil, nil
	}
	for _, g := range base.Groups() {
		// No row group of ours is much larger than the limit.
		own := parquet.EqualNodes(w.out.Schema(), g.Parquet().Schema()) && g.Parquet().NumRows() <= 4*max(w.limits.rows, batchRows)
		if !own {
			if err := nothingUnknown(g, base.Version()); err != nil {
				return nil, err
			}
			rest = append(rest, foreignGroup{g})
			continue
		}
		sifted, err := w.sift(ctx, g)
		switch {
		case err != nil:
			return nil, err
		case sifted.all() && sifted.large(w.limits):
			if err := w.copyGroup(g.Parquet()); err != nil {
				return nil, err
			}
		default:
			rest = append(rest, sifted)
		}
	}
	return rest, nil
}

func nothingUnknown(g *snapshot.CheckpointGroup, v int64) error {
	name, err := g.Unknown()
	if err != nil || name == "" {
		return err
	}
	return fault.New(ErrNoCheckpoint, "the checkpoint before holds values that are not known here").
		AtVersion(v).OnColumn(name).WithHint("have the engine that wrote it write the checkpoints")
}

// foreignGroup has other columns than the new checkpoint: its actions are
// decoded.
type foreignGroup struct{ *snapshot.CheckpointGroup }

func (g foreignGroup) writeRemoves(ctx context.Context, w *checkpointWriter) error {
	for r, err := range g.Removes(ctx) {
		if err != nil {
			return err
		}
		if w.changes.holds(r.Path, r.DVID()) {
			continue
		}
		if err := w.remove(r); err != nil {
			return err
		}
	}
	return nil
}

func (g foreignGroup) writeAdds(ctx context.Context, w *checkpointWriter) error {
	for a, err := range g.Adds(ctx) {
		if err != nil {
			return err
		}
		if w.changes.holds(a.Path, a.DVID()) {
			continue
		}
		if err := w.add(a); err != nil {
			return err
		}
	}
	return nil
}

// ownGroup has the columns of the new checkpoint: its rows are copied column by
// column.
type ownGroup struct {
	*snapshot.CheckpointGroup
	// adds and removes say of each row whether it is a file that stays.
	adds, removes  []bool
	added, removed int64
}

// sift finds out which files of a row group stay, and counts them.
func (w *checkpointWriter) sift(ctx context.Context, g *snapshot.CheckpointGroup) (*ownGroup, error) {
	rows := g.Parquet().NumRows()
	own := &ownGroup{CheckpointGroup: g, adds: make([]bool, rows), removes: make([]bool, rows)}
	for f, err := range g.Files(ctx) {
		switch {
		case err != nil:
			return nil, err
		case w.changes.holds(f.Path, f.DV):
		case !f.Removed:
			own.adds[f.Row] = true
			own.added++
			count(&w.draft.totals, f.Size, f.DV)
		case f.DeletionTimestamp > w.tooOld.removes:
			own.removes[f.Row] = true
			own.removed++
		}
	}
	return own, nil
}

// all reports whether all rows stay.
func (g *ownGroup) all() bool { return g.added+g.removed == g.Parquet().NumRows() }

// large reports whether the row group needs no other rows.
func (g *ownGroup) large(l checkpointLimits) bool {
	return g.Parquet().NumRows() >= l.rows/2 || g.Bytes() >= l.bytes/2
}

func (g *ownGroup) writeRemoves(ctx context.Context, w *checkpointWriter) error {
	return w.copyRows(ctx, g.CheckpointGroup, "remove", g.removes, g.removed)
}

func (g *ownGroup) writeAdds(ctx context.Context, w *checkpointWriter) error {
	return w.copyRows(ctx, g.CheckpointGroup, "add", g.adds, g.added)
}

// copyGroup copies a row group as it is.
func (e *checkpointEncoder) copyGroup(g parquet.RowGroup) error {
	if err := e.endGroup(); err != nil {
		return err
	}
	n, err := e.out.WriteRowGroup(g)
	e.total += n
	return err
}

// copyRows writes n rows of a row group with the same columns, which hold
// actions of one kind: the columns of the others are null.
func (e *checkpointEncoder) copyRows(ctx context.Context, g *snapshot.CheckpointGroup, kind string, rows []bool, n int64) error {
	if n == 0 {
		return nil
	}
	if err := e.flush(); err != nil {
		return err
	}
	if e.rows >= e.limits.rows/2 && e.rows+n > e.limits.rows {
		if err := e.end(); err != nil {
			return err
		}
	}
	for i, chunk := range g.Parquet().ColumnChunks() {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := e.columns[i]
		var err error
		if c.path[0] == kind {
			err = copyValues(c.out, chunk, rows)
		} else {
			err = c.writeNulls(n)
		}
		if err != nil {
			return err
		}
	}
	return e.grown(n, g.Bytes()*n/int64(len(rows)))
}

// copyValues writes the values of some rows of a column.
func copyValues(out *parquet.ColumnWriter, chunk parquet.ColumnChunk, rows []bool) error {
	pages := chunk.Pages()
	defer pages.Close()
	c := valueCopy{out: out, rows: rows, row: -1}
	defer func() { c.release(nil) }()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := c.page(page); err != nil {
			return err
		}
	}
	if c.row != len(rows)-1 {
		return fmt.Errorf("a column has %d of %d rows", c.row+1, len(rows))
	}
	return c.flush()
}

// valueCopy copies the values of one column. Until they are written, values
// borrow the memory of their pages.
type valueCopy struct {
	out   *parquet.ColumnWriter
	rows  []bool
	row   int
	ready []parquet.Value
	held  []parquet.Page
}

func (c *valueCopy) page(page parquet.Page) error {
	c.held = append(c.held, page)
	values := page.Values()
	var buf [256]parquet.Value
	for {
		n, err := values.ReadValues(buf[:])
		for _, v := range buf[:n] {
			if v.RepetitionLevel() == 0 {
				// Only whole rows may be written.
				if len(c.ready) >= batchRows {
					if err := c.flush(); err != nil {
						return err
					}
					c.release(page)
				}
				if c.row++; c.row == len(c.rows) {
					return errors.New("a column has more rows than its row group")
				}
			}
			if c.rows[c.row] {
				c.ready = append(c.ready, v)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// flush writes what is ready. Whoever waits for a processor goes first: this is
// long, and in the background.
func (c *valueCopy) flush() error {
	if len(c.ready) == 0 {
		return nil
	}
	runtime.Gosched()
	_, err := c.out.WriteRowValues(c.ready)
	c.ready = c.ready[:0]
	return err
}

// release gives back the pages but for one.
func (c *valueCopy) release(but parquet.Page) {
	for _, p := range c.held {
		if p != but {
			parquet.Release(p)
		}
	}
	c.held = c.held[:0]
	if but != nil {
		c.held = append(c.held, but)
	}
}

// count adds a file to the totals.
func count(t *metacache.Totals, size int64, dv string) {
	t.Files++
	t.Bytes += size
	if dv != "" {
		t.DVs++
	}
}
