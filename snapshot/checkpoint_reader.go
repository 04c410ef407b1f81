package snapshot

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/parquet-go/parquet-go"
)

// Checkpoint is an opened classic checkpoint. It is read a row group at a time,
// by whoever makes the next one of it. It is not safe for concurrent use.
type Checkpoint struct {
	file   checkpointFile
	header *header
	parts  []*checkpointPart
}

// OpenCheckpoint opens the newest checkpoint that reads and from which the
// commits lead to version v; nil if they have to be read from version 0 on. It
// goes by the log as it was last listed.
func (t *Table) OpenCheckpoint(ctx context.Context, v int64) (*Checkpoint, error) {
	life, err := t.current()
	if err != nil {
		return nil, err
	}
	l := life.log()
	if err := l.check(v); err != nil {
		return nil, t.fault(err)
	}
	var failed error
	for _, c := range l.checkpointsUpTo(v) {
		if !l.contiguous(c.version+1, v) {
			break
		}
		out, err := openCheckpoint(ctx, t.store, c)
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, errCheckpoint) {
			return nil, t.fault(err)
		}
		t.log.Warn("checkpoint passed over", "op", "checkpoint", "table", t.name, "version", c.version, "err", err)
		if failed == nil {
			failed = err
		}
	}
	if !l.contiguous(0, v) {
		return nil, t.fault(failed)
	}
	return nil, nil
}

// OpenCheckpointDraft opens the checkpoint of a version that is written and has
// no name yet. Closing the checkpoint leaves the file open.
func (t *Table) OpenCheckpointDraft(ctx context.Context, f *os.File, version int64) (*Checkpoint, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	d := draftObject{f, f, store.Info{Name: CheckpointName(version), Size: info.Size()}}
	c, err := openCheckpoint(ctx, draftStore{t.store, d}, checkpointFile{version: version, parts: []store.Info{d.info}})
	return c, t.fault(err)
}

// draftStore is a store that has a draft under its future name.
type draftStore struct {
	store.Store
	draft draftObject
}

func (s draftStore) Open(context.Context, string) (store.Object, error) { return s.draft, nil }

// draftObject is an opened draft.
type draftObject struct {
	io.ReaderAt
	file *os.File
	info store.Info
}

func (d draftObject) Close() error     { return nil }
func (d draftObject) Info() store.Info { return d.info }
func (d draftObject) File() *os.File   { return d.file }

func openCheckpoint(ctx context.Context, st store.Store, file checkpointFile) (*Checkpoint, error) {
	h, err := file.readState(ctx, st)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{file: file, header: h}
	for _, info := range file.parts {
		if path.Ext(info.Name) == ".json" {
			err = errV2Checkpoint()
		} else {
			err = c.open(ctx, st, info)
		}
		if err != nil {
			c.Close()
			return nil, failCheckpoint(err, file.version, info.Name)
		}
	}
	return c, nil
}

// open opens a part, which must follow the V1 spec.
func (c *Checkpoint) open(ctx context.Context, st store.Store, info store.Info) error {
	part, err := openCheckpointPart(ctx, st, info.Name)
	if err != nil {
		return err
	}
	c.parts = append(c.parts, part)
	for _, name := range []string{"path", "size"} {
		// A checkpoint without files has the columns all the same: without them,
		// files that are there would go unseen.
		if _, ok := part.file.Schema().Lookup("add", name); !ok {
			return errors.New("it has no column add." + name)
		}
	}
	for i := range part.file.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := part.checkClassic(i); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the files.
func (c *Checkpoint) Close() {
	for _, p := range c.parts {
		p.close()
	}
}

// Version is the version of the table that the checkpoint holds.
func (c *Checkpoint) Version() int64 { return c.file.version }

// Protocol and Metadata are shared: callers must not change them.
func (c *Checkpoint) Protocol() *action.Protocol { return c.header.protocol }

// Metadata is the table metadata.
func (c *Checkpoint) Metadata() *action.Metadata { return c.header.metadata }

// Txns returns the last transaction of every application.
func (c *Checkpoint) Txns() map[string]*action.Txn { return c.header.txns.all() }

// Domains returns the domain metadata by domain.
func (c *Checkpoint) Domains() map[string]*action.DomainMetadata { return c.header.domains.all() }

// Groups returns the row groups, in order.
func (c *Checkpoint) Groups() []*CheckpointGroup {
	var out []*CheckpointGroup
	for i, p := range c.parts {
		for number := range p.file.RowGroups() {
			out = append(out, &CheckpointGroup{c, p, c.file.parts[i].Name, number})
		}
	}
	return out
}

// CheckpointGroup is one row group of a checkpoint.
type CheckpointGroup struct {
	checkpoint *Checkpoint
	part       *checkpointPart
	name       string
	number     int
}

// Parquet is the row group itself, to be copied as it is.
func (g *CheckpointGroup) Parquet() parquet.RowGroup { return g.part.file.RowGroups()[g.number] }

// Bytes is the size of the row group before compression.
func (g *CheckpointGroup) Bytes() int64 {
	return g.part.file.Metadata().RowGroups[g.number].TotalByteSize
}

// rowBatch is how many rows are read at a time.
const rowBatch = 1024

// Files yields the file actions without what describes the files. Their
// strings are valid until the next one.
func (g *CheckpointGroup) Files(ctx context.Context) iter.Seq2[CheckpointFile, error] {
	return fileActions(ctx, g, identities)
}

// Adds yields the add actions, complete.
func (g *CheckpointGroup) Adds(ctx context.Context) iter.Seq2[*action.Add, error] {
	return fileActions(ctx, g, addActions)
}

// Removes yields the remove actions, complete but for what no checkpoint has.
func (g *CheckpointGroup) Removes(ctx context.Context) iter.Seq2[*action.Remove, error] {
	return fileActions(ctx, g, removeActions)
}

// fileActions yields what a reader finds. Rows are read a batch at a time, so
// that no foreign code runs inside guard.
func fileActions[T any](ctx context.Context, g *CheckpointGroup, open func(*rowGroupColumns) rowReader[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		columns, err := g.part.columns(g.number)
		defer g.part.closeColumns(columns)
		var read rowReader[T]
		if err == nil {
			err = guard(func() error { read = open(columns); return columns.err })
		}
		var batch []T
		for row, n := int64(0), g.Parquet().NumRows(); err == nil && row < n; row += rowBatch {
			if err = ctx.Err(); err != nil {
				break
			}
			runtime.Gosched() // this is background work, and long
			err = guard(func() (err error) {
				columns.release()
				batch, err = read(batch[:0], row, int(min(rowBatch, n-row)))
				return err
			})
			for i := 0; err == nil && i < len(batch); i++ {
				if !yield(batch[i], nil) {
					return
				}
			}
		}
		if err != nil {
			var none T
			yield(none, g.fail(err))
		}
	}
}

func (g *CheckpointGroup) fail(err error) error {
	return failCheckpoint(err, g.checkpoint.Version(), g.name)
}

// Unknown returns the name of a column that holds a value and that this program
// does not know, "" without one: whoever makes the next checkpoint would lose
// it.
func (g *CheckpointGroup) Unknown() (string, error) {
	found := ""
	err := g.part.rowGroup(g.number, func(cols *rowGroupColumns) error {
		for _, leaf := range g.part.file.Schema().Columns() {
			if found != "" || knownCheckpointColumn(leaf) {
				continue
			}
			values, err := holdsValue(cols, leaf)
			if err != nil {
				return err
			}
			if values {
				found = strings.Join(leaf, ".")
			}
		}
		return nil
	})
	if err != nil {
		return "", g.fail(err)
	}
	return found, nil
}

// holdsValue reports whether a leaf is not null in some row.
func holdsValue(g *rowGroupColumns, leaf []string) (bool, error) {
	col := g.column(leaf...)
	pages := g.chunks[col.Index()].Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		some := page.NumNulls() < page.NumValues()
		parquet.Release(page)
		if some {
			return true, nil
		}
	}
}
