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

func openCheckpointPart(ctx context.Context, st store.Store, info store.Info) (*checkpointPart, error) {
	object, err := st.Open(ctx, info.Name)
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

// rowGroups calls visit for each row group of the checkpoint in order, with the
// number of its first row, counted through all parts. It is over when visit
// returns an error, or false.
func (c *checkpointFile) rowGroups(ctx context.Context, st store.Store, visit func(p *checkpointPart, number int, first int64) (bool, error)) error {
	first := int64(0)
	for _, info := range c.parts {
		more, err := c.partRowGroups(ctx, st, info, &first, visit)
		if err != nil {
			return failCheckpoint(err, c.version, info.Name)
		}
		if !more {
			return nil
		}
	}
	return nil
}

func (c *checkpointFile) partRowGroups(ctx context.Context, st store.Store, info store.Info, first *int64, visit func(p *checkpointPart, number int, first int64) (bool, error)) (bool, error) {
	if path.Ext(info.Name) == ".json" {
		return false, errV2Checkpoint()
	}
	part, err := openCheckpointPart(ctx, st, info)
	if err != nil {
		return false, err
	}
	defer part.close()
	for i := range part.file.RowGroups() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if more, err := visit(part, i, *first); err != nil || !more {
			return false, err
		}
		*first += part.file.RowGroups()[i].NumRows()
	}
	return true, nil
}

// errV2Checkpoint refuses a checkpoint whose content follows the V2 spec.
func errV2Checkpoint() error {
	return fault.New(ErrUnsupported, "the checkpoint needs table feature v2Checkpoint, which is not supported")
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
// checkpoint. A checkpoint that lacks the first or the second is corrupt for
// good, because what else it lacks cannot be known: then the error does not
// wrap errCheckpoint.
func (c *checkpointFile) readState(ctx context.Context, st store.Store) (*header, error) {
	b := headerBuilder{next: &header{version: c.version}}
	for _, info := range c.parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.readPartState(ctx, st, info, &b); err != nil {
			return nil, failCheckpoint(err, c.version, info.Name)
		}
	}
	h, err := b.finish()
	if err != nil {
		return nil, fault.Wrap(ErrCorrupt, err, "the checkpoint is incomplete").AtVersion(c.version).
			InFile(path.Base(c.parts[0].Name)).
			WithHint("remove the checkpoint, or have the engine that wrote it write it again")
	}
	return h, nil
}

func (c *checkpointFile) readPartState(ctx context.Context, st store.Store, info store.Info, b *headerBuilder) error {
	if path.Ext(info.Name) == ".json" {
		return readActions(ctx, st, info.Name, func(a action.Action) error {
			b.apply(a)
			return nil
		})
	}
	part, err := openCheckpointPart(ctx, st, info)
	if err != nil {
		return err
	}
	defer part.close()
	for i := range part.file.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := part.rowGroup(i, func(g *rowGroupColumns) error { return readState(g, b.apply) }); err != nil {
			return err
		}
	}
	return nil
}
