package parquetview

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// magic ends a file.
const magic = "PAR1"

// Plan decides how a file of this size is served. It reads the footer; data only
// to count the values of repeated columns that lose rows, and headers of pages
// whose sizes the footer gets wrong. The errors are those of this package and of
// package parquetchunk, ctx's, and those of r.
func Plan(ctx context.Context, r io.ReaderAt, size int64, w Wanted) (view *View, err error) {
	defer func() {
		if p := recover(); p != nil {
			view, err = nil, fault.New(ErrBroken, "the footer makes no sense: %v", p)
		}
	}()
	foot, err := parquetfile.ReadFooter(r, size)
	switch {
	case errors.Is(err, parquetfile.ErrNotYet), errors.Is(err, parquetfile.ErrBroken):
		return nil, fault.Wrap(ErrBroken, err, "no whole Parquet file")
	case err != nil:
		return nil, err
	case foot.Encrypted:
		return nil, fault.New(ErrUnsupported, "the file is encrypted")
	}
	if w.Deleted != nil && w.Deleted.IsEmpty() {
		w.Deleted = nil
	}
	if w.Deleted != nil && w.Deleted.Maximum() >= uint64(foot.NumRows) {
		return nil, fault.New(ErrBroken, "row %d is deleted, but the file has %d rows", w.Deleted.Maximum(), foot.NumRows)
	}
	columns, changed, err := match(foot, w.Columns)
	if err != nil {
		return nil, err
	}
	if !changed && w.Deleted == nil && inOrder(columns, foot) && hintsAgree(foot, w.Columns) {
		return &View{Raw: true, Size: size, NumRows: foot.NumRows}, nil
	}
	p := planner{
		r: r, foot: foot, schema: newSchema(foot, columns), deleted: w.Deleted,
		repeated: repeatedAround(foot.Root), tail: layout{end: foot.Start},
	}
	first := int64(0)
	for i, g := range foot.RowGroups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.group(ctx, i, first); err != nil {
			return nil, err
		}
		first += g.NumRows
	}
	return p.view()
}

// inOrder reports whether the columns are all those of the file, in its order.
func inOrder(columns []*node, foot *parquetfile.Footer) bool {
	next := 0
	var walk func(nodes []*node) bool
	walk = func(nodes []*node) bool {
		for _, n := range nodes {
			if c := n.column; c != nil {
				if c.source == nil || c.source.Column != next {
					return false
				}
				next++
			}
			if !walk(n.children) {
				return false
			}
		}
		return true
	}
	return walk(columns) && next == len(foot.Columns())
}

// view puts the footer behind the row groups.
func (p *planner) view() (*View, error) {
	var w structWriter
	w.i32(1, p.foot.Version)
	w.list(2, thrift.STRUCT, p.schema.elements)
	w.i64(3, p.numRows)
	w.list(4, thrift.STRUCT, p.groups)
	if kept := withoutHints(p.foot.KeyValues); len(kept) > 0 {
		w.list(5, thrift.STRUCT, kept)
	}
	if p.foot.CreatedBy != "" {
		w.bytes(6, []byte(p.foot.CreatedBy))
	}
	if orders := p.schema.orders(); orders != nil {
		w.list(7, thrift.STRUCT, orders)
	}
	foot := w.end()
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(foot)))
	p.tail.bytes(append(foot, magic...))
	whole := original(p.foot.Start, p.live)
	whole.segments = append(whole.segments, p.tail.segments...)
	return &View{Size: p.tail.end, NumRows: p.numRows, Segments: whole.segments}, nil
}

func pathOf(n *parquetfile.Node) string { return strings.Join(n.Path, ".") }

// Render writes all of a served file to out; r is the file that it was planned
// for.
func (v *View) Render(ctx context.Context, r io.ReaderAt, out io.WriterAt) error {
	if v.Raw {
		return copyRange(out, 0, r, 0, v.Size)
	}
	for _, s := range v.Segments {
		var err error
		switch {
		case s.Raw:
			err = copyRange(out, s.Offset, r, s.RawOffset, s.Length)
		case s.Bytes != nil:
			_, err = out.WriteAt(s.Bytes, s.Offset)
		case s.Chunk != nil:
			err = s.Chunk.Render(ctx, r, io.NewOffsetWriter(out, s.Offset))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyRange(out io.WriterAt, at int64, r io.ReaderAt, offset, length int64) error {
	n, err := io.Copy(io.NewOffsetWriter(out, at), io.NewSectionReader(r, offset, length))
	if err == nil && n != length {
		err = fmt.Errorf("read %d bytes at %d: %w", length, offset, io.ErrUnexpectedEOF)
	}
	return err
}
