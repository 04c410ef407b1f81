package parquetfile

import (
	"slices"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/parquet-go/parquet-go/format"
)

// maxSchemaDepth bounds the nesting of a schema.
const maxSchemaDepth = 100

// schemaReader builds the tree from its depth-first list of elements.
type schemaReader struct {
	// elements are those not taken yet, of total.
	elements []element
	total    int
	ordered  []bool
	columns  []*Node
}

// schema sets Root and columns of f.
func (f *File) schema(foot *footer) error {
	root, columns, err := tree(foot.schema, foot.ordered)
	if err != nil {
		return err
	}
	f.Root, f.columns = root, columns
	return nil
}

// tree builds the schema and returns its root and its leaves.
func tree(elements []element, ordered []bool) (*Node, []*Node, error) {
	r := schemaReader{elements: elements, total: len(elements), ordered: ordered}
	if len(r.elements) == 0 || r.elements[0].physical >= 0 {
		return nil, nil, fault.New(ErrBroken, "the schema has no root")
	}
	r.elements[0].repetition = format.Required
	root, err := r.node(nil, 0)
	if err != nil {
		return nil, nil, err
	}
	if n := len(r.elements); n > 0 {
		return nil, nil, fault.New(ErrBroken, "%d schema elements belong to no group", n)
	}
	if len(r.columns) == 0 {
		return nil, nil, fault.New(ErrBroken, "the schema has no columns")
	}
	root.Path = nil
	return root, r.columns, nil
}

// node takes the next element and its children; parent is nil for the root.
func (r *schemaReader) node(parent *Node, depth int) (*Node, error) {
	if len(r.elements) == 0 {
		return nil, fault.New(ErrBroken, "the schema ends inside a group")
	}
	if depth > maxSchemaDepth {
		return nil, fault.New(ErrBroken, "the schema is nested deeper than %d", maxSchemaDepth)
	}
	e := r.elements[0]
	r.elements = r.elements[1:]
	n := &Node{
		Name: e.name, Repetition: e.repetition, Logical: e.logical, Physical: e.physical, Length: e.length, Column: -1,
		ID: e.id, Identified: e.identified, Place: r.total - len(r.elements) - 1,
	}
	if e.logical.Kind == None && e.converted >= 0 {
		n.Logical = fromConverted(e)
	}
	if parent != nil {
		n.Path = append(slices.Clip(parent.Path), e.name)
		n.MaxDefinition, n.MaxRepetition = parent.MaxDefinition, parent.MaxRepetition
	}
	switch e.repetition {
	case format.Required:
	case format.Optional:
		n.MaxDefinition++
	case format.Repeated:
		n.MaxDefinition++
		n.MaxRepetition++
	default:
		return nil, fault.New(ErrBroken, "unknown repetition %d", e.repetition).OnColumn(pathOf(n))
	}
	if e.physical >= 0 {
		return n, r.leaf(n, e)
	}
	for range e.children {
		c, err := r.node(n, depth+1)
		if err != nil {
			return nil, err
		}
		n.Children = append(n.Children, c)
	}
	if parent != nil && len(n.Children) == 0 {
		return nil, fault.New(ErrBroken, "a group without columns").OnColumn(pathOf(n))
	}
	return n, nil
}

func (r *schemaReader) leaf(n *Node, e element) error {
	if !known(e.physical) {
		return fault.New(ErrBroken, "unknown physical type %d", e.physical).OnColumn(pathOf(n))
	}
	if e.children > 0 {
		return fault.New(ErrBroken, "both a column and a group").OnColumn(pathOf(n))
	}
	if e.physical == format.FixedLenByteArray && e.length <= 0 {
		return fault.New(ErrBroken, "fixed length of %d bytes", e.length).OnColumn(pathOf(n))
	}
	n.Column = len(r.columns)
	n.typeDefinedOrder = n.Column < len(r.ordered) && r.ordered[n.Column]
	r.columns = append(r.columns, n)
	return nil
}
