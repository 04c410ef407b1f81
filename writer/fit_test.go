package writer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// fileOf writes rows as a Parquet file.
func fileOf[T any](t *testing.T, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// emptyFile writes a file without rows.
func emptyFile(t *testing.T, columns parquet.Group) []byte {
	t.Helper()
	return fileOf(t, []any(nil), parquet.NewSchema("schema", columns))
}

func checked(t *testing.T, b []byte) (*parquetfile.File, *bytes.Reader) {
	t.Helper()
	r := bytes.NewReader(b)
	file, err := parquetfile.Check(r, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return file, r
}

// tableOf parses a schema written as "name type" pairs; a type with a final
// "!" is NOT NULL.
func tableOf(t *testing.T, columns ...string) *target {
	t.Helper()
	var fields []string
	for _, c := range columns {
		name, typ, _ := strings.Cut(c, " ")
		nullable := "true"
		if strings.HasSuffix(typ, "!") {
			typ, nullable = strings.TrimSuffix(typ, "!"), "false"
		}
		if !strings.HasPrefix(typ, "{") {
			typ = `"` + typ + `"`
		}
		fields = append(fields, `{"name":"`+name+`","type":`+typ+`,"nullable":`+nullable+`,"metadata":{}}`)
	}
	schema, err := snapshot.ParseSchema(`{"type":"struct","fields":[` + strings.Join(fields, ",") + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	return &target{schema: schema}
}

const (
	arrayOfInts    = `{"type":"array","elementType":"integer","containsNull":true}`
	arrayOfSome    = `{"type":"array","elementType":"integer","containsNull":false}`
	mapOfInts      = `{"type":"map","keyType":"string","valueType":"integer","valueContainsNull":true}`
	mapOfSome      = `{"type":"map","keyType":"string","valueType":"integer","valueContainsNull":false}`
	structOfInts   = `{"type":"struct","fields":[{"name":"a","type":"integer","nullable":true,"metadata":{}},{"name":"b","type":"integer","nullable":true,"metadata":{}}]}`
	structOfSome   = `{"type":"struct","fields":[{"name":"a","type":"integer","nullable":false,"metadata":{}}]}`
	arrayOfStructs = `{"type":"array","elementType":` + structOfInts + `,"containsNull":true}`
)

func TestFitTypes(t *testing.T) {
	leaf := parquet.Leaf
	i32, i64 := leaf(parquet.Int32Type), leaf(parquet.Int64Type)
	ntz := func(u parquet.TimeUnit) parquet.Node { return parquet.TimestampAdjusted(u, false) }
	ints := parquet.Group{"a": parquet.Int(32), "b": parquet.Int(32)}
	tests := []struct {
		table string
		node  parquet.Node
		// file is how the refusal names the file's type; "" if it fits.
		file string
	}{
		{"boolean", leaf(parquet.BooleanType), ""},
		{"byte", parquet.Int(8), ""},
		{"byte", i32, "INT"},
		{"byte", parquet.Int(16), "SMALLINT"},
		{"short", parquet.Int(16), ""},
		{"short", parquet.Int(8), "TINYINT"},
		{"integer", i32, ""},
		{"integer", parquet.Int(32), ""},
		{"integer", parquet.Int(8), "TINYINT"},
		{"integer", i64, "BIGINT"},
		{"integer", parquet.Uint(32), "unsigned INT"},
		{"integer", parquet.Date(), "DATE"},
		{"integer", parquet.Decimal(0, 9, parquet.Int32Type), "DECIMAL(9,0) in INT32"},
		{"long", i64, ""},
		{"long", parquet.Int(64), ""},
		{"long", i32, "INT"},
		{"long", parquet.Uint(64), "unsigned BIGINT"},
		{"long", parquet.Timestamp(parquet.Microsecond), "TIMESTAMP"},
		{"float", leaf(parquet.FloatType), ""},
		{"float", leaf(parquet.DoubleType), "DOUBLE"},
		{"double", leaf(parquet.DoubleType), ""},
		{"double", leaf(parquet.FloatType), "FLOAT"},
		{"string", parquet.String(), ""},
		{"string", leaf(parquet.ByteArrayType), "BINARY"},
		{"string", parquet.JSON(), "JSON"},
		{"string", parquet.Enum(), "ENUM"},
		{"string", parquet.UUID(), "UUID"},
		{"binary", leaf(parquet.ByteArrayType), ""},
		{"binary", parquet.String(), "STRING"},
		{"binary", leaf(parquet.FixedLenByteArrayType(4)), "BINARY(4)"},
		{"date", parquet.Date(), ""},
		{"date", i32, "INT"},
		{"date", parquet.Timestamp(parquet.Microsecond), "TIMESTAMP"},
		{"timestamp", parquet.Timestamp(parquet.Microsecond), ""},
		{"timestamp", leaf(parquet.Int96Type), ""},
		{"timestamp", ntz(parquet.Microsecond), "TIMESTAMP_NTZ"},
		{"timestamp", parquet.Timestamp(parquet.Millisecond), "TIMESTAMP in milliseconds"},
		{"timestamp", parquet.Timestamp(parquet.Nanosecond), "TIMESTAMP in nanoseconds"},
		{"timestamp", i64, "BIGINT"},
		{"timestamp", parquet.Time(parquet.Microsecond), "TIME"},
		{"timestamp_ntz", ntz(parquet.Microsecond), ""},
		{"timestamp_ntz", parquet.Timestamp(parquet.Microsecond), "TIMESTAMP"},
		{"timestamp_ntz", ntz(parquet.Nanosecond), "TIMESTAMP_NTZ in nanoseconds"},
		{"timestamp_ntz", leaf(parquet.Int96Type), "TIMESTAMP in INT96"},
		{"decimal(9,2)", parquet.Decimal(2, 9, parquet.Int32Type), ""},
		{"decimal(18,2)", parquet.Decimal(2, 18, parquet.Int64Type), ""},
		{"decimal(9,2)", parquet.Decimal(2, 9, parquet.ByteArrayType), ""},
		{"decimal(9,2)", parquet.Decimal(2, 9, parquet.FixedLenByteArrayType(4)), ""},
		{"decimal(38,2)", parquet.Decimal(2, 38, parquet.FixedLenByteArrayType(16)), ""},
		{"decimal(38,2)", parquet.Decimal(2, 38, parquet.FixedLenByteArrayType(15)), "DECIMAL(38,2) in FIXED_LEN_BYTE_ARRAY"},
		{"decimal(10,2)", parquet.Decimal(2, 9, parquet.Int32Type), "DECIMAL(9,2) in INT32"},
		{"decimal(9,3)", parquet.Decimal(2, 9, parquet.Int32Type), "DECIMAL(9,2) in INT32"},
		{"decimal(9,0)", i32, "INT"},
		{"void", i32, "INT"},
		{"interval day to second", i64, "BIGINT"},
		{arrayOfInts, parquet.List(i32), ""},
		{arrayOfInts, parquet.List(parquet.Optional(i32)), ""},
		{arrayOfInts, parquet.Repeated(i32), "repeated INT"},
		{arrayOfInts, parquet.List(i64), "BIGINT"},
		{arrayOfInts, i32, "INT"},
		{"integer", parquet.Repeated(i32), "repeated INT"},
		{"integer", parquet.List(i32), "ARRAY<INT>"},
		{mapOfInts, parquet.Map(parquet.String(), i32), ""},
		{mapOfInts, parquet.Map(parquet.String(), i64), "BIGINT"},
		{mapOfInts, parquet.Map(leaf(parquet.ByteArrayType), i32), "BINARY"},
		{structOfInts, ints, ""},
		{structOfInts, parquet.Group{"b": i32}, ""},
		{structOfInts, parquet.Group{"a": i64, "b": i32}, "BIGINT"},
		{structOfInts, parquet.Map(parquet.String(), i32), "MAP<STRING, INT>"},
		{structOfInts, i32, "INT"},
		{arrayOfStructs, parquet.List(ints), ""},
		{arrayOfStructs, parquet.List(parquet.Group{"a": parquet.String()}), "STRING"},
	}
	for _, test := range tests {
		t.Run(test.table+" from "+test.node.String(), func(t *testing.T) {
			file, r := checked(t, emptyFile(t, parquet.Group{"c": test.node}))
			to := tableOf(t, "c "+test.table)
			err := fit(t.Context(), file, r, to)
			if test.file == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *fault.Error
			if !errors.Is(err, ErrMisfit) || !errors.As(err, &e) {
				t.Fatalf("%v is no misfit", err)
			}
			if !strings.Contains(e.Reason, "the file has "+test.file) || !strings.HasPrefix(e.Column, "c") || e.Hint == "" {
				t.Errorf("%v, expected %s", err, test.file)
			}
			if len(e.Column) == 1 && !strings.HasSuffix(e.Reason, "the table "+snapshot.SQLType(to.schema.Fields[0].Type)) {
				t.Errorf("%v does not name the table's type", err)
			}
		})
	}
}

// schemaFile is a file without rows, with a schema that the library would not
// write.
func schemaFile(t *testing.T, elements ...format.SchemaElement) []byte {
	t.Helper()
	root := format.SchemaElement{Name: "schema", NumChildren: thrift.New[int32](1)}
	foot, err := thrift.Marshal(new(thrift.CompactProtocol), &format.FileMetaData{
		Version: 1, Schema: append([]format.SchemaElement{root}, elements...), RowGroups: []format.RowGroup{},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := append([]byte("PAR1"), foot...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(foot))), "PAR1"...)
}

func TestFitLegacyLayouts(t *testing.T) {
	group := func(name string, kind format.LogicalTypeValue, repetition format.FieldRepetitionType, children int32) format.SchemaElement {
		return format.SchemaElement{
			Name: name, NumChildren: thrift.New(children), RepetitionType: thrift.New(repetition),
			LogicalType: format.LogicalType{Value: kind},
		}
	}
	leaf := func(name string, repetition format.FieldRepetitionType) format.SchemaElement {
		return format.SchemaElement{Name: name, Type: thrift.New(format.Int32), RepetitionType: thrift.New(repetition)}
	}
	key := leaf("key", format.Optional)
	key.Type, key.LogicalType.Value = thrift.New(format.ByteArray), new(format.StringType)
	optionalList := group("c", new(format.ListType), format.Optional, 1)
	long := leaf("c", format.Optional)
	long.LogicalType.Value = &format.DecimalType{Precision: 10, Scale: 2}
	for name, test := range map[string]struct {
		table    string
		elements []format.SchemaElement
		fits     bool
	}{
		"repeated leaf in a list": {arrayOfInts, []format.SchemaElement{optionalList, leaf("item", format.Repeated)}, true},
		"repeated struct in a list": {arrayOfStructs, []format.SchemaElement{
			optionalList, group("bag", nil, format.Repeated, 2), leaf("a", format.Optional), leaf("b", format.Optional),
		}, true},
		"group named array": {arrayOfStructs, []format.SchemaElement{
			optionalList, group("array", nil, format.Repeated, 1), leaf("a", format.Optional),
		}, true},
		"group named like a tuple": {arrayOfStructs, []format.SchemaElement{
			optionalList, group("c_tuple", nil, format.Repeated, 1), leaf("a", format.Optional),
		}, true},
		"group named otherwise": {arrayOfStructs, []format.SchemaElement{
			optionalList, group("bag", nil, format.Repeated, 1), leaf("a", format.Optional),
		}, false},
		"list that does not repeat": {arrayOfInts, []format.SchemaElement{optionalList, leaf("item", format.Optional)}, false},
		"map with an optional key": {mapOfInts, []format.SchemaElement{
			group("c", new(format.MapType), format.Optional, 1), group("map", nil, format.Repeated, 2), key, leaf("value", format.Optional),
		}, true},
		"map without values": {mapOfInts, []format.SchemaElement{
			group("c", new(format.MapType), format.Optional, 1), group("map", nil, format.Repeated, 1), key,
		}, false},
		"decimal too long for its integer": {"decimal(10,2)", []format.SchemaElement{long}, false},
	} {
		t.Run(name, func(t *testing.T) {
			file, r := checked(t, schemaFile(t, test.elements...))
			err := fit(t.Context(), file, r, tableOf(t, "c "+test.table))
			if test.fits && err != nil || !test.fits && !errors.Is(err, ErrMisfit) {
				t.Error(err)
			}
		})
	}
}

func TestFitColumns(t *testing.T) {
	i32 := parquet.Leaf(parquet.Int32Type)
	for name, test := range map[string]struct {
		file   parquet.Group
		table  []string
		column string // of the refusal; "" if it fits
		reason string
	}{
		"same columns":          {parquet.Group{"a": i32, "b": i32}, []string{"b integer", "a integer"}, "", ""},
		"nullable missing":      {parquet.Group{"a": i32}, []string{"a integer", "b string", "c " + structOfInts}, "", ""},
		"NOT NULL missing":      {parquet.Group{"a": i32}, []string{"a integer", "b string!"}, "b", "lacks"},
		"NOT NULL below":        {parquet.Group{"s": parquet.Group{"x": i32}}, []string{"s " + structOfSome}, "s.a", "lacks"},
		"one too many":          {parquet.Group{"a": i32, "x": i32}, []string{"a integer"}, "x", "no such column"},
		"one too many below":    {parquet.Group{"s": parquet.Group{"a": i32, "x": i32}}, []string{"s " + structOfInts}, "s.x", "no such column"},
		"letter case":           {parquet.Group{"A": i32}, []string{"a integer"}, "a", `spells the column "A", the table "a"`},
		"letter case below":     {parquet.Group{"s": parquet.Group{"A": i32}}, []string{"s " + structOfInts}, "s.a", "spells"},
		"twice but for case":    {parquet.Group{"A": i32, "a": i32}, []string{"a integer"}, "a", "two columns"},
		"void missing":          {parquet.Group{"a": i32}, []string{"a integer", "v void"}, "", ""},
		"name with a dot":       {parquet.Group{"a.b": i32}, []string{"a.b integer"}, "", ""},
		"other letters of case": {parquet.Group{"É": i32}, []string{"é integer"}, "é", "spells"},
	} {
		t.Run(name, func(t *testing.T) {
			file, r := checked(t, emptyFile(t, test.file))
			refusal(t, fit(t.Context(), file, r, tableOf(t, test.table...)), test.column, test.reason)
		})
	}
}

// refusal wants a misfit of the column, or none if column is "".
func refusal(t *testing.T, err error, column, reason string) {
	t.Helper()
	if column == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	var e *fault.Error
	if !errors.Is(err, ErrMisfit) || !errors.As(err, &e) || e.Column != column || !strings.Contains(e.Reason, reason) || e.Hint == "" {
		t.Errorf("%v; expected a refusal of %q with %q and a hint", err, column, reason)
	}
}

func ptrTo[T any](v T) *T { return &v }

func TestFitNotNull(t *testing.T) {
	type flat struct {
		C *int32 `parquet:"c,optional"`
	}
	type pair struct {
		A *int32 `parquet:"a,optional"`
	}
	type nested struct {
		S *pair `parquet:"s,optional"`
	}
	type list struct {
		L []*int32 `parquet:"l,list,optional" parquet-element:",optional"`
	}
	type dict struct {
		M map[string]*int32 `parquet:"m,optional" parquet-value:",optional"`
	}
	one, lz4 := ptrTo(int32(1)), parquet.Compression(&parquet.Lz4Raw)
	for name, test := range map[string]struct {
		file   []byte
		table  string
		column string
	}{
		"no nulls":               {fileOf(t, []flat{{one}}), "c integer!", ""},
		"a null":                 {fileOf(t, []flat{{one}, {nil}}), "c integer!", "c"},
		"a null that may be":     {fileOf(t, []flat{{one}, {nil}}), "c integer", ""},
		"null struct, no value":  {fileOf(t, []nested{{nil}, {&pair{one}}}), "s " + structOfSome, ""},
		"struct with a null":     {fileOf(t, []nested{{nil}, {&pair{nil}}}), "s " + structOfSome, "s.a"},
		"null struct":            {fileOf(t, []nested{{nil}, {&pair{nil}}}), "s " + structOfInts + "!", "s"},
		"struct of nulls":        {fileOf(t, []nested{{&pair{nil}}}), "s " + structOfInts + "!", ""},
		"elements":               {fileOf(t, []list{{[]*int32{one}}, {nil}, {[]*int32{}}}), "l " + arrayOfSome, ""},
		"null element":           {fileOf(t, []list{{[]*int32{one, nil}}}), "l " + arrayOfSome, "l.element"},
		"null element that may":  {fileOf(t, []list{{[]*int32{one, nil}}}), "l " + arrayOfInts, ""},
		"null list":              {fileOf(t, []list{{[]*int32{one}}, {nil}}), "l " + arrayOfInts + "!", "l"},
		"values":                 {fileOf(t, []dict{{map[string]*int32{"a": one}}, {}}), "m " + mapOfSome, ""},
		"null value":             {fileOf(t, []dict{{map[string]*int32{"a": nil}}}), "m " + mapOfSome, "m.value"},
		"unreadable but counted": {fileOf(t, []flat{{one}}, lz4), "c integer!", ""},
		"unreadable":             {fileOf(t, []list{{[]*int32{one}}}, lz4), "l " + arrayOfSome, "l.element"},
	} {
		t.Run(name, func(t *testing.T) {
			file, r := checked(t, test.file)
			refusal(t, fit(t.Context(), file, r, tableOf(t, test.table)), test.column, "NOT NULL")
		})
	}
}

func TestFitPartitionColumns(t *testing.T) {
	type inFile struct {
		ID     int64   `parquet:"id"`
		Day    int32   `parquet:"day,date"`
		Region *string `parquet:"region,optional"`
	}
	columns := []string{"id long", "day date", "region string"}
	const may1 = 19844
	eu, us := ptrTo("EU"), ptrTo("US")
	for name, test := range map[string]struct {
		file   []byte
		values map[string]*string
		column string
		reason string
	}{
		"left out": {
			fileOf(t, []struct {
				ID int64 `parquet:"id"`
			}{{1}}), map[string]*string{"day": ptrTo("2024-05-01"), "region": eu}, "", "",
		},
		"the directory's values": {
			fileOf(t, []inFile{{1, may1, eu}, {2, may1, eu}}), map[string]*string{"day": ptrTo("2024-05-01"), "region": eu}, "", "",
		},
		"one row of another": {
			fileOf(t, []inFile{{1, may1, eu}, {2, may1, us}}), map[string]*string{"day": ptrTo("2024-05-01"), "region": eu},
			"region", "the file has rows of region=US, the directory is that of region=EU",
		},
		"another day": {
			fileOf(t, []inFile{{1, may1 + 1, eu}}), map[string]*string{"day": ptrTo("2024-05-01"), "region": eu},
			"day", "day=2024-05-02",
		},
		"null in the null directory": {
			fileOf(t, []inFile{{1, may1, nil}}), map[string]*string{"day": ptrTo("2024-05-01"), "region": nil}, "", "",
		},
		"empty string is null": {
			fileOf(t, []inFile{{1, may1, ptrTo("")}}), map[string]*string{"day": ptrTo("2024-05-01"), "region": nil}, "", "",
		},
		"null elsewhere": {
			fileOf(t, []inFile{{1, may1, nil}}), map[string]*string{"day": ptrTo("2024-05-01"), "region": eu},
			"region", "region=__HIVE_DEFAULT_PARTITION__",
		},
		"no rows": {
			fileOf(t, []inFile{}), map[string]*string{"day": ptrTo("2024-05-01"), "region": eu}, "", "",
		},
		"unreadable": {
			fileOf(t, []inFile{{1, may1, eu}}, parquet.Compression(&parquet.Lz4Raw)),
			map[string]*string{"day": ptrTo("2024-05-01"), "region": eu}, "day", "cannot be compared",
		},
		"another type": {
			fileOf(t, []struct {
				ID  int64  `parquet:"id"`
				Day string `parquet:"day"`
			}{{1, "2024-05-01"}}), map[string]*string{"day": ptrTo("2024-05-01"), "region": eu}, "day", "the file has STRING, the table DATE",
		},
		"at the root": {
			fileOf(t, []inFile{{1, may1, eu}}), nil, "day", "partitioned by day, region",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, r := checked(t, test.file)
			to := tableOf(t, columns...)
			to.partitionColumns, to.partitionValues = []string{"day", "region"}, test.values
			refusal(t, fit(t.Context(), file, r, to), test.column, test.reason)
		})
	}
}

func TestFitPartitionValuesOfEveryType(t *testing.T) {
	type all struct {
		B   bool    `parquet:"b"`
		I   int32   `parquet:"i"`
		L   int64   `parquet:"l"`
		F   float32 `parquet:"f"`
		D   float64 `parquet:"d"`
		Dec int64   `parquet:"dec,decimal(2:18)"`
		TS  int64   `parquet:"ts,timestamp(microsecond)"`
		S   string  `parquet:"s"`
	}
	file, r := checked(t, fileOf(t, []all{{true, -3, 1 << 60, 0.1, 1e10, -150, 1714557600123456, "a b/ü"}}))
	to := tableOf(t, "b boolean", "i integer", "l long", "f float", "d double", "dec decimal(18,2)", "ts timestamp", "s string")
	to.partitionColumns = []string{"b", "i", "l", "f", "d", "dec", "ts", "s"}
	to.partitionValues = map[string]*string{
		"b": ptrTo("true"), "i": ptrTo("-3"), "l": ptrTo("1152921504606846976"), "f": ptrTo("0.1"), "d": ptrTo("1.0E10"),
		"dec": ptrTo("-1.50"), "ts": ptrTo("2024-05-01T10:00:00.123456Z"), "s": ptrTo("a b/ü"),
	}
	if err := fit(t.Context(), file, r, to); err != nil {
		t.Error(err)
	}
	for column, other := range map[string]string{
		"b": "false", "i": "3", "l": "1152921504606846977", "f": "0.2", "d": "1.0E11", "dec": "-1.51",
		"ts": "2024-05-01T10:00:00.123457Z", "s": "a b",
	} {
		changed := *to
		changed.partitionValues = map[string]*string{}
		for k, v := range to.partitionValues {
			changed.partitionValues[k] = v
		}
		changed.partitionValues[column] = &other
		refusal(t, fit(t.Context(), file, r, &changed), column, "the file has rows of")
	}
}

func TestFitHints(t *testing.T) {
	for _, test := range []struct {
		table, hint string
		node        parquet.Node
	}{
		{"timestamp", "coerce_timestamps='us'", parquet.Timestamp(parquet.Nanosecond)},
		{"timestamp", "AS TIMESTAMPTZ", parquet.Timestamp(parquet.Millisecond)},
		{"timestamp", "tz_localize('UTC')", parquet.TimestampAdjusted(parquet.Microsecond, false)},
		{"timestamp", "tz_localize('UTC')", parquet.TimestampAdjusted(parquet.Nanosecond, false)},
		{"timestamp", "coerce_timestamps='us'", parquet.TimestampAdjusted(parquet.Nanosecond, false)},
		{"timestamp_ntz", "tz_localize(None)", parquet.Timestamp(parquet.Microsecond)},
		{"integer", `astype("int32")`, parquet.Int(64)},
		{"binary", "AS BLOB", parquet.String()},
		{"decimal(10,2)", "AS DECIMAL(10,2)", parquet.Leaf(parquet.DoubleType)},
		{"void", "leave the column out", parquet.String()},
	} {
		file, r := checked(t, emptyFile(t, parquet.Group{"c": test.node}))
		err := fit(t.Context(), file, r, tableOf(t, "c "+test.table))
		if hint := fault.Hint(err); !strings.Contains(hint, test.hint) {
			t.Errorf("%s from %s: hint %q lacks %q", test.table, test.node, hint, test.hint)
		}
	}
}

// TestFitRefusesOddInputsByName drops real files into tables that they almost
// fit.
func TestFitRefusesOddInputsByName(t *testing.T) {
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES is not set: it names the folder with the test tables")
	}
	for _, test := range []struct {
		file           string
		table          []string
		column, reason string
	}{
		{"spark-rapids-it/timestamp-nanos.parquet", []string{"id long", "name string", "birthday timestamp"}, "birthday", "nanoseconds"},
		{"spark-rapids/timestamp-date-test.parquet", []string{"time timestamp", "date date"}, "", ""},
		{"hyparquet/float16_nonzeros_and_nans.parquet", []string{"x float"}, "x", "FLOAT16"},
		{"hyparquet/fixed_length_decimal.parquet", []string{"value decimal(25,2)"}, "", ""},
		{"hyparquet/byte_array_decimal.parquet", []string{"value decimal(4,2)"}, "", ""},
		{"hyparquet/concatenated_gzip_members.parquet", []string{"long_col long"}, "long_col", "unsigned BIGINT"},
		{"hyparquet/continued_page.parquet", []string{"int_list " + arrayOfInts}, "", ""},
		{"hyparquet/shredded-bool.parquet", []string{"id integer", "var string"}, "var", "VARIANT"},
		{"spark-rapids-it/binary_as_string.parquet", []string{"a long", "b string", "c string"}, "b", "the file has BINARY, the table STRING"},
		{"polars/foods2.parquet", []string{"category string", "calories long", "fats_g double", "sugars_g long"}, "", ""},
	} {
		file, r := openChecked(t, filepath.Join(root, "parquet-inputs", test.file))
		t.Run(test.file, func(t *testing.T) {
			refusal(t, fit(t.Context(), file, r, tableOf(t, test.table...)), test.column, test.reason)
		})
	}
}
