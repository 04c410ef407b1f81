package parquetchunk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/parquet-go/parquet-go/format"
)

// Measure sets the source's Uncompressed to what the headers of its pages add up
// to, if the footer's cannot be believed: there are writers that say 0, or the
// compressed size, and more than the codec can make of the bytes is a lie. It
// reads nothing otherwise.
func (j *Job) Measure(ctx context.Context, r io.ReaderAt) error {
	s := &j.Source
	if s.Codec == format.Uncompressed {
		s.Uncompressed = min(s.Uncompressed, s.Length)
		return nil
	}
	most, limited := densest[s.Codec]
	tooMuch := limited && s.Uncompressed/int64(most) > s.Length
	if !tooMuch && s.Uncompressed != s.Length && s.Uncompressed >= s.Length/2 {
		return nil
	}
	if err := j.check(); err != nil {
		return j.failed(err)
	}
	return j.run(r, nil, func(c *chunk) error {
		var sum, values int64
		for values < s.NumValues {
			if err := ctx.Err(); err != nil {
				return err
			}
			begin := c.pages.left
			h, err := c.pages.header()
			if err == nil {
				sum += begin - c.pages.left + int64(h.uncompressed)
				err = c.pages.skip(h)
			}
			if err != nil {
				return err
			}
			if h.kind == format.DataPage || h.kind == format.DataPageV2 {
				values += int64(h.count)
			}
		}
		if tooMuch {
			s.Uncompressed = 0
		}
		s.Uncompressed = max(s.Uncompressed, sum)
		return nil
	})
}

// CountValues is the number of values, nulls and empty lists included, of the
// new chunk. It reads pages only for a repeated column that loses rows or that
// nulls are made of.
func (j *Job) CountValues(ctx context.Context, r io.ReaderAt) (n int64, err error) {
	if err := j.check(); err != nil {
		return 0, j.failed(err)
	}
	s := &j.Source
	deleted := countDeleted(j.Deleted, s)
	deepest := s.MaxRepetition
	if j.Nulls != nil {
		deepest = min(deepest, j.Nulls.Repetition)
	}
	switch {
	case deepest == 0:
		return s.NumRows - deleted, nil
	case deleted == 0 && deepest == s.MaxRepetition:
		return s.NumValues, nil
	}
	err = j.run(r, nil, func(c *chunk) error {
		c.deepest = byte(deepest)
		err := c.each(ctx, c.count)
		n = c.written
		return err
	})
	return n, err
}

// Render writes the chunk's region to w from offset 0 on: the pages, and the
// header of the empty page that takes the rest. The rest itself, which is
// zeros, is not written.
func (j *Job) Render(ctx context.Context, r io.ReaderAt, w io.WriterAt) error {
	if err := j.check(); err != nil {
		return j.failed(err)
	}
	to := &writer{WriterAt: w}
	return j.run(r, to, func(c *chunk) (err error) {
		c.to = newRegion(to, j.bound())
		if j.Nulls != nil {
			c.nulls = newNulls(j.Nulls, c.to)
			if err = c.each(ctx, c.addNulls); err == nil {
				err = c.nulls.flush()
			}
		} else {
			if c.values, err = newValues(j); err == nil {
				err = c.each(ctx, c.write)
			}
		}
		if err != nil {
			return err
		}
		return c.to.finish(to)
	})
}

// run calls f with the source's chunk and says what its error means: what r and
// w return is returned as it is.
func (j *Job) run(r io.ReaderAt, w *writer, f func(c *chunk) error) (err error) {
	from := &reader{ReaderAt: r}
	c := &chunk{job: j, s: &j.Source, pages: newPages(&j.Source, from), del: newDeletions(j.Deleted, &j.Source)}
	defer c.pages.unpacker.close()
	defer func() {
		if p := recover(); p != nil {
			err = j.failed(fmt.Errorf("%w: %v", errPage, p))
		}
	}()
	err = f(c)
	switch {
	case err == nil:
		return nil
	case from.err != nil:
		return from.err
	case w != nil && w.err != nil:
		return w.err
	}
	return j.failed(err)
}

// failed wraps an error of this package.
func (j *Job) failed(err error) error {
	s := &j.Source
	for _, unsupported := range []error{errCodec, errEncoding, errLevels, errLarge, errConversion, errRange} {
		if errors.Is(err, unsupported) {
			return fault.Wrap(ErrUnsupported, err, "the column chunk at byte %d", s.Offset).OnColumn(s.Column)
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(ErrBroken, err, "the column chunk at bytes %d to %d", s.Offset, s.Offset+s.Length).OnColumn(s.Column)
}

// reader and writer remember an error, to tell it from what is wrong with pages.
type reader struct {
	io.ReaderAt
	err error
}

func (r *reader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, off)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

type writer struct {
	io.WriterAt
	err error
}

func (w *writer) WriteAt(b []byte, off int64) (int, error) {
	n, err := w.WriterAt.WriteAt(b, off)
	if err != nil {
		w.err = err
	}
	return n, err
}

// chunk goes through the pages of the source.
type chunk struct {
	job   *Job
	s     *Source
	pages *pages
	del   *deletions
	// rows and entries were passed; kept says that the last of the rows is kept.
	rows, entries int64
	kept          bool
	dictionary    bool
	// written counts the entries of the new chunk.
	written int64

	// deepest is the highest repetition level that count counts.
	deepest byte
	to      *region
	values  *values
	nulls   *nulls

	hybrid     hybridWriter
	def, rep   []byte
	entrySpans []span
	valueSpans []span
	one        [1]span
	out        []byte
}

// each calls data for the header of every data page; dictionaries are written.
func (c *chunk) each(ctx context.Context, data func(header) error) error {
	for c.entries < c.s.NumValues {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := c.pages.at()
		h, err := c.pages.header()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = c.page(h, data)
		}
		if err != nil {
			return fmt.Errorf("the page at byte %d: %w", at, err)
		}
	}
	switch {
	case c.entries != c.s.NumValues:
		return fmt.Errorf("%w: its pages have %d values, the footer says %d", errPage, c.entries, c.s.NumValues)
	case c.rows != c.s.NumRows && (c.del != nil || c.nulls != nil || c.s.MaxRepetition == 0):
		return fmt.Errorf("%w: its pages have %d rows, the row group %d", errPage, c.rows, c.s.NumRows)
	}
	return nil
}

func (c *chunk) page(h header, data func(header) error) error {
	switch h.kind {
	case format.DataPage, format.DataPageV2:
		if int64(h.count) > c.s.NumValues-c.entries {
			return fmt.Errorf("%w: it has more values than the footer says", errPage)
		}
		err := data(h)
		c.entries += int64(h.count)
		return err
	case format.DictionaryPage:
		if c.dictionary || c.entries > 0 {
			return fmt.Errorf("%w: a second or late dictionary", errPage)
		}
		c.dictionary = true
		if c.values != nil {
			return c.writeDictionary(h)
		}
		return c.pages.skip(h)
	case format.IndexPage:
		return c.pages.skip(h)
	}
	return fmt.Errorf("%w: of the unknown kind %d", errPage, h.kind)
}

func (c *chunk) writeDictionary(h header) error {
	g, err := c.pages.load(h, true)
	if err != nil {
		return err
	}
	if c.values.convert == nil {
		return c.to.page(g.header, g.raw)
	}
	c.one[0] = span{0, h.count}
	e := h.encoding
	if e == plainDictionary {
		e = format.Plain
	}
	out, _, err := c.values.filter(c.out[:0], g.raw, e, h.count, c.one[:])
	if err != nil {
		return err
	}
	c.out = out
	return c.to.page(g.header, out)
}

// write writes a data page without the rows that are deleted, converted.
func (c *chunk) write(h header) error {
	g, spans, err := c.load(h, true)
	if err != nil {
		return err
	}
	n := length(spans)
	switch {
	case n == h.count && (c.values.convert == nil || isDictionary(h.encoding)):
		return c.to.page(g.header, g.raw)
	case n == 0:
		return nil
	}
	out, err := c.writeLevels(&g, spans)
	if err != nil {
		return err
	}
	total, kept := h.count, spans
	if c.s.MaxDefinition > 0 {
		if c.def, err = levels(c.def, g.def, h.count, c.s.MaxDefinition); err != nil {
			return err
		}
		highest := byte(c.s.MaxDefinition)
		c.valueSpans = valueSpans(c.valueSpans[:0], spans, c.def, highest)
		kept, total = c.valueSpans, countLevel(c.def, highest)
		g.nulls = n - length(kept)
	}
	if out, g.encoding, err = c.values.filter(out, g.values, g.encoding, total, kept); err != nil {
		return err
	}
	c.out = out
	g.count = n
	return c.to.page(g.header, out)
}

// writeLevels appends the levels of spans of entries to what becomes of a page.
func (c *chunk) writeLevels(g *page, spans []span) (out []byte, err error) {
	out = c.out[:0]
	for _, level := range []struct {
		hybrid  []byte
		highest int
		bytes   *int
	}{{g.rep, c.s.MaxRepetition, &g.repBytes}, {g.def, c.s.MaxDefinition, &g.defBytes}} {
		width := bits.Len(uint(level.highest))
		at := len(out)
		switch {
		case level.highest == 0:
		case g.kind == format.DataPageV2:
			out, err = c.hybrid.filter(out, level.hybrid, width, g.count, spans)
		default:
			out, err = appendPrefixed(&c.hybrid, out, level.hybrid, width, g.count, spans)
		}
		if err != nil {
			return nil, err
		}
		*level.bytes = len(out) - at
	}
	return out, nil
}

// count counts the entries of a data page that are kept.
func (c *chunk) count(h header) error {
	all := c.deepest == byte(c.s.MaxRepetition)
	if all && h.kind == format.DataPageV2 && c.rows+int64(h.rows) <= c.del.next {
		c.rows += int64(h.rows)
		c.kept = true
		c.written += int64(h.count)
		return c.pages.skip(h)
	}
	g, spans, err := c.load(h, false)
	if err != nil {
		return err
	}
	if all {
		c.written += int64(length(spans))
		return nil
	}
	if c.rep, err = levels(c.rep, g.rep, h.count, c.s.MaxRepetition); err != nil {
		return err
	}
	for _, s := range spans {
		for _, level := range c.rep[s.from:s.to] {
			if level <= c.deepest {
				c.written++
			}
		}
	}
	return nil
}

// addNulls adds the entries of a data page to the column of nulls.
func (c *chunk) addNulls(h header) error {
	g, spans, err := c.load(h, false)
	if err != nil {
		return err
	}
	var def, rep []byte
	if c.s.MaxDefinition > 0 {
		if c.def, err = levels(c.def, g.def, h.count, c.s.MaxDefinition); err != nil {
			return err
		}
		def = c.def
	}
	if c.s.MaxRepetition > 0 {
		if c.rep, err = levels(c.rep, g.rep, h.count, c.s.MaxRepetition); err != nil {
			return err
		}
		if rep = c.rep; c.del == nil {
			c.rows += int64(countLevel(rep, 0))
		}
	}
	return c.nulls.add(def, rep, spans)
}

// load unpacks a page, with its values or without, and finds the spans of its
// entries that are kept.
func (c *chunk) load(h header, values bool) (g page, spans []span, err error) {
	if g, err = c.pages.load(h, values); err != nil {
		return g, nil, err
	}
	spans, err = c.keep(&g)
	return g, spans, err
}

// keep returns the spans of a page's entries that are kept, and sets the number
// of its rows to those.
func (c *chunk) keep(g *page) (spans []span, err error) {
	all := []span{{0, g.count}}
	spans = c.entrySpans[:0]
	switch {
	case c.s.MaxRepetition == 0:
		rows := g.count
		if c.del == nil {
			spans = append(spans, all...)
		} else {
			spans = c.del.keep(spans, c.rows, rows)
		}
		c.rows += int64(rows)
		g.rows = length(spans)
	case c.del == nil:
		spans = append(spans, all...)
	case g.kind == format.DataPageV2 && c.rows+int64(g.rows) <= c.del.next:
		// Such a page begins and ends with a row.
		spans = append(spans, all...)
		c.rows += int64(g.rows)
		c.kept = true
	default:
		if c.rep, err = levels(c.rep, g.rep, g.count, c.s.MaxRepetition); err != nil {
			return nil, err
		}
		rows := countLevel(c.rep, 0)
		if c.rows == 0 && len(c.rep) > 0 && c.rep[0] != 0 {
			return nil, fmt.Errorf("%w: its first entry goes on with a row that has not begun", errPage)
		}
		before := c.del.passed
		spans, c.kept = c.del.keepRepeated(spans, c.rows, c.kept, c.rep)
		c.rows += int64(rows)
		g.rows = rows - int(c.del.passed-before)
	}
	c.entrySpans = spans
	return spans, nil
}
