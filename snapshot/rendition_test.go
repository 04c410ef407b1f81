package snapshot

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/parquetview"
	"github.com/deltafs/deltafs/internal/store"
)

// shown opens the table as its rows are shown.
func (f *fixture) shown(o Options) *Table {
	f.t.Helper()
	st, err := store.OpenLocal(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	o.Name, o.View = "t", ViewTable
	table, err := Open(f.t.Context(), st, o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { table.Close() })
	return table
}

// fieldJSONLine is a schema field as in a log; metadata is JSON.
func schemaField(name, kind, metadata string) string {
	if !strings.HasPrefix(kind, "{") {
		kind = fmt.Sprintf("%q", kind)
	}
	return fmt.Sprintf(`{"name":%q,"type":%s,"nullable":true,"metadata":{%s}}`, name, kind, metadata)
}

func schemaLine(partitions, configuration string, fields ...string) string {
	schema := fmt.Sprintf(`{"type":"struct","fields":[%s]}`, strings.Join(fields, ","))
	return fmt.Sprintf(`{"metaData":{"id":"a-b","format":{"provider":"parquet","options":{}},"schemaString":%q,`+
		`"partitionColumns":[%s],"configuration":{%s},"createdTime":1}}`, schema, partitions, configuration)
}

func TestVersionsThatShowFilesAlikeShareAnOrdinal(t *testing.T) {
	id, more := schemaField("id", "long", ""), schemaField("more", "string", "")
	f := newFixture(t).commit(0, protocolLine, schemaLine("", "", id), addLine("a", 1))
	for i, line := range []string{
		schemaLine("", `"delta.appendOnly":"true"`, id),                  // 1: a property
		schemaLine("", "", schemaField("id", "long", `"comment":"key"`)), // 2: a comment
		schemaLine("", "", id, more),                                     // 3: a column
		schemaLine("", "", more, id),                                     // 4: another order
		schemaLine("", "", schemaField("id", "integer", "")),             // 5: another type
		schemaLine("", "", strings.Replace(id, "true", "false", 1)),      // 6: not nullable
		schemaLine("", "", id),                                           // 7: as at first
	} {
		f.commit(int64(i+1), line)
	}
	table := f.shown(Options{})
	var got []uint32
	for v := range int64(8) {
		got = append(got, onlyFile(t, table, v).SchemaOrdinal)
	}
	if want := []uint32{1, 1, 1, 2, 3, 4, 5, 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("ordinals %v, want %v", got, want)
	}
	if raw := onlyFile(t, f.open(), 3).SchemaOrdinal; raw != 0 {
		t.Errorf("shown raw, the ordinal is %d", raw)
	}
	empty := newFixture(t).commit(0, protocolLine, schemaLine("", ""), addLine("a", 1)).shown(Options{})
	if o := onlyFile(t, empty, 0).SchemaOrdinal; o != 0 {
		t.Errorf("without a schema, the ordinal is %d", o)
	}
}

func TestPartitionColumnsCountOnlyWhenFilled(t *testing.T) {
	id, k := schemaField("id", "long", ""), schemaField("k", "string", "")
	f := newFixture(t).commit(0, protocolLine, schemaLine(`"k"`, "", id, k), addPartition("a", "x")).
		commit(1, schemaLine(`"k"`, "", k, id))
	for fill, same := range map[bool]bool{false: true, true: false} {
		table := f.shown(Options{FillPartitions: fill})
		if one, two := onlyFile(t, table, 0), onlyFile(t, table, 1); (one.SchemaOrdinal == two.SchemaOrdinal) != same {
			t.Errorf("filled %t: ordinals %d and %d", fill, one.SchemaOrdinal, two.SchemaOrdinal)
		}
	}
}

func wantedOf(t *testing.T, table *Table, v int64) parquetview.Wanted {
	t.Helper()
	f := onlyFile(t, table, v)
	w, err := f.life.wanted(t.Context(), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWantedColumns(t *testing.T) {
	mapped := func(name string, id int) string {
		return fmt.Sprintf(`"delta.columnMapping.physicalName":"col-%s","delta.columnMapping.id":%d`, name, id)
	}
	inner := `{"type":"struct","fields":[` + schemaField("x", "decimal(10,2)", mapped("x", 3)) + `]}`
	list := `{"type":"array","elementType":` + inner + `,"containsNull":false}`
	of := `{"type":"map","keyType":"string","valueType":"short","valueContainsNull":true}`
	f := newFixture(t).commit(0, protocolLine, schemaLine(`"p"`, "",
		schemaField("p", "string", mapped("p", 1)), schemaField("l", list, mapped("l", 2)), schemaField("m", of, mapped("m", 4))),
		`{"add":{"path":"a","partitionValues":{"col-p":"x"},"size":1,"modificationTime":1,"dataChange":true}}`)
	type field = parquetview.Field
	for mode, source := range map[string]func(name string, id int32) parquetview.Source{
		"none": func(name string, _ int32) parquetview.Source { return parquetview.Source{Name: name} },
		"name": func(name string, _ int32) parquetview.Source { return parquetview.Source{Name: "col-" + name} },
		"id": func(name string, id int32) parquetview.Source {
			return parquetview.Source{Name: "col-" + name, ByID: true, ID: id}
		},
	} {
		m := columnMapping{mode}
		schema := at(t, f.shown(Options{}), 0).Schema()
		var got []field
		for _, of := range schema.Fields[1:] {
			column, err := m.field(of)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, column)
		}
		x := field{Name: "x", Source: source("x", 3), Type: parquetview.Type{Kind: parquetview.Decimal, Precision: 10, Scale: 2}}
		want := []field{
			{Name: "l", Source: source("l", 2), Type: parquetview.Type{Kind: parquetview.List, Fields: []field{
				{Type: parquetview.Type{Kind: parquetview.Struct, Fields: []field{x}}, Required: true},
			}}},
			{Name: "m", Source: source("m", 4), Type: parquetview.Type{Kind: parquetview.Map, Fields: []field{
				{Type: parquetview.Type{Kind: parquetview.String}, Required: true}, {Type: parquetview.Type{Kind: parquetview.Int16}},
			}}},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("mode %s: %+v, want %+v", mode, got, want)
		}
	}
	if w := wantedOf(t, f.shown(Options{}), 0); len(w.Columns) != 2 || w.Columns[0].Name != "l" || w.Deleted != nil {
		t.Errorf("without partition columns: %+v", w)
	}
	w := wantedOf(t, f.shown(Options{FillPartitions: true}), 0)
	if len(w.Columns) != 3 || w.Columns[0].Name != "p" || w.Columns[0].Constant == nil || w.Columns[0].Constant.Value != "x" {
		t.Errorf("with partition columns: %+v", w)
	}
}

func TestAFieldWithoutAMappingIDIsRefused(t *testing.T) {
	m := columnMapping{mappingID}
	if _, err := m.field(Field{Name: "a", Type: &Primitive{Name: "long"}}); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("%v", err)
	}
}

func TestFilledValuesOfFilesInOneVersion(t *testing.T) {
	long := strings.Repeat("ü%", 200)
	f := newFixture(t).commit(0, protocolLine, schemaLine(`"k"`, "", schemaField("id", "long", ""), schemaField("k", "string", "")),
		addPartition("a", "x=/%41"), addPartition("b", ""), addPartition("c", long), addPartition("d", nullPartition))
	table := f.shown(Options{FillPartitions: true})
	got := map[string]any{}
	for f, err := range at(t, table, 0).Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		w, err := f.life.wanted(t.Context(), f, nil)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Path] = w.Columns[1].Constant.Value
	}
	if want := map[string]any{"a": "x=/%41", "b": nil, "c": long, "d": nullPartition}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
