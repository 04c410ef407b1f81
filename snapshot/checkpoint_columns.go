package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// list returns the next row's list of strings: nil when null, else never nil.
// A null among the items is left out.
func (c *column) list() ([]string, error) {
	if c == nil {
		return nil, nil
	}
	var row lists
	if err := c.lists(&row, 1); err != nil || row.null[0] {
		return nil, err
	}
	out := make([]string, 0, len(row.items))
	for _, item := range row.items {
		if item != nil {
			out = append(out, string(item))
		}
	}
	return out, nil
}

// mapColumn reads a column of maps from strings to nullable strings.
type mapColumn struct {
	key, value *column
	// keys and values are the rows read last. They borrow memory as columns do.
	keys, values lists
}

// read reads the next rows.
func (m *mapColumn) read(rows int) error {
	if m == nil {
		return nil
	}
	if err := m.key.lists(&m.keys, rows); err != nil {
		return err
	}
	if err := m.value.lists(&m.values, rows); err != nil {
		return err
	}
	if !slices.Equal(m.keys.ends, m.values.ends) {
		return errors.New("a map has not as many values as keys")
	}
	return nil
}

func (m *mapColumn) skipTo(row int64) error {
	if m == nil {
		return nil
	}
	return errors.Join(m.key.skipTo(row), m.value.skipTo(row))
}

// row returns the entries of a row that was read.
func (m *mapColumn) row(row int) entries {
	if m == nil {
		return entries{}
	}
	return entries{m.keys.of(row), m.values.of(row)}
}

// next reads the next row and returns its map: nil when null, else never nil.
func (m *mapColumn) next() (map[string]*string, error) {
	if m == nil {
		return nil, nil
	}
	if err := m.read(1); err != nil || m.keys.null[0] {
		return nil, err
	}
	return m.row(0).toMap(), nil
}

// entries are those of one map, in borrowed memory. A null value is nil.
type entries struct{ keys, values [][]byte }

// add appends an entry, whose memory it borrows.
func (e *entries) add(key string, value *string) {
	e.keys = append(e.keys, bytesOf(key))
	if value == nil {
		e.values = append(e.values, nil)
		return
	}
	e.values = append(e.values, bytesOf(*value))
}

// text returns the value of a key, "" when null or absent. It borrows memory.
func (e entries) text(key string) (out string) {
	for i, k := range e.keys {
		if string(k) == key {
			out = borrowed(e.values[i])
		}
	}
	return out
}

// bytes is the length of keys and values.
func (e entries) bytes() (n int64) {
	for i, key := range e.keys {
		n += int64(len(key) + len(e.values[i]))
	}
	return n
}

// appendTo appends the entries, spelled so that no others are spelled alike.
func (e entries) appendTo(out []byte) []byte {
	for i, key := range e.keys {
		value := e.values[i]
		out = binary.AppendUvarint(out, uint64(len(key)))
		out = append(out, key...)
		// 0 is null.
		if value == nil {
			out = append(out, 0)
			continue
		}
		out = binary.AppendUvarint(out, uint64(len(value))+1)
		out = append(out, value...)
	}
	return out
}

// toMap copies the entries.
func (e entries) toMap() map[string]*string {
	out := make(map[string]*string, len(e.keys))
	for i, key := range e.keys {
		var value *string
		if e.values[i] != nil {
			text := string(e.values[i])
			value = &text
		}
		out[string(key)] = value
	}
	return out
}

// rowGroupColumns opens the columns of one row group and closes them.
type rowGroupColumns struct {
	file   *parquet.File
	meta   *format.RowGroup
	chunks []parquet.ColumnChunk
	open   []*column
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
	g.open = nil
}

// release gives back the memory that was borrowed from the columns so far.
func (g *rowGroupColumns) release() {
	for _, c := range g.open {
		c.release()
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

// leaf opens a leaf of one of the kinds, whose values repeat at so many levels.
// A column of another kind is an error, kept in g.err.
func (g *rowGroupColumns) leaf(col *parquet.Column, repetition int, kinds ...parquet.Kind) *column {
	if col == nil {
		return nil
	}
	if !col.Leaf() || !slices.Contains(kinds, col.Type().Kind()) || col.Index() >= len(g.chunks) ||
		col.MaxRepetitionLevel() != repetition {
		g.fail(col, "has an unexpected type")
		return nil
	}
	// parquet-go decodes LZ4_RAW wrongly, and does not know Hadoop's LZ4.
	if codec := g.meta.Columns[col.Index()].MetaData.Codec; codec == format.Lz4Raw || codec == format.Lz4 {
		g.fail(col, "is compressed with "+codec.String()+", which is not supported")
		return nil
	}
	c := newColumn(g.chunks[col.Index()], col.MaxDefinitionLevel())
	g.open = append(g.open, c)
	return c
}

func (g *rowGroupColumns) fail(col *parquet.Column, what string) {
	g.err = errors.Join(g.err, fmt.Errorf("column %s %s", strings.Join(col.Path(), "."), what))
}

func (g *rowGroupColumns) text(path ...string) *column {
	return g.leaf(g.column(path...), 0, parquet.ByteArray, parquet.FixedLenByteArray)
}

func (g *rowGroupColumns) long(path ...string) *column {
	return g.leaf(g.column(path...), 0, parquet.Int32, parquet.Int64)
}

func (g *rowGroupColumns) flag(path ...string) *column {
	return g.leaf(g.column(path...), 0, parquet.Boolean)
}

// list opens a list of strings in any of its spellings: the repeated node
// below the column holds the element, or is it.
func (g *rowGroupColumns) list(path ...string) *column {
	col := g.column(path...)
	if col == nil {
		return nil
	}
	element := col
	for !element.Leaf() && len(element.Columns()) > 0 {
		element = element.Columns()[0]
	}
	return g.repeated(col, element)
}

// mapping opens a map of strings; the names of the repeated group and of its
// two members differ between writers.
func (g *rowGroupColumns) mapping(path ...string) *mapColumn {
	col := g.column(path...)
	if col == nil {
		return nil
	}
	if len(col.Columns()) != 1 || len(col.Columns()[0].Columns()) != 2 {
		g.fail(col, "is no map")
		return nil
	}
	entry := col.Columns()[0].Columns()
	key, value := g.repeated(col, entry[0]), g.repeated(col, entry[1])
	if key == nil || value == nil {
		return nil
	}
	return &mapColumn{key: key, value: value}
}

// repeated opens the strings at a leaf of a list or map.
func (g *rowGroupColumns) repeated(list, leaf *parquet.Column) *column {
	c := g.leaf(leaf, 1, parquet.ByteArray)
	if c == nil {
		return nil
	}
	item := list
	for !item.Repeated() {
		item = item.Columns()[0]
	}
	c.listDef, c.itemDef = byte(list.MaxDefinitionLevel()), byte(item.MaxDefinitionLevel())
	return c
}
