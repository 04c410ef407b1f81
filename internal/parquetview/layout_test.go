package parquetview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// written is a file of one row with this schema, whose groups are annotated as
// told, by their paths.
func written(t testing.TB, root parquet.Group, row any, annotations map[string]deprecated.ConvertedType) []byte {
	b := encode(t, []any{row}, 1, parquet.NewSchema("m", root))
	return edit(t, b, func(m *format.FileMetaData) {
		eachElement(m.Schema, func(path string, e *format.SchemaElement) {
			if c, ok := annotations[path]; ok {
				e.ConvertedType = thrift.New(c)
			}
		})
	})
}

// eachElement calls visit with the path of each element but the root.
func eachElement(schema []format.SchemaElement, visit func(path string, e *format.SchemaElement)) {
	next := 1
	var walk func(path []string, n int32)
	walk = func(path []string, n int32) {
		for range n {
			e := &schema[next]
			next++
			here := append(slices.Clip(path), e.Name)
			visit(strings.Join(here, "."), e)
			if e.NumChildren.Valid {
				walk(here, e.NumChildren.V)
			}
		}
	}
	walk(nil, schema[0].NumChildren.V)
}

// layoutOf is a schema as a list of paths, with what the elements are.
func layoutOf(m *format.FileMetaData) (lines []string) {
	eachElement(m.Schema, func(path string, e *format.SchemaElement) {
		line := strings.ToLower(e.RepetitionType.V.String()) + " " + path
		if e.ConvertedType.Valid {
			line += fmt.Sprintf(" %d", e.ConvertedType.V)
		}
		lines = append(lines, line)
	})
	return lines
}

func TestLayoutsOfListsAndMapsAreKept(t *testing.T) {
	leaf := parquet.Optional(parquet.Leaf(parquet.Int32Type))
	pair := parquet.Group{"x": leaf, "y": leaf}
	xs := of(Struct, named("a", "x", of(Int32)))
	list := func(inner parquet.Node, name string) parquet.Group {
		return parquet.Group{"l": parquet.Optional(parquet.Group{name: inner})}
	}
	for name, test := range map[string]struct {
		root        parquet.Group
		annotations map[string]deprecated.ConvertedType
		t           Type
		want        []string
	}{
		"three levels of Hive": {
			list(parquet.Repeated(parquet.Group{"array_element": parquet.Optional(pair)}), "bag"),
			map[string]deprecated.ConvertedType{"l": deprecated.List},
			of(List, same("", xs)),
			[]string{"optional items 3", "repeated items.bag", "optional items.bag.array_element", "optional items.bag.array_element.a"},
		},
		"two levels, a primitive": {
			list(parquet.Repeated(parquet.Leaf(parquet.Int32Type)), "element"),
			map[string]deprecated.ConvertedType{"l": deprecated.List},
			of(List, same("", of(Int32))),
			[]string{"optional items 3", "repeated items.element"},
		},
		"two levels, a member is left": {
			list(parquet.Repeated(pair), "bag"),
			map[string]deprecated.ConvertedType{"l": deprecated.List},
			of(List, same("", xs)),
			[]string{"optional items 3", "repeated items.list", "required items.list.element", "optional items.list.element.a"},
		},
		"two levels, both members": {
			list(parquet.Repeated(pair), "bag"),
			map[string]deprecated.ConvertedType{"l": deprecated.List},
			of(List, same("", of(Struct, same("x", of(Int32)), same("y", of(Int32))))),
			[]string{"optional items 3", "repeated items.bag", "optional items.bag.x", "optional items.bag.y"},
		},
		"two levels by the name array": {
			list(parquet.Repeated(parquet.Group{"x": leaf}), "array"),
			map[string]deprecated.ConvertedType{"l": deprecated.List},
			of(List, same("", xs)),
			[]string{"optional items 3", "repeated items.list", "required items.list.element", "optional items.list.element.a"},
		},
		"two levels by a tuple's name": {
			list(parquet.Repeated(parquet.Group{"x": leaf}), "l_tuple"),
			map[string]deprecated.ConvertedType{"l": deprecated.List},
			of(List, same("", xs)),
			[]string{"optional items 3", "repeated items.list", "required items.list.element", "optional items.list.element.a"},
		},
		"three levels that would become a tuple": {
			list(parquet.Repeated(parquet.Group{"element": parquet.Optional(pair)}), "items_tuple"),
			map[string]deprecated.ConvertedType{"l": deprecated.List},
			of(List, same("", xs)),
			[]string{"optional items 3", "repeated items.list", "optional items.list.element", "optional items.list.element.a"},
		},
		"no annotation": {
			parquet.Group{"l": parquet.Repeated(pair)}, nil,
			of(List, same("", xs)),
			[]string{"repeated items", "optional items.a"},
		},
		"a map of old": {
			list(parquet.Repeated(parquet.Group{"key": parquet.Leaf(parquet.Int32Type), "value": leaf}), "map"),
			map[string]deprecated.ConvertedType{"l": deprecated.MapKeyValue},
			of(Map, same("", of(Int32)), same("", of(Int32))),
			[]string{"optional items 2", "repeated items.map", "required items.map.key", "optional items.map.value"},
		},
		"a list in a list": {
			list(parquet.Repeated(parquet.Group{"array": parquet.Repeated(parquet.Leaf(parquet.Int32Type))}), "array"),
			map[string]deprecated.ConvertedType{"l": deprecated.List, "l.array": deprecated.List},
			of(List, same("", of(List, same("", of(Int32))))),
			[]string{"optional items 3", "repeated items.array 3", "repeated items.array.array"},
		},
		"nulls for elements": {
			list(parquet.Repeated(parquet.Group{"element": leaf}), "list"),
			map[string]deprecated.ConvertedType{"l": deprecated.List},
			of(List, same("", of(Void))),
			[]string{"optional items 3", "repeated items.list", "optional items.list.element"},
		},
	} {
		b := written(t, test.root, map[string]any{}, test.annotations)
		v, err := plan(b, Wanted{Columns: []Field{named("items", "l", test.t)}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		last := v.Segments[len(v.Segments)-1].Bytes
		meta, _ := decodeFooter(t, last)
		if got := layoutOf(meta); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q instead of %q", name, got, test.want)
		}
		n := 0
		eachElement(meta.Schema, func(path string, e *format.SchemaElement) {
			if e.NumChildren.Valid {
				return
			}
			if got := strings.Join(meta.RowGroups[0].Columns[n].MetaData.PathInSchema, "."); got != path {
				t.Errorf("%s: chunk %d is %s, the schema has %s", name, n, got, path)
			}
			n++
		})
	}
}

func TestSortingColumnsFollowTheirColumns(t *testing.T) {
	schema := parquet.NewSchema("m", parquet.Group{
		"a": parquet.Leaf(parquet.Int64Type), "b": parquet.Leaf(parquet.Int64Type), "c": parquet.Leaf(parquet.Int64Type),
	})
	b := encode(t, []any{map[string]any{"a": int64(1)}}, 1, schema)
	b = edit(t, b, func(m *format.FileMetaData) {
		m.RowGroups[0].SortingColumns = []format.SortingColumn{{ColumnIdx: 2, Descending: true, NullsFirst: true}, {ColumnIdx: 0}, {ColumnIdx: 1}}
	})
	for _, test := range []struct {
		columns []Field
		want    []format.SortingColumn
	}{
		{[]Field{same("b", of(Int64)), same("c", of(Int64)), named("A", "a", of(Int64))},
			[]format.SortingColumn{{ColumnIdx: 1, Descending: true, NullsFirst: true}, {ColumnIdx: 2}, {ColumnIdx: 0}}},
		{[]Field{same("b", of(Int64)), same("c", of(Int64))}, []format.SortingColumn{{ColumnIdx: 1, Descending: true, NullsFirst: true}}},
		{[]Field{same("a", of(Int64)), same("b", of(Int64))}, nil},
	} {
		_, out := serve(t, b, Wanted{Columns: test.columns})
		meta, _ := decodeFooter(t, out)
		if got := meta.RowGroups[0].SortingColumns; !slices.Equal(got, test.want) {
			t.Errorf("got %+v, want %+v", got, test.want)
		}
	}
}
