package parquetfile

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/deltafs/deltafs/internal/fault"
)

// claim is a range of the file that the footer speaks for.
type claim struct {
	from, to int64
	what     string
	column   *Node
}

// claims returns all that the footer speaks for, in order; it is an error if
// two claims overlap.
func (f *File) claims(r io.ReaderAt, footerStart int64) ([]claim, error) {
	claims := []claim{
		{from: 0, to: int64(len(magic)), what: "the magic number"},
		{from: footerStart, to: f.Size, what: "the footer"},
	}
	w := &window{r: r, end: footerStart, copies: f.Size - footerStart}
	for _, g := range f.RowGroups {
		for i := range g.Chunks {
			c, leaf := &g.Chunks[i], f.columns[i]
			bloom, err := bloomSpan(r, c.bloom, footerStart)
			if err != nil {
				return nil, fmt.Errorf("bloom filter of column %q: %w", pathOf(leaf), err)
			}
			for _, s := range []struct {
				span
				what string
			}{
				{span{c.start(), c.size}, "the data"}, {c.offsetIndex, "the offset index"},
				{c.columnIndex, "the column index"}, {bloom, "the bloom filter"},
				{c.metaDataCopy(w), "the metadata"},
			} {
				if s.length == 0 || s.offset == 0 {
					continue
				}
				if s.offset < int64(len(magic)) || s.length < 0 || s.offset > footerStart || s.length > footerStart-s.offset {
					return nil, fault.New(ErrBroken, "%s lies at bytes %d to %d, outside of the file's %d", s.what, s.offset, s.offset+s.length, footerStart).
						OnColumn(pathOf(leaf))
				}
				claims = append(claims, claim{s.offset, s.offset + s.length, s.what, leaf})
			}
		}
	}
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(claims); i++ {
		a, b := claims[i-1], claims[i]
		if b.from < a.to {
			return nil, fault.New(ErrBroken, "%s and %s overlap at byte %d", a, b, b.from)
		}
	}
	return claims, nil
}

func (c claim) String() string {
	if c.column == nil {
		return c.what
	}
	return fmt.Sprintf("%s of column %q", c.what, pathOf(c.column))
}

// bloomSpan completes the span of a bloom filter whose length is missing, as
// it is from older writers: the filter's header says how much follows it.
func bloomSpan(r io.ReaderAt, s span, footerStart int64) (span, error) {
	if s.offset <= 0 || s.length > 0 {
		return s, nil
	}
	b := make([]byte, min(64, max(0, footerStart-s.offset)))
	if err := readFull(r, b, s.offset); err != nil {
		return s, err
	}
	d := newDecoder(b)
	size := d.bloomHeader()
	if d.err != nil {
		return s, fault.Wrap(ErrBroken, d.err, "the header at byte %d does not decode", s.offset)
	}
	s.length = int64(d.read()) + int64(size)
	return s, nil
}

// metaDataCopy finds the copy of a chunk's metadata that the writers of Arrow
// (C++ and Rust) and Polars leave behind the chunk: a ColumnMetaData, or a
// ColumnChunk around it. What file_offset says about it differs by writer and
// version, and so do the page offsets in it, so that the copy is known by the
// footer's words about the chunk itself.
func (c *Chunk) metaDataCopy(w *window) span {
	for _, at := range []int64{c.start() + c.size, c.fileOffset} {
		if at < c.start()+c.size || at >= w.end || c.size == 0 {
			continue
		}
		if n := c.copyAt(w, at, (*decoder).bareMetaData); n > 0 {
			return span{at, n}
		}
		if n := c.copyAt(w, at, (*decoder).columnChunk); n > 0 {
			return span{at, n}
		}
	}
	return span{}
}

// copyAt returns the length of a copy of c's metadata at off, or 0.
func (c *Chunk) copyAt(w *window, off int64, decode func(*decoder) Chunk) int64 {
	for want := 1; int64(want) <= max(windowSize, w.copies); want = max(windowSize, 4*want) {
		b, err := w.at(off, w.end, want)
		if err != nil {
			return 0
		}
		d := newDecoder(b)
		o := decode(d)
		if d.err == nil {
			if o.seen.has(columnMetaDataRequired...) && c.physical == o.physical && c.path == o.path &&
				c.Codec == o.Codec && c.NumValues == o.NumValues && c.size == o.size {
				return int64(d.read())
			}
			return 0
		}
		if !d.truncated() || int64(len(b)) >= w.end-off {
			return 0
		}
	}
	return 0
}

// checkGaps reads what no claim covers: writers pad with zeros, anything else
// is not this file's.
func checkGaps(r io.ReaderAt, claims []claim) error {
	var buf []byte
	for i := 1; i < len(claims); i++ {
		from, to := claims[i-1].to, claims[i].from
		for off := from; off < to; {
			if buf == nil {
				buf = make([]byte, 64<<10)
			}
			b := buf[:min(int64(len(buf)), to-off)]
			if err := readFull(r, b, off); err != nil {
				return err
			}
			for j, v := range b {
				if v != 0 {
					return fault.New(ErrBroken, "bytes %d to %d, between %s and %s, belong to no column: two files joined?",
						off+int64(j), to, claims[i-1], claims[i])
				}
			}
			off += int64(len(b))
		}
	}
	return nil
}
