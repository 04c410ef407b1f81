package snapshot

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// cursor reads one leaf column of a row group, row by row. Values borrow the
// memory of their page, so whatever is kept must be copied in the visitor. A
// nil cursor is a column that the file does not have: all null.
type cursor struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    []parquet.Value
	next   int
	// maxDef is the definition level of a value that is not null.
	maxDef int
}

func newCursor(chunk parquet.ColumnChunk, maxDef int) *cursor {
	return &cursor{pages: chunk.Pages(), buf: make([]parquet.Value, 0, 256), maxDef: maxDef}
}

func (c *cursor) close() {
	if c == nil {
		return
	}
	c.release()
	c.pages.Close()
}

func (c *cursor) release() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
}

// row visits the values of the next row: one for a scalar, one for each
// element of a list or map, or a single one of a lower definition level for a
// list that is null or empty.
func (c *cursor) row(visit func(v *parquet.Value)) error {
	if c == nil {
		return nil
	}
	for first := true; ; first = false {
		v, err := c.peek()
		if errors.Is(err, io.EOF) && !first {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return errors.New("a column ends before its row group")
		}
		if err != nil || (!first && v.RepetitionLevel() == 0) {
			return err
		}
		visit(v)
		c.next++
	}
}

func (c *cursor) peek() (*parquet.Value, error) {
	for c.next == len(c.buf) {
		if c.page == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return nil, err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.buf[:cap(c.buf)])
		c.buf, c.next = c.buf[:n], 0
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			c.release()
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		}
	}
	return &c.buf[c.next], nil
}

// null reports whether a value of the column is null at any level.
func (c *cursor) null(v *parquet.Value) bool { return v.DefinitionLevel() < c.maxDef }

// text returns the next row's string, nil when null.
func (c *cursor) text() (out *string, err error) {
	err = c.row(func(v *parquet.Value) {
		if !c.null(v) {
			s := string(v.ByteArray())
			out = &s
		}
	})
	return out, err
}

// long returns the next row's integer, nil when null.
func (c *cursor) long() (out *int64, err error) {
	err = c.row(func(v *parquet.Value) {
		if !c.null(v) {
			n := integer(v)
			out = &n
		}
	})
	return out, err
}

// boolean returns the next row's boolean, false when null.
func (c *cursor) boolean() (out bool, err error) {
	err = c.row(func(v *parquet.Value) { out = !c.null(v) && v.Kind() == parquet.Boolean && v.Boolean() })
	return out, err
}

func integer(v *parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// listCursor reads a column of lists of strings.
type listCursor struct {
	*cursor
	// present is the lowest definition level at which the list is not null.
	present int
}

// list returns the next row's list: nil when null, else never nil.
func (c *listCursor) list() (out []string, err error) {
	if c == nil {
		return nil, nil
	}
	err = c.row(func(v *parquet.Value) {
		if v.DefinitionLevel() >= c.present && out == nil {
			out = []string{}
		}
		if !c.null(v) {
			out = append(out, string(v.ByteArray()))
		}
	})
	return out, err
}

// mapCursor reads a column of maps from strings to nullable strings.
type mapCursor struct {
	key, value *cursor
	present    int

	// keys and values are scratch of one row.
	keys   []string
	values []*string
}

// entries returns the next row's map: nil when null, else never nil.
func (c *mapCursor) entries() (map[string]*string, error) {
	if c == nil {
		return nil, nil
	}
	c.keys, c.values = c.keys[:0], c.values[:0]
	present := false
	err := c.key.row(func(v *parquet.Value) {
		present = present || v.DefinitionLevel() >= c.present
		if !c.key.null(v) {
			c.keys = append(c.keys, string(v.ByteArray()))
		}
	})
	if err != nil {
		return nil, err
	}
	err = c.value.row(func(v *parquet.Value) {
		var text *string
		if !c.value.null(v) {
			s := string(v.ByteArray())
			text = &s
		}
		c.values = append(c.values, text)
	})
	if err != nil || !present {
		return nil, err
	}
	out := make(map[string]*string, len(c.keys))
	for i, key := range c.keys {
		if i < len(c.values) {
			out[key] = c.values[i]
		}
	}
	return out, nil
}

// rowGroupColumns makes the cursors of one row group and closes them.
type rowGroupColumns struct {
	file   *parquet.File
	meta   *format.RowGroup
	chunks []parquet.ColumnChunk
	open   []*cursor
	err    error
}

func newRowGroupColumns(file *parquet.File, number int) *rowGroupColumns {
	return &rowGroupColumns{
		file:   file,
		meta:   &file.Metadata().RowGroups[number],
		chunks: file.RowGroups()[number].ColumnChunks(),
	}
}

func (g *rowGroupColumns) close() {
	for _, c := range g.open {
		c.close()
	}
}

// column finds a column by path; nil when the file does not have it.
func (g *rowGroupColumns) column(path ...string) *parquet.Column {
	col := g.file.Root()
	for _, name := range path {
		if col = col.Column(name); col == nil {
			return nil
		}
	}
	return col
}

// leaf opens a cursor on a leaf of one of the kinds. A column of another kind
// is an error, kept in g.err.
func (g *rowGroupColumns) leaf(col *parquet.Column, kinds ...parquet.Kind) *cursor {
	if col == nil {
		return nil
	}
	if !col.Leaf() || !slices.Contains(kinds, col.Type().Kind()) || col.Index() >= len(g.chunks) {
		g.fail(col, "has an unexpected type")
		return nil
	}
	// parquet-go decodes LZ4_RAW wrongly, and does not know Hadoop's LZ4.
	if codec := g.meta.Columns[col.Index()].MetaData.Codec; codec == format.Lz4Raw || codec == format.Lz4 {
		g.fail(col, "is compressed with "+codec.String()+", which is not supported")
		return nil
	}
	c := newCursor(g.chunks[col.Index()], col.MaxDefinitionLevel())
	g.open = append(g.open, c)
	return c
}

func (g *rowGroupColumns) fail(col *parquet.Column, what string) {
	g.err = errors.Join(g.err, fmt.Errorf("column %s %s", strings.Join(col.Path(), "."), what))
}

func (g *rowGroupColumns) text(path ...string) *cursor {
	return g.leaf(g.column(path...), parquet.ByteArray, parquet.FixedLenByteArray)
}

func (g *rowGroupColumns) long(path ...string) *cursor {
	return g.leaf(g.column(path...), parquet.Int32, parquet.Int64)
}

func (g *rowGroupColumns) flag(path ...string) *cursor {
	return g.leaf(g.column(path...), parquet.Boolean)
}

// list opens a list of strings in any of its spellings: the repeated node
// below the column holds the element, or is it.
func (g *rowGroupColumns) list(path ...string) *listCursor {
	col := g.column(path...)
	if col == nil {
		return nil
	}
	element := col
	for !element.Leaf() && len(element.Columns()) > 0 {
		element = element.Columns()[0]
	}
	c := g.leaf(element, parquet.ByteArray)
	if c == nil {
		return nil
	}
	return &listCursor{cursor: c, present: col.MaxDefinitionLevel()}
}

// mapping opens a map of strings; the names of the repeated group and of its
// two members differ between writers.
func (g *rowGroupColumns) mapping(path ...string) *mapCursor {
	col := g.column(path...)
	if col == nil {
		return nil
	}
	if len(col.Columns()) != 1 || len(col.Columns()[0].Columns()) != 2 {
		g.fail(col, "is no map")
		return nil
	}
	entry := col.Columns()[0].Columns()
	key, value := g.leaf(entry[0], parquet.ByteArray), g.leaf(entry[1], parquet.ByteArray)
	if key == nil || value == nil {
		return nil
	}
	return &mapCursor{key: key, value: value, present: col.MaxDefinitionLevel()}
}
