package writer

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
	"github.com/deltafs/deltafs/snapshot"
)

// target is what a dropped file is measured against: the table as of the
// version that the file is appended to, and the directory it was dropped into.
type target struct {
	schema           *snapshot.Schema
	partitionColumns []string
	// partitionValues are the directory's, by partition column as the schema
	// spells it, nil for null.
	partitionValues map[string]*string
	// config is metaData.configuration.
	config map[string]string
	// clustering are the paths of the clustering columns, if any.
	clustering [][]string
	// tightBounds says that the table supports deletion vectors, so that
	// statistics say whether their bounds are tight.
	tightBounds bool
}

// fit returns nil if the table can take the file as it is, byte for byte: if
// every Delta reader, and every reader of the bare file, finds in each column
// exactly the table's type under exactly the table's name. Otherwise it is an
// ErrMisfit with the column, both types and the way out.
//
// Letter case must agree, because Arrow based readers would find nulls under a
// name that differs; so must the width of integers, because a narrower one is
// read as the table's type by some readers and refused by others. Columns that
// the file lacks are null. A partition column in the file is ignored by Delta
// readers and accepted if its values are the directory's. The types that fit
// are in fitsPrimitive.
//
// fit reads values only where the footer does not say what must be known:
// nulls of NOT NULL columns and the values of partition columns.
func fit(ctx context.Context, file *parquetfile.File, r io.ReaderAt, t *target) error {
	m := &matcher{ctx: ctx, file: file, scan: file.NewScanner(r), target: t}
	for _, column := range t.partitionColumns {
		if _, ok := t.partitionValues[column]; !ok {
			return fault.New(ErrMisfit, "the table is partitioned by %s", strings.Join(t.partitionColumns, ", ")).OnColumn(column).
				WithHint("put the file into a directory %s=<value>", snapshot.EscapeHive(column))
		}
	}
	if err := m.fields(t.schema.Fields, file.Root, ""); err != nil {
		return err
	}
	for _, c := range m.required {
		if err := m.checkRequired(c); err != nil {
			return err
		}
	}
	return m.checkPartitions()
}

// matcher walks the table's schema and the file's side by side.
type matcher struct {
	ctx    context.Context
	file   *parquetfile.File
	scan   *parquetfile.Scanner
	target *target
	// required are the places that may hold no null, found on the way.
	required []requirement
	// partitions are the partition columns that the file holds.
	partitions []partitionColumn
}

// requirement says that node is never null where its parent is there.
type requirement struct {
	node *parquetfile.Node
	// parent is the definition level of an entry whose parent is there.
	parent int
	column string
}

type partitionColumn struct {
	field snapshot.Field
	node  *parquetfile.Node
}

// fields matches the fields of a struct; prefix leads to it, with a final dot.
func (m *matcher) fields(fields []snapshot.Field, group *parquetfile.Node, prefix string) error {
	nodes, err := byName(group.Children, prefix)
	if err != nil {
		return err
	}
	for _, f := range fields {
		key := strings.ToLower(f.Name)
		node, ok := nodes[key]
		delete(nodes, key)
		if !ok {
			if !f.Nullable && !(prefix == "" && m.isPartition(f.Name)) {
				return fault.New(ErrMisfit, "the file lacks the column, which is NOT NULL in the table (%s)", snapshot.SQLType(f.Type)).
					OnColumn(prefix + f.Name).WithHint("write the file with the column")
			}
			continue
		}
		if err := m.field(f, node, group, prefix); err != nil {
			return err
		}
	}
	for _, node := range group.Children {
		if _, extra := nodes[strings.ToLower(node.Name)]; extra {
			return fault.New(ErrMisfit, "the table has no such column; the file has it as %s", fileType(node)).OnColumn(prefix + node.Name).
				WithHint("leave the column out of the file, or add it to the table first (ALTER TABLE … ADD COLUMNS)")
		}
	}
	return nil
}

// byName maps the nodes by their names in lower case.
func byName(nodes []*parquetfile.Node, prefix string) (map[string]*parquetfile.Node, error) {
	out := make(map[string]*parquetfile.Node, len(nodes))
	for _, n := range nodes {
		key := strings.ToLower(n.Name)
		if other, twice := out[key]; twice {
			return nil, fault.New(ErrMisfit, "the file has two columns of this name, %q and %q", other.Name, n.Name).
				OnColumn(prefix + n.Name).WithHint("rename one of them; letter case does not tell columns apart")
		}
		out[key] = n
	}
	return out, nil
}

func (m *matcher) field(f snapshot.Field, node, parent *parquetfile.Node, prefix string) error {
	column := prefix + f.Name
	if node.Name != f.Name {
		return fault.New(ErrMisfit, "the file spells the column %q, the table %q", node.Name, f.Name).OnColumn(column).
			WithHint("rename it in the file: several readers would find nulls")
	}
	if node.Repeated() {
		return misfit(f.Type, node, column)
	}
	if err := m.fitsType(f.Type, node, column); err != nil {
		return err
	}
	if prefix == "" && m.isPartition(f.Name) {
		m.partitions = append(m.partitions, partitionColumn{f, node})
		return nil
	}
	if !f.Nullable {
		m.required = append(m.required, requirement{node, parent.MaxDefinition, column})
	}
	return nil
}

func (m *matcher) isPartition(name string) bool {
	for _, column := range m.target.partitionColumns {
		if strings.EqualFold(column, name) {
			return true
		}
	}
	return false
}

// fitsType matches a type and all below it.
func (m *matcher) fitsType(t snapshot.Type, node *parquetfile.Node, column string) error {
	switch t := t.(type) {
	case *snapshot.Struct:
		if node.Leaf() || node.Logical.Kind != parquetfile.None {
			return misfit(t, node, column)
		}
		return m.fields(t.Fields, node, column+".")
	case *snapshot.Array:
		element, present := node.Element()
		if element == nil {
			return misfit(t, node, column)
		}
		inner := column + ".element"
		if !t.ContainsNull {
			m.required = append(m.required, requirement{element, present, inner})
		}
		return m.fitsType(t.Element, element, inner)
	case *snapshot.Map:
		key, value, present := node.KeyValue()
		if key == nil {
			return misfit(t, node, column)
		}
		m.required = append(m.required, requirement{key, present, column + ".key"})
		if !t.ValueContainsNull {
			m.required = append(m.required, requirement{value, present, column + ".value"})
		}
		if err := m.fitsType(t.Key, key, column+".key"); err != nil {
			return err
		}
		return m.fitsType(t.Value, value, column+".value")
	case *snapshot.Primitive:
		if !node.Leaf() || !fitsPrimitive(t, node) {
			return misfit(t, node, column)
		}
		return nil
	}
	return misfit(t, node, column)
}

// checkRequired refuses a file with a null where the table wants none.
func (m *matcher) checkRequired(c requirement) error {
	if c.node.MaxDefinition <= c.parent || m.file.NumRows == 0 {
		return nil
	}
	nulls, err := m.countNulls(c)
	if errors.Is(err, parquetfile.ErrUnreadable) {
		return fault.Wrap(ErrMisfit, err, "the column is NOT NULL in the table and the file does not say that it has no nulls").
			OnColumn(c.column).WithHint("write the file with Zstandard or Snappy compression and with statistics")
	}
	if err != nil {
		return err
	}
	if nulls > 0 {
		return fault.New(ErrMisfit, "the column is NOT NULL in the table and the file has %d nulls in it", nulls).
			OnColumn(c.column).WithHint("fill in the missing values")
	}
	return nil
}

// countNulls counts the entries in which the parent is there and the node not.
func (m *matcher) countNulls(c requirement) (nulls int64, err error) {
	if c.node.Leaf() && len(c.node.Path) == 1 {
		s, err := m.scan.Stats(m.ctx, c.node, false)
		if err != nil || s.Nulls >= 0 {
			return s.Nulls, err
		}
	}
	levels, err := m.scan.Levels(m.ctx, m.file.Cheapest(c.node))
	if err != nil {
		return 0, err
	}
	for d := c.parent; d < c.node.MaxDefinition; d++ {
		nulls += levels.All[d]
	}
	return nulls, nil
}
