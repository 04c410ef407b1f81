package writer

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"
)

// typedField is a column of a test table with a value: as statistics and
// partition values have it, as it is stored, and as statistics are read back if
// that differs.
type typedField struct {
	typ, stats, partition, stored, back string
}

var typedFields = []typedField{
	{"string", `"é\"x"`, `a b`, "", ""},
	{"byte", `-128`, `-128`, "-128", ""},
	{"short", `-32768`, `7`, "", ""},
	{"integer", `2147483647`, `-1`, "", ""},
	{"long", `9223372036854775807`, `-9223372036854775808`, "", ""},
	{"float", `1.5`, `NaN`, "", ""},
	{"double", `-1e300`, `1.0E10`, "", `-1e+300`},
	{"decimal(5,2)", `-1.5`, `-123.45`, "-12345", `-1.50`},
	{"decimal(18,0)", `999999999999999999`, `-5`, "", ""},
	{"decimal(38,10)", `-1234567890123456789012345678.0123456789`, `-0.5`, "", ""},
	{"decimal(20,2)", `170141183460469231.73`, `1`, "", ""},
	{"date", `"0001-01-01"`, `2024-02-29`, "19782", ""},
	{"timestamp", `"2024-06-15T12:30:45.123Z"`, `2024-06-15T12:30:45.123456Z`, "1718454645123456", ""},
	{"timestamp_ntz", `"1969-12-31T23:59:59.999"`, `2024-06-15 12:30:45.5`, "1718454645500000", ""},
}

// typedTable has every type as a column c<n>, another one in a struct, and as a
// partition column p<n>.
func typedTable(config ...string) (*action.Protocol, *action.Metadata) {
	var fields []string
	field := func(name, typ string) {
		fields = append(fields, fmt.Sprintf(`{"name":%q,"type":%s,"nullable":true,"metadata":{}}`, name, typ))
	}
	m := testMetadata(config...)
	m.PartitionColumns = nil
	for i, f := range typedFields {
		field(fmt.Sprintf("c%d", i), `"`+f.typ+`"`)
		field(fmt.Sprintf("p%d", i), `"`+f.typ+`"`)
		m.PartitionColumns = append(m.PartitionColumns, fmt.Sprintf("p%d", i))
	}
	field("s", `{"type":"struct","fields":[{"name":"in.side","type":"long","nullable":true,"metadata":{}},`+
		`{"name":"b","type":"binary","nullable":true,"metadata":{}}]}`)
	field("a", `{"type":"array","elementType":"long","containsNull":true}`)
	m.SchemaString = `{"type":"struct","fields":[` + strings.Join(fields, ",") + `]}`
	return testProtocol(1, 7, "deletionVectors", "timestampNtz"), m
}

// typedStats are statistics of all columns; back as they are read from parsed
// ones.
func typedStats(back bool) string {
	var bounds, nulls []string
	for i, f := range typedFields {
		text := f.stats
		if back && f.back != "" {
			text = f.back
		}
		bounds = append(bounds, fmt.Sprintf(`"c%d":%s`, i, text))
		nulls = append(nulls, fmt.Sprintf(`"c%d":%d`, i, i))
	}
	bounds = append(bounds, `"s":{"in.side":-1}`)
	nulls = append(nulls, `"s":{"in.side":5,"b":6}`, `"a":7`)
	b, n := strings.Join(bounds, ","), strings.Join(nulls, ",")
	return `{"numRecords":100,"minValues":{` + b + `},"maxValues":{` + b + `},"nullCount":{` + n + `},"tightBounds":false}`
}

func typedAdd() *action.Add {
	add := testAdd("typed")
	add.Stats = typedStats(false)
	for i, f := range typedFields {
		add.PartitionValues[fmt.Sprintf("p%d", i)] = ptr(f.partition)
	}
	return add
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	v := jsontext.Value(text)
	// Not Canonicalize, which takes numbers for floats.
	if err := v.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(v)
}

// TestParsedStatisticsReadBackAsTheyWere: with statistics as structs alone, the
// text is made of them again.
func TestParsedStatisticsReadBackAsTheyWere(t *testing.T) {
	for _, text := range []string{"true", "false"} {
		p, m := typedTable("delta.checkpoint.writeStatsAsJson", text, "delta.checkpoint.writeStatsAsStruct", "true",
			"delta.dataSkippingNumIndexedCols", "-1")
		partial := typedAdd()
		partial.Path, partial.Stats = "partial", `{"numRecords":3,"minValues":{"c1":1,"c2":null,"unknown":{"x":[1]}},"future":[{}]}`
		for i := range typedFields {
			partial.PartitionValues[fmt.Sprintf("p%d", i)] = nil
		}
		none := testAdd("none")
		none.Stats = ""
		damaged := testAdd("damaged")
		damaged.Stats = `{"numRecords":`
		wrong := testAdd("wrong")
		wrong.Stats = `{"numRecords":"many","minValues":{"c1":1000,"c3":1.5,"c7":1e300,"c11":"yesterday","s":5},"nullCount":7}`
		c := newCheckpointTable(t).commit(p, m, typedAdd(), partial, none, damaged, wrong)
		want := map[string]string{
			"typed": typedStats(true), "partial": `{"numRecords":3,"minValues":{"c1":1}}`, "none": "", "damaged": "", "wrong": "",
		}
		if text == "true" {
			want = map[string]string{
				"typed": typedStats(false), "partial": partial.Stats, "none": "", "damaged": damaged.Stats, "wrong": wrong.Stats,
			}
		}
		for round := range 3 {
			// A later checkpoint copies the columns of the one before.
			c.checkpoint()
			for _, l := range c.content(c.version) {
				a, err := action.Decode([]byte(l))
				if err != nil {
					t.Fatal(err)
				}
				add, ok := a.(*action.Add)
				if !ok {
					continue
				}
				got, want := add.Stats, want[add.Path]
				if text == "false" && got != "" && want != "" {
					got, want = canonical(t, got), canonical(t, want)
				}
				if got != want {
					t.Errorf("as JSON %s, round %d: %s has\n%s, want\n%s", text, round, add.Path, got, want)
				}
			}
			c.commit(testRemove(fmt.Sprint("gone", round)))
		}
	}
}

// TestParsedColumnsAreStoredInTheirTypes looks at the values themselves.
func TestParsedColumnsAreStoredInTheirTypes(t *testing.T) {
	p, m := typedTable("delta.checkpoint.writeStatsAsStruct", "true")
	c := newCheckpointTable(t).commit(p, m, typedAdd())
	c.checkpoint()
	file := openParquet(t, c.st.Path(snapshot.CheckpointName(0)))
	values := map[string]parquet.Value{}
	types := map[string]string{}
	rows := file.RowGroups()[1].Rows()
	defer rows.Close()
	row := make([]parquet.Row, 1)
	if _, err := rows.ReadRows(row); row[0] == nil {
		t.Fatal(err)
	}
	for i, path := range file.Schema().Columns() {
		for _, v := range row[0] {
			if v.Column() == i {
				values[strings.Join(path, "/")] = v.Clone()
			}
		}
		leaf, _ := file.Schema().Lookup(path...)
		types[strings.Join(path, "/")] = leaf.Node.Type().String()
	}
	for i, f := range typedFields {
		name := fmt.Sprintf("add/partitionValues_parsed/p%d", i)
		if f.stored != "" && values[name].String() != f.stored {
			t.Errorf("%s: %s is stored as %s, want %s", f.typ, f.partition, values[name], f.stored)
		}
		if values[name].IsNull() {
			t.Errorf("%s: %s is stored as null", f.typ, f.partition)
		}
		if values[fmt.Sprintf("add/stats_parsed/nullCount/c%d", i)].Int64() != int64(i) {
			t.Errorf("the null count of c%d is wrong", i)
		}
	}
	for name, want := range map[string]string{
		"add/partitionValues_parsed/p1": "INT(8,true)", "add/partitionValues_parsed/p3": "INT(32,true)",
		"add/partitionValues_parsed/p7": "DECIMAL(5,2)", "add/partitionValues_parsed/p11": "DATE",
		"add/stats_parsed/minValues/c12":       "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)",
		"add/partitionValues_parsed/p13":       "TIMESTAMP(isAdjustedToUTC=false,unit=MICROS)",
		"add/stats_parsed/maxValues/s/in.side": "INT(64,true)", "add/stats_parsed/nullCount/s/b": "INT(64,true)",
		"add/stats_parsed/numRecords": "INT(64,true)", "add/stats_parsed/tightBounds": "BOOLEAN",
	} {
		if types[name] != want {
			t.Errorf("%s is %q, want %q", name, types[name], want)
		}
	}
	// -0.5 with ten digits after the point, in 16 bytes.
	if got := fmt.Sprintf("%x", values["add/partitionValues_parsed/p9"].ByteArray()); got != "fffffffffffffffffffffffed5fa0e00" {
		t.Errorf("decimal(38,10) is %s", got)
	}
	if got := len(values["add/partitionValues_parsed/p10"].ByteArray()); got != 9 {
		t.Errorf("decimal(20,2) takes %d bytes", got)
	}
}

func openParquet(t *testing.T, name string) *parquet.File {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBoundsOfDecimalsInBytesAreLeftOut: the library compares them without
// their sign. Those of all other columns are there.
func TestBoundsOfDecimalsInBytesAreLeftOut(t *testing.T) {
	p, m := typedTable("delta.checkpoint.writeStatsAsStruct", "true")
	c := newCheckpointTable(t).commit(p, m, typedAdd(), testAdd("x"))
	c.checkpoint()
	file := openParquet(t, c.st.Path(snapshot.CheckpointName(0)))
	for i := range file.Metadata().RowGroups {
		for _, column := range file.Metadata().RowGroups[i].Columns {
			path := []string(column.MetaData.PathInSchema)
			leaf, _ := file.Schema().Lookup(path...)
			bytes := leaf.Node.Type().Kind() == parquet.FixedLenByteArray
			if bytes != (column.ColumnIndexOffset == 0) {
				t.Errorf("row group %d: %q: index at %d", i, path, column.ColumnIndexOffset)
			}
			if bytes && (column.MetaData.Statistics.MinValue != nil || column.MetaData.Statistics.MaxValue != nil) {
				t.Errorf("row group %d: %q has bounds", i, path)
			}
			if slices.Equal(path, []string{"add", "path"}) && i == 1 && column.MetaData.Statistics.MinValue == nil {
				t.Error("add.path has no bounds")
			}
		}
	}
}

func TestStatisticsOfColumnsThatAreNotIndexedAreNotParsed(t *testing.T) {
	p, m := typedTable("delta.checkpoint.writeStatsAsStruct", "true", "delta.dataSkippingStatsColumns", "c1,s.b")
	c := newCheckpointTable(t).commit(p, m)
	c.checkpoint()
	var got []string
	for _, path := range openParquet(t, c.st.Path(snapshot.CheckpointName(0))).Schema().Columns() {
		if path[0] == "add" && path[1] == "stats_parsed" {
			got = append(got, strings.Join(path[2:], "/"))
		}
	}
	want := "maxValues/c1 minValues/c1 nullCount/c1 nullCount/s/b numRecords tightBounds"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("parsed are %q, want %q", text, want)
	}
}

// TestStatisticsAreLostOnlyOnPurpose: one of their two forms is written unless
// both are switched off.
func TestStatisticsAreLostOnlyOnPurpose(t *testing.T) {
	const json, parsed = "delta.checkpoint.writeStatsAsJson", "delta.checkpoint.writeStatsAsStruct"
	for _, tt := range []struct {
		config []string
		want   string
	}{
		{nil, "json"},
		{[]string{json, "false"}, "struct"},
		{[]string{parsed, "true"}, "json struct"},
		{[]string{parsed, "false"}, "json"},
		{[]string{json, "false", parsed, "false"}, ""},
		{[]string{json, "False", parsed, "True"}, "struct"},
	} {
		c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata(tt.config...), testAdd("a"))
		c.checkpoint()
		schema := openParquet(t, c.st.Path(snapshot.CheckpointName(0))).Schema()
		var got []string
		if _, ok := schema.Lookup("add", "stats"); ok {
			got = append(got, "json")
		}
		if _, ok := schema.Lookup("add", "stats_parsed", "numRecords"); ok {
			got = append(got, "struct")
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%q: %q, want %q", tt.config, text, tt.want)
		}
	}
}
