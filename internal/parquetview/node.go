package parquetview

import (
	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// node is an element of the served schema.
type node struct {
	name       string
	repetition format.FieldRepetitionType
	stored     stored
	// like is the element of the file whose annotation this one has, instead of
	// stored.logical.
	like     *parquetfile.Node
	children []*node
	// column is set for a leaf.
	column *column
}

// column is a leaf of the served schema: the values of a column of the file,
// perhaps converted, or else a constant, or else nulls.
type column struct {
	path   []string
	stored stored
	// source is the column of the file whose values these are.
	source  *parquetfile.Node
	convert parquetchunk.Conversion
	// constant is the value in all rows, as PLAIN encodes it (strings without
	// their length), if this is no column of nulls.
	constant []byte
	kind     Kind
	// anchor is the innermost group of the file around a column of nulls; it is
	// nil if all the rows are null.
	anchor *parquetfile.Node

	maxDefinition, maxRepetition int
}

// flatten appends the encoded elements and the columns below n, depth first,
// and sets what the columns owe to the groups around them.
func (n *node) flatten(s *schema, path []string, def, rep int) {
	switch n.repetition {
	case format.Optional:
		def++
	case format.Repeated:
		def, rep = def+1, rep+1
	}
	s.elements = append(s.elements, n.encode(s.foot))
	if c := n.column; c != nil {
		c.path = append([]string(nil), path...)
		c.stored = n.stored
		c.maxDefinition, c.maxRepetition = def, rep
		s.columns = append(s.columns, c)
	}
	for _, child := range n.children {
		child.flatten(s, append(path, child.name), def, rep)
	}
}

// encode makes the SchemaElement.
func (n *node) encode(foot *parquetfile.Footer) []byte {
	var w structWriter
	if n.column != nil {
		w.i32(1, int32(n.stored.physical))
		if n.stored.physical == format.FixedLenByteArray {
			w.i32(2, n.stored.length)
		}
	}
	w.i32(3, int32(n.repetition))
	w.bytes(4, []byte(n.name))
	if n.column == nil {
		w.i32(5, int32(len(n.children)))
	}
	if n.like == nil {
		annotate(&w, n.stored.logical)
		return w.end()
	}
	// Fields may come in any order; what decodes twice counts once.
	var annotation [11]*parquetfile.Field
	fields, _ := parquetfile.Fields(foot.Elements[n.like.Place])
	for i, f := range fields {
		if f.ID >= 6 && f.ID <= 10 {
			annotation[f.ID] = &fields[i]
		}
	}
	for _, id := range [...]int16{6, 7, 8, 10} {
		if f := annotation[id]; f != nil {
			w.raw(id, f.Type, f.Value)
		}
	}
	return w.end()
}

// schema is the served schema as the footer says it.
type schema struct {
	foot     *parquetfile.Footer
	elements [][]byte
	columns  []*column
}

func newSchema(foot *parquetfile.Footer, columns []*node) *schema {
	s := &schema{foot: foot}
	var root structWriter
	root.bytes(4, []byte(foot.Root.Name))
	root.i32(5, int32(len(columns)))
	s.elements = append(s.elements, root.end())
	for _, n := range columns {
		n.flatten(s, []string{n.name}, 0, 0)
	}
	return s
}

// orders are the column orders: what the file says of its columns, and the order
// that the type defines for the others. A file that says nothing goes on to.
func (s *schema) orders() [][]byte {
	if s.foot.Orders == nil {
		return nil
	}
	var byType structWriter
	byType.structure(1, func(*structWriter) {})
	typeDefined := byType.end()
	orders := make([][]byte, len(s.columns))
	for i, c := range s.columns {
		orders[i] = typeDefined
		if c.source != nil && c.source.Column < len(s.foot.Orders) {
			orders[i] = s.foot.Orders[c.source.Column]
		}
	}
	return orders
}
