package parquetfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// maxUnpacked and maxPageValues bound a page that is read: in bytes, and
	// in values, which may be more than bytes (a run of nulls).
	maxUnpacked   = 256 << 20
	maxPageValues = 64 << 20
	// scanBuffer is read at once, and scanBatch values decoded at once.
	scanBuffer = 256 << 10
	scanBatch  = 512
)

// Value is a value of a column with its levels. Its bytes are valid until the
// next value is read.
type Value = parquet.Value

// Scanner reads the values of a file's columns. It is not safe for concurrent
// use.
type Scanner struct {
	f    *File
	r    *errorReader
	file *parquet.File
	err  error
}

// NewScanner returns a Scanner over r, the bytes that f was checked on.
func (f *File) NewScanner(r io.ReaderAt) *Scanner {
	return &Scanner{f: f, r: &errorReader{r: r}}
}

// Levels counts the entries of a column by definition level.
type Levels struct {
	// All counts every entry, Rows only those that begin a row.
	All, Rows []int64
}

// Each calls visit for every entry of a column, nulls included, in order. The
// errors are visit's, [ErrUnreadable], ctx's, and those of the reader.
func (s *Scanner) Each(ctx context.Context, leaf *Node, visit func(Value) error) error {
	_, err := s.scan(ctx, leaf, visit)
	return err
}

// Levels reads the levels of a column. Errors as of Each.
func (s *Scanner) Levels(ctx context.Context, leaf *Node) (Levels, error) {
	return s.scan(ctx, leaf, nil)
}

func (s *Scanner) scan(ctx context.Context, leaf *Node, visit func(Value) error) (Levels, error) {
	sum := newLevels(leaf)
	for i := range s.f.RowGroups {
		l, err := s.chunk(ctx, i, leaf, visit)
		if err != nil {
			return sum, err
		}
		sum.add(l)
	}
	return sum, nil
}

func newLevels(leaf *Node) Levels {
	n := leaf.MaxDefinition + 1
	return Levels{All: make([]int64, n), Rows: make([]int64, n)}
}

func (l Levels) add(o Levels) {
	for i := range l.All {
		l.All[i] += o.All[i]
		l.Rows[i] += o.Rows[i]
	}
}

// chunk reads one chunk; without visit only its levels.
func (s *Scanner) chunk(ctx context.Context, group int, leaf *Node, visit func(Value) error) (l Levels, err error) {
	c := &s.f.RowGroups[group].Chunks[leaf.Column]
	l = newLevels(leaf)
	if c.NumValues == 0 {
		return l, nil
	}
	if visit == nil && leaf.MaxDefinition == 0 {
		l.All[0], l.Rows[0] = c.NumValues, c.NumValues
		return l, nil
	}
	if err := c.readable(); err != nil {
		return l, err.OnColumn(pathOf(leaf))
	}
	err = s.guard(func() error { return s.pages(ctx, group, leaf, l, visit) })
	if err == nil && sumOf(l.All) != c.NumValues {
		err = fmt.Errorf("found %d values instead of %d", sumOf(l.All), c.NumValues)
	}
	var stop *stopError
	switch {
	case err == nil:
		return l, nil
	case errors.As(err, &stop):
		return l, stop.err
	case ctx.Err() != nil:
		return l, ctx.Err()
	case s.r.err != nil:
		return l, s.r.err
	}
	return l, fault.Wrap(ErrUnreadable, err, "its values do not decode").OnColumn(pathOf(leaf))
}

// stopError carries what visit returned past everything in between.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }

// readable says why a chunk is not read: the codec, or its page sizes.
func (c *Chunk) readable() *fault.Error {
	switch c.Codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
	default:
		// The library unpacks LZ4_RAW wrongly, and does not know the others.
		return fault.New(ErrUnreadable, "compression %v cannot be read", c.Codec)
	}
	switch {
	case c.skipped:
		return fault.New(ErrUnreadable, "index pages cannot be read")
	case c.largest > maxUnpacked || c.mostValues > maxPageValues:
		return fault.New(ErrUnreadable, "a page of %d bytes and %d values is too large to be read", c.largest, c.mostValues)
	}
	return nil
}

// guard turns a panic of the library into an error.
func (s *Scanner) guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}

// open opens the file with the library, once.
func (s *Scanner) open() error {
	if s.file == nil && s.err == nil {
		s.file, s.err = parquet.OpenFile(s.r, s.f.Size,
			parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(scanBuffer))
	}
	return s.err
}

func (s *Scanner) pages(ctx context.Context, group int, leaf *Node, l Levels, visit func(Value) error) error {
	if err := s.open(); err != nil {
		return err
	}
	pages := s.file.RowGroups()[group].ColumnChunks()[leaf.Column].Pages()
	defer pages.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if visit == nil {
			l.count(page)
		} else {
			err = l.visit(page, visit)
		}
		parquet.Release(page)
		if err != nil {
			return err
		}
	}
}

// count adds a page of a column that has definition levels.
func (l Levels) count(page parquet.Page) {
	definition, repetition := page.DefinitionLevels(), page.RepetitionLevels()
	for i, d := range definition {
		l.All[d]++
		if len(repetition) == 0 || repetition[i] == 0 {
			l.Rows[d]++
		}
	}
}

func (l Levels) visit(page parquet.Page, visit func(Value) error) error {
	var batch [scanBatch]Value
	values := page.Values()
	for {
		n, err := values.ReadValues(batch[:])
		for _, v := range batch[:n] {
			d := v.DefinitionLevel()
			l.All[d]++
			if v.RepetitionLevel() == 0 {
				l.Rows[d]++
			}
			if err := visit(v); err != nil {
				return &stopError{err}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrNoProgress
		}
	}
}

func sumOf(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// errorReader keeps the first error of r that is not the end of the file, to
// tell it from bytes that do not decode.
type errorReader struct {
	r   io.ReaderAt
	err error
}

func (e *errorReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := e.r.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) && e.err == nil {
		e.err = err
	}
	return n, err
}
