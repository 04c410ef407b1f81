package parquetfile

import (
	"encoding/binary"
	"io"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// windowSize is read at once for page headers, which are short: the pages
	// between them are skipped.
	windowSize = 4 << 10
	// maxPageHeader bounds a page header, which may hold a minimum and a
	// maximum of any length.
	maxPageHeader = 16 << 20
)

// walk goes through the page headers of a chunk and compares them with the
// footer.
func (f *File) walk(w *window, g *RowGroup, column int) error {
	c, leaf := &g.Chunks[column], f.columns[column]
	var values, rows int64
	onlyV2, dictionary, firstData := true, false, int64(-1)
	pos, end := c.start(), c.start()+c.size
	if c.size == 0 {
		end = pos
	}
	for pos < end {
		broken := func(format string, args ...any) error {
			return fault.New(ErrBroken, format, args...).OnColumn(pathOf(leaf))
		}
		h, n, err := w.pageHeader(pos, end)
		switch {
		case err != nil:
			return onColumn(err, leaf)
		case h.compressed < 0 || h.uncompressed < 0 || int64(h.compressed) > end-pos-n:
			return broken("the page at byte %d, %d bytes long, does not fit into its chunk, which ends at byte %d", pos, h.compressed, end)
		case h.values < 0:
			return broken("the page at byte %d has no value count, or an unknown type (%d)", pos, h.kind)
		}
		switch h.kind {
		case format.IndexPage:
			c.skipped = true
		case format.DictionaryPage:
			if dictionary || firstData >= 0 {
				return broken("a second or late dictionary at byte %d", pos)
			}
			dictionary = true
		case format.DataPage:
			onlyV2 = false
		case format.DataPageV2:
			if h.rows < 0 || h.nulls < 0 || h.nulls > h.values || h.rows > h.values || h.levels > int64(h.compressed) {
				return broken("the page at byte %d contradicts itself", pos)
			}
			rows += int64(h.rows)
		}
		if h.kind == format.DataPage || h.kind == format.DataPageV2 {
			values += int64(h.values)
			if firstData < 0 {
				firstData = pos
			}
		}
		c.mostValues = max(c.mostValues, h.values)
		c.largest = max(c.largest, int64(h.compressed), int64(h.uncompressed), w.snappyLength(c.Codec, h, pos+n))
		pos += n + int64(h.compressed)
	}
	switch {
	case values != c.NumValues:
		return fault.New(ErrBroken, "its pages at bytes %d to %d have %d values, the footer says %d", c.start(), end, values, c.NumValues).OnColumn(pathOf(leaf))
	case onlyV2 && rows != g.NumRows && values > 0:
		return fault.New(ErrBroken, "its pages have %d rows, the row group %d", rows, g.NumRows).OnColumn(pathOf(leaf))
	case values > 0 && c.dataPage != firstData && c.dataPage != c.start():
		return fault.New(ErrBroken, "its data begins at byte %d, the footer says %d", firstData, c.dataPage).OnColumn(pathOf(leaf))
	}
	return nil
}

func onColumn(err error, leaf *Node) error {
	if e, ok := err.(*fault.Error); ok {
		return e.OnColumn(pathOf(leaf))
	}
	return err
}

// window reads small pieces of a file that lie close to each other.
type window struct {
	r   io.ReaderAt
	end int64
	off int64
	buf []byte
	// copies bounds a copy of something in the footer: the footer's size.
	copies int64
}

// at returns the bytes from off on that are at hand, at least min of them if
// the file has so many before limit.
func (w *window) at(off, limit int64, min int) ([]byte, error) {
	have := w.off + int64(len(w.buf)) - off
	if off < w.off || have <= 0 || have < int64(min) && off+have < limit {
		n := int64(max(min, windowSize))
		if n > w.end-off {
			n = w.end - off
		}
		if int64(cap(w.buf)) < n || cap(w.buf) > 16*windowSize && n <= windowSize {
			w.buf = make([]byte, n)
		}
		w.off, w.buf = off, w.buf[:n]
		if err := readFull(w.r, w.buf, off); err != nil {
			w.buf = w.buf[:0]
			return nil, err
		}
	}
	b := w.buf[off-w.off:]
	if int64(len(b)) > limit-off {
		b = b[:limit-off]
	}
	return b, nil
}

// pageHeader decodes the header at off and returns its length; limit is where
// the chunk ends.
func (w *window) pageHeader(off, limit int64) (pageHeader, int64, error) {
	for want := 1; ; want = max(windowSize, 4*want) {
		b, err := w.at(off, limit, want)
		if err != nil {
			return pageHeader{}, 0, err
		}
		d := newDecoder(b)
		h := d.pageHeader()
		switch {
		case d.err == nil:
			return h, int64(d.read()), nil
		case d.truncated() && int64(len(b)) < limit-off && len(b) < maxPageHeader:
			continue
		}
		return pageHeader{}, 0, fault.Wrap(ErrBroken, d.err, "no page header at byte %d", off)
	}
}

// snappyLength is what a Snappy page says that it unpacks to; the library
// believes it.
func (w *window) snappyLength(codec format.CompressionCodec, h pageHeader, off int64) int64 {
	if codec != format.Snappy || h.plain || int64(h.compressed) <= h.levels {
		return 0
	}
	off += h.levels
	b, err := w.at(off, w.end, binary.MaxVarintLen32)
	if err != nil {
		return maxUnpacked + 1
	}
	n, _ := binary.Uvarint(b[:min(len(b), binary.MaxVarintLen32)])
	return int64(n)
}
