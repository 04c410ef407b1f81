package parquetview

import (
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// matcher finds the wanted columns in the schema of a file, at every depth.
type matcher struct {
	foot *parquetfile.Footer
	// identified says that the file has field ids.
	identified bool
	// changed says that something is not as the file has it; the order of the
	// columns aside.
	changed bool
	// path leads to the field at hand.
	path    []string
	members map[*parquetfile.Node]*members
}

// match makes the served columns.
func match(foot *parquetfile.Footer, columns []Field) (nodes []*node, changed bool, err error) {
	m := matcher{foot: foot, identified: identified(foot.Root), members: map[*parquetfile.Node]*members{}}
	nodes, err = m.fields(columns, foot.Root)
	return nodes, m.changed, err
}

func identified(n *parquetfile.Node) bool {
	for _, c := range n.Children {
		if c.Identified || identified(c) {
			return true
		}
	}
	return false
}

func (m *matcher) fields(fields []Field, group *parquetfile.Node) ([]*node, error) {
	if len(fields) == 0 {
		return nil, m.fail(ErrUnsupported, "a Parquet file cannot hold a group without columns")
	}
	nodes := make([]*node, len(fields))
	for i, f := range fields {
		var err error
		if nodes[i], err = m.field(f, group); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// field makes a member of a group that the file has.
func (m *matcher) field(f Field, group *parquetfile.Node) (*node, error) {
	m.path = append(m.path, f.Name)
	defer func() { m.path = m.path[:len(m.path)-1] }()
	if f.Constant != nil {
		return m.constant(f, group)
	}
	if f.Type.Kind == Void {
		return m.missing(f, group)
	}
	n, err := m.find(f.Source, group)
	switch {
	case err != nil:
		return nil, err
	case n == nil && f.Required:
		return nil, m.fail(ErrMismatch, "the file lacks a column that must not be null")
	case n == nil:
		return m.missing(f, group)
	case n.Repeated() && n.Logical.Kind != parquetfile.List && f.Type.Kind == List && len(f.Type.Fields) == 1:
		// A repeated field without a list around it is a list of its own.
		return m.value(f.Name, f.Type.Fields[0].Type, n)
	case n.Repeated() && f.Type.Kind != Other:
		return nil, m.mismatch(n, f.Type)
	}
	return m.value(f.Name, f.Type, n)
}

func (m *matcher) constant(f Field, group *parquetfile.Node) (*node, error) {
	if f.Constant.Value == nil {
		return m.missing(f, group)
	}
	if group != m.foot.Root {
		return nil, m.fail(ErrUnsupported, "a member of a group cannot be constant")
	}
	m.changed = true
	value, err := plain(f.Type, f.Constant.Value)
	if err != nil {
		return nil, m.fail(ErrMismatch, "%v", err)
	}
	return &node{
		name: f.Name, repetition: format.Optional, stored: f.Type.stored(),
		column: &column{kind: f.Type.Kind, constant: value},
	}, nil
}

// value makes what n holds, under another name and as another type.
func (m *matcher) value(name string, t Type, n *parquetfile.Node) (*node, error) {
	m.changed = m.changed || name != n.Name
	served := &node{name: name, repetition: n.Repetition, like: n}
	if t.Kind == Other || t.Kind == Variant {
		if t.Kind == Variant && !variant(n) {
			return nil, m.mismatch(n, t)
		}
		m.whole(served, n)
		return served, nil
	}
	if n.Leaf() {
		if t.Kind == Struct || t.Kind == List || t.Kind == Map {
			return nil, m.mismatch(n, t)
		}
		f, ok := fit(n, t)
		if !ok {
			return nil, m.mismatch(n, t)
		}
		m.changed = m.changed || !f.same || wrongBounds(m.foot, n)
		served.stored = f.stored
		if !f.same {
			served.like = nil
		}
		served.column = &column{source: n, convert: f.convert}
		return served, nil
	}
	var err error
	switch t.Kind {
	case Struct:
		switch n.Logical.Kind {
		case parquetfile.List, parquetfile.Map, parquetfile.Variant:
			return nil, m.mismatch(n, t)
		}
		served.children, err = m.fields(t.Fields, n)
	case List:
		err = m.list(served, t, n)
	case Map:
		err = m.keyValues(served, t, n)
	default:
		return nil, m.mismatch(n, t)
	}
	return served, err
}

// whole takes n over as it is.
func (m *matcher) whole(served *node, n *parquetfile.Node) {
	if n.Leaf() {
		served.stored = stored{physical: n.Physical, length: n.Length}
		served.column = &column{source: n}
		return
	}
	for _, c := range n.Children {
		child := &node{name: c.Name, repetition: c.Repetition, like: c}
		m.whole(child, c)
		served.children = append(served.children, child)
	}
}

// variant reports whether n is a variant, annotated or not.
func variant(n *parquetfile.Node) bool {
	seen := 0
	for _, c := range n.Children {
		if c.Leaf() && c.Physical == format.ByteArray && (c.Name == "metadata" || c.Name == "value") {
			seen++
		}
	}
	return seen == 2 || n.Logical.Kind == parquetfile.Variant
}

// list makes the layout that the file has around the list's element.
func (m *matcher) list(served *node, t Type, n *parquetfile.Node) error {
	element, _ := n.Element()
	if element == nil || len(t.Fields) != 1 {
		return m.mismatch(n, t)
	}
	m.path = append(m.path, "element")
	defer func() { m.path = m.path[:len(m.path)-1] }()
	middle := n.Children[0]
	if element != middle {
		inner := &node{name: middle.Name, repetition: middle.Repetition, like: middle}
		if inner.name == served.name+"_tuple" {
			// Readers would take it for the element.
			inner.name = "list"
		}
		served.children = []*node{inner}
		return m.entry(inner, t.Fields[0].Type, element, middle)
	}
	if t.Fields[0].Type.Kind == Void {
		return m.mismatch(n, t)
	}
	inner, err := m.value(middle.Name, t.Fields[0].Type, middle)
	if err != nil {
		return err
	}
	if len(inner.children) == 1 && !middle.Children[0].Repeated() {
		// Readers take a repeated group of one column for a layer around the
		// element, some by any name; so there is one, which costs no level.
		m.changed = true
		inner.name, inner.repetition = "element", format.Required
		inner = &node{name: "list", repetition: format.Repeated, children: []*node{inner}}
	}
	served.children = []*node{inner}
	return nil
}

// keyValues makes the layout that the file has around the map's key and value.
func (m *matcher) keyValues(served *node, t Type, n *parquetfile.Node) error {
	key, value, _ := n.KeyValue()
	if key == nil || len(t.Fields) != 2 {
		return m.mismatch(n, t)
	}
	middle := n.Children[0]
	inner := &node{name: middle.Name, repetition: middle.Repetition, like: middle}
	served.children = []*node{inner}
	for i, c := range []*parquetfile.Node{key, value} {
		m.path = append(m.path, [...]string{"key", "value"}[i])
		err := m.entry(inner, t.Fields[i].Type, c, middle)
		m.path = m.path[:len(m.path)-1]
		if err != nil {
			return err
		}
	}
	return nil
}

// entry adds an element, key or value to the repeated group around it.
func (m *matcher) entry(served *node, t Type, n, middle *parquetfile.Node) error {
	var child *node
	var err error
	if t.Kind == Void {
		child, err = m.missing(Field{Name: n.Name, Type: t}, middle)
	} else {
		child, err = m.value(n.Name, t, n)
	}
	served.children = append(served.children, child)
	return err
}

// missing makes a column of nulls, with all that is below it; the file has the
// group around it.
func (m *matcher) missing(f Field, group *parquetfile.Node) (*node, error) {
	m.changed = true
	anchor := group
	if group.MaxDefinition == 0 && group.MaxRepetition == 0 {
		anchor = nil
	}
	return m.null(f.Name, format.Optional, f.Type, anchor)
}

func (m *matcher) null(name string, repetition format.FieldRepetitionType, t Type, anchor *parquetfile.Node) (*node, error) {
	n := &node{name: name, repetition: repetition, stored: t.stored()}
	add := func(to *node, name string, repetition format.FieldRepetitionType, t Type) error {
		child, err := m.null(name, repetition, t, anchor)
		to.children = append(to.children, child)
		return err
	}
	group := func(kind parquetfile.Kind, middle string) *node {
		n.stored = stored{logical: parquetfile.Logical{Kind: kind}}
		n.children = []*node{{name: middle, repetition: format.Repeated}}
		return n.children[0]
	}
	switch t.Kind {
	case Struct:
		n.stored = stored{}
		if len(t.Fields) == 0 {
			return nil, m.fail(ErrUnsupported, "a Parquet file cannot hold a group without columns")
		}
		for _, f := range t.Fields {
			if err := add(n, f.Name, format.Optional, f.Type); err != nil {
				return nil, err
			}
		}
	case Variant:
		n.stored = stored{}
		for _, name := range []string{"metadata", "value"} {
			if err := add(n, name, format.Required, Type{Kind: Binary}); err != nil {
				return nil, err
			}
		}
	case List:
		if len(t.Fields) != 1 {
			return nil, m.fail(ErrUnsupported, "a list has one element")
		}
		return n, add(group(parquetfile.List, "list"), "element", format.Optional, t.Fields[0].Type)
	case Map:
		if len(t.Fields) != 2 {
			return nil, m.fail(ErrUnsupported, "a map has a key and a value")
		}
		entries := group(parquetfile.Map, "key_value")
		if err := add(entries, "key", format.Required, t.Fields[0].Type); err != nil {
			return nil, err
		}
		return n, add(entries, "value", format.Optional, t.Fields[1].Type)
	default:
		n.column = &column{kind: t.Kind, anchor: anchor}
	}
	return n, nil
}

func (m *matcher) column() string { return strings.Join(m.path, ".") }

func (m *matcher) fail(kind error, format string, args ...any) error {
	return fault.New(kind, format, args...).OnColumn(m.column())
}

func (m *matcher) mismatch(n *parquetfile.Node, t Type) error {
	what := n.String()
	if n.Repeated() {
		what = "repeated " + what
	}
	return m.fail(ErrMismatch, "the file has %s, the table %s", what, t)
}
