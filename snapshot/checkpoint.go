package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/parquet-go/parquet-go"
)

// errCheckpoint marks a checkpoint that does not read: another one, or the
// commits, may do instead.
var errCheckpoint = errors.New("checkpoint does not read")

// addBatch is how many rows of a checkpoint are decoded at a time.
const addBatch = 1024

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
			parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(1<<20))
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

// rowGroup runs f on the columns of one row group, guarded.
func (p *checkpointPart) rowGroup(number int, f func(g *rowGroupColumns, rows int64) error) error {
	return guard(func() error {
		g := newRowGroupColumns(p.file, number)
		defer g.close()
		return f(g, p.file.RowGroups()[number].NumRows())
	})
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
		if err := part.rowGroup(i, func(g *rowGroupColumns, rows int64) error {
			return readStateRows(g, rows, b.apply)
		}); err != nil {
			return err
		}
	}
	return nil
}

// numberedAdd is an add of a checkpoint and the number of its row, counted through
// all parts.
type numberedAdd struct {
	add    *action.Add
	number int64
}

// files yields the live files of the checkpoint.
func (c *checkpointFile) files(ctx context.Context, st store.Store) iter.Seq2[numberedAdd, error] {
	return func(yield func(numberedAdd, error) bool) {
		first := int64(0)
		for _, info := range c.parts {
			if !c.partFiles(ctx, st, info, &first, yield) {
				return
			}
		}
	}
}

// partFiles yields the files of one part, whose first row has the number
// first, which it advances; false when it is all over.
func (c *checkpointFile) partFiles(ctx context.Context, st store.Store, info store.Info, first *int64, yield func(numberedAdd, error) bool) bool {
	fail := func(err error) bool {
		yield(numberedAdd{}, failCheckpoint(err, c.version, info.Name))
		return false
	}
	if path.Ext(info.Name) == ".json" {
		return fail(errV2Checkpoint())
	}
	part, err := openCheckpointPart(ctx, st, info)
	if err != nil {
		return fail(err)
	}
	defer part.close()
	for i := range part.file.RowGroups() {
		for adds, err := range part.adds(ctx, i) {
			if err != nil {
				return fail(err)
			}
			for _, row := range adds {
				row.number += *first
				if !yield(row, nil) {
					return false
				}
			}
		}
		*first += part.file.RowGroups()[i].NumRows()
	}
	return true
}

// adds yields the adds of one row group in batches.
func (p *checkpointPart) adds(ctx context.Context, rowGroup int) iter.Seq2[[]numberedAdd, error] {
	return func(yield func([]numberedAdd, error) bool) {
		if err := p.checkClassic(rowGroup); err != nil {
			yield(nil, err)
			return
		}
		batches := p.newAddBatches(rowGroup)
		defer batches.close()
		for {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			adds, err := batches.next()
			if (adds == nil && err == nil) || !yield(adds, err) || err != nil {
				return
			}
		}
	}
}

// errV2Checkpoint refuses a checkpoint whose content follows the V2 spec.
func errV2Checkpoint() error {
	return fault.New(ErrUnsupported, "the checkpoint needs table feature v2Checkpoint, which is not supported")
}

// checkClassic refuses V2 content, which is recognised by what the file holds
// and not by its name: its file actions may lie in sidecars.
func (p *checkpointPart) checkClassic(rowGroup int) error {
	return p.rowGroup(rowGroup, func(g *rowGroupColumns, rows int64) error {
		for _, c := range []*cursor{g.long("checkpointMetadata", "version"), g.text("sidecar", "path")} {
			for i := int64(0); c != nil && i < rows; i++ {
				found := false
				if err := c.row(func(v *parquet.Value) { found = !c.null(v) }); err != nil {
					return err
				}
				if found {
					return errV2Checkpoint()
				}
			}
		}
		return g.err
	})
}
