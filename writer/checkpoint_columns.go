package writer

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/parquet-go/parquet-go"
)

// columnBatch gathers the values of one leaf column for rows of one kind. A
// value is put with its definition level: that of the innermost group, list or
// map that is there.
type columnBatch struct {
	out    *parquet.ColumnWriter
	path   []string
	index  int
	maxDef int
	// values of rows rows; a list or map has several a row.
	values []parquet.Value
	rows   int
	// bytes is about how much the values take.
	bytes int64
}

func (c *columnBatch) add(v parquet.Value, repetition, definition int) {
	if repetition == 0 {
		c.rows++
	}
	c.values = append(c.values, v.Level(repetition, definition, c.index))
}

// writeNulls writes rows of other kinds, past the batch.
func (c *columnBatch) writeNulls(rows int64) error {
	nulls := make([]parquet.Value, min(rows, batchRows))
	for ; rows > 0; rows -= int64(len(nulls)) {
		nulls = nulls[:min(rows, batchRows)]
		if _, err := c.out.WriteRowValues(nulls); err != nil {
			return err
		}
	}
	return nil
}

// null puts a row without a value.
func (c *columnBatch) null(definition int) { c.add(parquet.Value{}, 0, definition) }

func (c *columnBatch) bytesOf(s string, repetition int) {
	c.bytes += int64(len(s))
	c.add(parquet.ByteArrayValue([]byte(s)), repetition, c.maxDef)
}

func (c *columnBatch) text(s string)      { c.bytesOf(s, 0) }
func (c *columnBatch) long(n int64)       { c.add(parquet.Int64Value(n), 0, c.maxDef) }
func (c *columnBatch) short(n int32)      { c.add(parquet.Int32Value(n), 0, c.maxDef) }
func (c *columnBatch) flag(on bool)       { c.add(parquet.BooleanValue(on), 0, c.maxDef) }
func (c *columnBatch) someText(s *string) { some(c, s, c.text) }
func (c *columnBatch) someLong(n *int64)  { some(c, n, c.long) }
func (c *columnBatch) someFlag(on *bool)  { some(c, on, c.flag) }

// some puts a value that may be nil, in a group that is there.
func some[T any](c *columnBatch, v *T, put func(T)) {
	if v == nil {
		c.null(c.maxDef - 1)
		return
	}
	put(*v)
}

// narrow puts a long into a column of 32 bits.
func (c *columnBatch) narrow(n int64) error {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return fault.New(ErrNoCheckpoint, "%d is too great for a checkpoint", n).OnColumn(strings.Join(c.path, "."))
	}
	c.short(int32(n))
	return nil
}

// list puts a list, which may be nil, of a group with this definition level.
func (c *columnBatch) list(values []string, definition int) {
	switch {
	case values == nil:
		c.null(definition)
	case len(values) == 0:
		c.null(definition + 1)
	}
	for i, s := range values {
		c.bytesOf(s, min(i, 1))
	}
}

// mapBatch gathers the values of a map column.
type mapBatch struct{ key, value *columnBatch }

// entries puts a map, which may be nil, of a group with this definition level.
func (m *mapBatch) entries(values map[string]*string, definition int) {
	if values != nil {
		definition++
	}
	if len(values) == 0 {
		m.null(definition)
		return
	}
	for i, k := range slices.Sorted(maps.Keys(values)) {
		m.key.bytesOf(k, min(i, 1))
		if v := values[k]; v != nil {
			m.value.bytesOf(*v, min(i, 1))
		} else {
			m.value.add(parquet.Value{}, min(i, 1), m.value.maxDef-1)
		}
	}
}

func (m *mapBatch) null(definition int) {
	m.key.null(definition)
	m.value.null(definition)
}

// nullable is the same map with values that may be nil, itself not nil.
func nullable(in map[string]string) map[string]*string {
	out := make(map[string]*string, len(in))
	for k, v := range in {
		out[k] = &v
	}
	return out
}
