package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/parquet-go/parquet-go"
)

// errCheckpoint marks a checkpoint that does not read: another one, or the
// commits, may do instead.
var errCheckpoint = errors.New("checkpoint does not read")

// guard runs f and turns a panic into an error: parquet-go panics on some
// damaged files.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic while decoding: %v", r)
		}
	}()
	return f()
}

// readBuffer is how much of a column is read at a time from a file of this
// size. A few columns are open at a time, each with its buffer.
func readBuffer(size int64) int {
	if size < 1<<20 {
		return 16 << 10
	}
	return 256 << 10
}

// checkpointPart is one opened file of a Parquet checkpoint.
type checkpointPart struct {
	object store.Object
	file   *parquet.File
	// budget is how many bytes its adds may still take.
	budget int64
}

func openCheckpointPart(ctx context.Context, st store.Store, name string) (*checkpointPart, error) {
	object, err := st.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &checkpointPart{object: object, budget: maxBytes(object.Info().Size)}
	err = guard(func() (err error) {
		p.file, err = parquet.OpenFile(object, object.Info().Size,
			parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(readBuffer(object.Info().Size)))
		if err != nil {
			return err
		}
		return checkClaims(p.file.Metadata(), object.Info().Size)
	})
	if err != nil {
		object.Close()
		return nil, err
	}
	return p, nil
}

func (p *checkpointPart) close() { p.object.Close() }

// columns is for opening columns of one row group.
func (p *checkpointPart) columns(number int) (g *rowGroupColumns, err error) {
	err = guard(func() error {
		g = newRowGroupColumns(p.file, number)
		return nil
	})
	return g, err
}

// closeColumns closes what was opened.
func (p *checkpointPart) closeColumns(g *rowGroupColumns) {
	if g != nil {
		_ = guard(func() error { g.close(); return nil })
	}
}

// rowGroup runs f on the columns of one row group, guarded.
func (p *checkpointPart) rowGroup(number int, f func(g *rowGroupColumns) error) error {
	g, err := p.columns(number)
	defer p.closeColumns(g)
	if err != nil {
		return err
	}
	return guard(func() error { return f(g) })
}

// checkpointVisitor is called for what a checkpoint holds, in order. Rows are
// counted through all its files. It is over when one returns an error, or false.
type checkpointVisitor struct {
	// rowGroup gets a row group of a file and the number of its first row.
	rowGroup func(p *checkpointPart, number int, first int64) (bool, error)
	// line gets an action of a JSON file, whose lines are rows.
	line func(r *action.Reader, a action.Action, row int64) (bool, error)
}

// visit reads the files of the checkpoint: what was listed, then the sidecars
// that these name.
func (c *checkpointFile) visit(ctx context.Context, st store.Store, v checkpointVisitor) error {
	row, named := int64(0), &sidecars{}
	for _, info := range c.parts {
		more, err := c.visitPart(ctx, st, info.Name, &row, named, v)
		if err != nil {
			return failCheckpoint(err, c.version, info.Name)
		}
		if !more {
			return nil
		}
	}
	for _, name := range named.names {
		more, err := c.visitPart(ctx, st, name, &row, nil, v)
		if err != nil {
			return failSidecar(err, c.version, name)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// visitPart reads one file, whose first row has the number *row. If it is no
// sidecar itself, named takes those that it names.
func (c *checkpointFile) visitPart(ctx context.Context, st store.Store, name string, row *int64, named *sidecars, v checkpointVisitor) (bool, error) {
	if path.Ext(name) == ".json" && named != nil {
		return visitLines(ctx, st, name, row, named, v)
	}
	part, err := openCheckpointPart(ctx, st, name)
	if err != nil {
		return false, err
	}
	defer part.close()
	if named != nil {
		if err := part.readSidecars(ctx, named); err != nil {
			return false, err
		}
	}
	if part.withoutAdds() && (named == nil || len(named.names) > 0) {
		*row += part.file.NumRows()
		return true, nil
	}
	for i := range part.file.RowGroups() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if more, err := v.rowGroup(part, i, *row); err != nil || !more {
			return false, err
		}
		*row += part.file.RowGroups()[i].NumRows()
	}
	return true, nil
}

// withoutAdds says that the file has no columns of adds, but has one of those
// that a file which may lack them has: one that names sidecars, or a sidecar
// with nothing but removes.
func (p *checkpointPart) withoutAdds() bool {
	has := func(leaf ...string) bool {
		_, ok := p.file.Schema().Lookup(leaf...)
		return ok
	}
	return !has("add", "path") && !has("add", "size") && (has("sidecar", "path") || has("remove", "path"))
}

// errV2Checkpoint refuses a checkpoint whose content follows the V2 spec.
func errV2Checkpoint() error {
	return fault.New(ErrUnsupported, "the checkpoint is of the kind that table feature v2Checkpoint allows, "+
		"which is not made into another one")
}

// checkClassic refuses V2 content, which is recognised by what the file holds
// and not by its name: its file actions may lie in sidecars.
func (p *checkpointPart) checkClassic(rowGroup int) error {
	found := false
	err := p.rowGroup(rowGroup, func(g *rowGroupColumns) error {
		note := func(int64) { found = true }
		return errors.Join(
			g.long("checkpointMetadata", "version").present(note), g.text("sidecar", "path").present(note), g.err)
	})
	if err == nil && found {
		return errV2Checkpoint()
	}
	return err
}

// failCheckpoint adds to err which checkpoint file it is about.
func failCheckpoint(err error, version int64, name string) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	kind := errors.Join(ErrCorrupt, errCheckpoint)
	if errors.Is(err, ErrUnsupported) {
		kind = errors.Join(ErrUnsupported, errCheckpoint)
	}
	return fault.Wrap(kind, err, "the checkpoint does not read").AtVersion(version).InFile(path.Base(name))
}

// readState reads protocol, metadata, transactions and domains of a
// checkpoint, and notes the sidecars that it names. A checkpoint that lacks the
// first or the second is corrupt for good, because what else it lacks cannot be
// known: then the error does not wrap errCheckpoint.
func (c *checkpointFile) readState(ctx context.Context, st store.Store) (*header, error) {
	b, named := headerBuilder{next: &header{version: c.version}}, &sidecars{}
	for _, info := range c.parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.readPartState(ctx, st, info.Name, &b, named); err != nil {
			return nil, failCheckpoint(err, c.version, info.Name)
		}
	}
	h, err := b.finish()
	if err != nil {
		return nil, fault.Wrap(ErrCorrupt, err, "the checkpoint is incomplete").AtVersion(c.version).
			InFile(path.Base(c.parts[0].Name)).
			WithHint("remove the checkpoint, or have the engine that wrote it write it again")
	}
	c.named = named
	return h, nil
}

func (c *checkpointFile) readPartState(ctx context.Context, st store.Store, name string, b *headerBuilder, named *sidecars) error {
	apply := func(a action.Action) error {
		b.apply(a)
		return errors.Join(named.apply(a), c.checkVersion(a))
	}
	if path.Ext(name) == ".json" {
		return readActions(ctx, st, name, apply)
	}
	part, err := openCheckpointPart(ctx, st, name)
	if err != nil {
		return err
	}
	defer part.close()
	for i := range part.file.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := part.rowGroup(i, func(g *rowGroupColumns) error { return readState(g, apply) }); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion refuses V2 content that says it is of another version than the
// file's name.
func (c *checkpointFile) checkVersion(a action.Action) error {
	if m, ok := a.(*action.CheckpointMetadata); ok && m.Version != c.version {
		return fmt.Errorf("it says that it is of version %d", m.Version)
	}
	return nil
}
