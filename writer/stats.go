package writer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/deltafs/deltafs/internal/parquetfile"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json/jsontext"
)

// defaultIndexedColumns is delta.dataSkippingNumIndexedCols when not set.
const defaultIndexedColumns = 32

// statsFor returns the statistics of a file that fits the table, as the JSON
// text of add.stats (protocol section "Per-file Statistics"), and its number
// of rows.
//
// Statistics are promises: readers skip files by them and engines answer
// counts from them. So what is not certain is left out, and a bound that
// cannot be written exactly is widened. Columns that the file lacks are null
// in every row. What is read from the values and not from the footer is said
// at parquetfile.Scanner.Stats.
func statsFor(ctx context.Context, file *parquetfile.File, r io.ReaderAt, t *target) (string, int64, error) {
	w := &statsWriter{ctx: ctx, file: file, scan: file.NewScanner(r), target: t, prefix: stringPrefix(t.config)}
	root := &statsNode{}
	indexed := indexedColumns(t)
	if err := w.collect(root, dataFields(t), file.Root, nil, indexed); err != nil {
		return "", 0, err
	}
	var b bytes.Buffer
	e := jsontext.NewEncoder(&b)
	for _, err := range []error{
		e.WriteToken(jsontext.BeginObject),
		e.WriteToken(jsontext.String("numRecords")), e.WriteToken(jsontext.Int(file.NumRows)),
	} {
		if err != nil {
			return "", 0, err
		}
	}
	if len(indexed) > 0 {
		for _, part := range []struct {
			name string
			of   func(*statsNode) string
		}{
			{"minValues", func(n *statsNode) string { return n.min }},
			{"maxValues", func(n *statsNode) string { return n.max }},
			{"nullCount", func(n *statsNode) string { return n.nulls }},
		} {
			if err := e.WriteToken(jsontext.String(part.name)); err != nil {
				return "", 0, err
			}
			if err := root.write(e, part.of); err != nil {
				return "", 0, err
			}
		}
	}
	if t.tightBounds {
		if err := errors.Join(e.WriteToken(jsontext.String("tightBounds")), e.WriteToken(jsontext.True)); err != nil {
			return "", 0, err
		}
	}
	if err := e.WriteToken(jsontext.EndObject); err != nil {
		return "", 0, err
	}
	return strings.TrimSpace(b.String()), file.NumRows, nil
}

// dataFields are the schema's fields without the partition columns.
func dataFields(t *target) []snapshot.Field {
	var fields []snapshot.Field
	for _, f := range t.schema.Fields {
		if !containsFold(t.partitionColumns, f.Name) {
			fields = append(fields, f)
		}
	}
	return fields
}

func containsFold(list []string, name string) bool {
	for _, s := range list {
		if strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

// statsNode is a column with its statistics as JSON, "" for none, or a struct
// with its fields.
type statsNode struct {
	name            string
	min, max, nulls string
	fields          []*statsNode
}

// write writes one kind of statistics of a struct, without empty structs
// below it.
func (n *statsNode) write(e *jsontext.Encoder, of func(*statsNode) string) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, f := range n.fields {
		if !f.has(of) {
			continue
		}
		if err := e.WriteToken(jsontext.String(f.name)); err != nil {
			return err
		}
		var err error
		if len(f.fields) > 0 {
			err = f.write(e, of)
		} else {
			err = e.WriteValue(jsontext.Value(of(f)))
		}
		if err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

func (n *statsNode) has(of func(*statsNode) string) bool {
	if of(n) != "" {
		return true
	}
	for _, f := range n.fields {
		if f.has(of) {
			return true
		}
	}
	return false
}

type statsWriter struct {
	ctx    context.Context
	file   *parquetfile.File
	scan   *parquetfile.Scanner
	target *target
	// prefix is how many UTF-16 units of a string are kept.
	prefix int
}

// collect fills in the statistics of the indexed columns among fields; group
// is the struct in the file, nil if the file lacks it.
func (w *statsWriter) collect(into *statsNode, fields []snapshot.Field, group *parquetfile.Node, path []string, indexed columnSet) error {
	for _, f := range fields {
		here := append(path[:len(path):len(path)], f.Name)
		var node *parquetfile.Node
		if group != nil {
			node = child(group, f.Name)
		}
		n := &statsNode{name: f.Name}
		var err error
		if inner, ok := f.Type.(*snapshot.Struct); ok {
			err = w.collect(n, inner.Fields, node, here, indexed)
		} else if indexed.has(here) {
			err = w.leaf(n, f.Type, node)
		}
		if err != nil {
			return err
		}
		into.fields = append(into.fields, n)
	}
	return nil
}

func child(group *parquetfile.Node, name string) *parquetfile.Node {
	for _, c := range group.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (w *statsWriter) leaf(n *statsNode, t snapshot.Type, node *parquetfile.Node) error {
	if node == nil {
		n.nulls = strconv.FormatInt(w.file.NumRows, 10)
		return nil
	}
	if !node.Leaf() {
		nulls, err := w.nullRows(node)
		if err == nil && nulls >= 0 {
			n.nulls = strconv.FormatInt(nulls, 10)
		}
		return err
	}
	p, ok := t.(*snapshot.Primitive)
	if !ok {
		return nil
	}
	s, err := w.scan.Stats(w.ctx, node, hasBounds(p))
	if err != nil {
		return err
	}
	if s.Nulls >= 0 {
		n.nulls = strconv.FormatInt(s.Nulls, 10)
	}
	n.min, n.max = w.boundTexts(p, s)
	return nil
}

// nullRows counts the rows in which an array or a map, or a struct above it,
// is null; -1 if its levels cannot be read.
func (w *statsWriter) nullRows(node *parquetfile.Node) (nulls int64, err error) {
	if node.MaxDefinition == 0 {
		return 0, nil
	}
	levels, err := w.scan.Levels(w.ctx, w.file.Cheapest(node))
	if errors.Is(err, parquetfile.ErrUnreadable) {
		return -1, nil
	}
	for d := range node.MaxDefinition {
		nulls += levels.Rows[d]
	}
	return nulls, err
}

// hasBounds reports whether a type has minima and maxima (protocol section
// "Per-file Statistics").
func hasBounds(p *snapshot.Primitive) bool {
	switch p.Name {
	case "byte", "short", "integer", "long", "float", "double", "decimal", "string", "date", "timestamp", "timestamp_ntz":
		return true
	}
	return false
}
