package parquetview

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

type inner struct {
	X *int32 `parquet:"x,optional"`
	Y string `parquet:"y"`
}

type row struct {
	ID    int64            `parquet:"id"`
	Name  *string          `parquet:"name,optional"`
	In    *inner           `parquet:"in,optional"`
	List  []inner          `parquet:"list,list"`
	Map   map[string]int64 `parquet:"map"`
	Score float64          `parquet:"score"`
}

func ptr[T any](v T) *T { return &v }

// sample has two row groups, of two rows and of one.
func sample(t testing.TB, options ...parquet.WriterOption) []byte {
	return encode(t, []row{
		{ID: 1, Name: ptr("a"), In: &inner{X: ptr(int32(5)), Y: "y"}, List: []inner{{Y: "p"}, {Y: "q"}}, Map: map[string]int64{"k": 7}},
		{ID: 2, Score: 0.5},
		{ID: 3, Name: ptr("c"), In: &inner{Y: "z"}, List: []inner{{X: ptr(int32(6)), Y: "r"}}},
	}, 2, options...)
}

func named(name, source string, t Type) Field {
	return Field{Name: name, Source: Source{Name: source}, Type: t}
}

func same(name string, t Type) Field { return named(name, name, t) }

func of(kind Kind, fields ...Field) Type { return Type{Kind: kind, Fields: fields} }

func constant(name string, t Type, v any) Field {
	return Field{Name: name, Type: t, Constant: &Constant{v}}
}

var innerType = of(Struct, same("x", of(Int32)), same("y", of(String)))

// allColumns are those of sample.
func allColumns() []Field {
	return []Field{
		same("id", of(Int64)), same("name", of(String)), same("in", innerType),
		same("list", of(List, same("", innerType))),
		same("map", of(Map, same("", of(String)), same("", of(Int64)))),
		same("score", of(Float64)),
	}
}

func TestFileThatHasWhatIsWantedIsRaw(t *testing.T) {
	b := sample(t)
	v, out := serve(t, b, Wanted{Columns: allColumns()})
	if !v.Raw || v.NumRows != 3 || !slices.Equal(out, b) {
		t.Errorf("raw %t, %d rows", v.Raw, v.NumRows)
	}
	for name, change := range map[string]func(c []Field) []Field{
		"another name":  func(c []Field) []Field { c[0].Name = "ID"; return c },
		"another order": func(c []Field) []Field { c[0], c[1] = c[1], c[0]; return c },
		"a column less": func(c []Field) []Field { return c[:5] },
		"a column more": func(c []Field) []Field { return append(c, same("more", of(Int32))) },
		"a constant":    func(c []Field) []Field { c[0].Constant = &Constant{int64(1)}; return c },
		"another type":  func(c []Field) []Field { c[1].Type = of(Binary); return c },
		"a member renamed": func(c []Field) []Field {
			c[2].Type = of(Struct, named("a", "x", of(Int32)), same("y", of(String)))
			return c
		},
		"a member less":       func(c []Field) []Field { c[2].Type = of(Struct, same("x", of(Int32))); return c },
		"members in an order": func(c []Field) []Field { c[2].Type = of(Struct, innerType.Fields[1], innerType.Fields[0]); return c },
		"an element's member": func(c []Field) []Field { c[3].Type = of(List, same("", of(Struct, same("y", of(String))))); return c },
	} {
		if v, err := plan(b, Wanted{Columns: change(allColumns())}); err != nil || v.Raw {
			t.Errorf("%s: served raw, or %v", name, err)
		}
	}
}

func TestColumnsAreRenamedDroppedReorderedAndAdded(t *testing.T) {
	b := sample(t)
	v, out := serve(t, b, Wanted{Columns: []Field{
		named("scores", "score", of(Float64)),
		named("pairs", "map", of(Map, same("", of(String)), same("", of(Int64)))),
		named("items", "list", of(List, same("", of(Struct, named("why", "y", of(String)))))),
		named("inside", "in", of(Struct, named("why", "y", of(String)), named("ex", "x", of(Int32)))),
		same("none", of(Date)),
		same("nones", of(List, same("", of(Map, same("", of(String)), same("", of(Decimal)))))),
		same("void", of(Void)),
		named("key", "id", of(Int64)),
	}})
	want := []string{
		`{"inside":{"ex":5,"why":"y"},"items":[{"why":"p"},{"why":"q"}],"key":1,"none":null,"nones":null,"pairs":{"k":7},"scores":0,"void":null}`,
		`{"inside":null,"items":[],"key":2,"none":null,"nones":null,"pairs":{},"scores":0.5,"void":null}`,
		`{"inside":{"ex":null,"why":"z"},"items":[{"why":"r"}],"key":3,"none":null,"nones":null,"pairs":{},"scores":0,"void":null}`,
	}
	if got := rowsOf(t, out); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if v.Raw || v.NumRows != 3 || !slices.Equal(out[:v.Segments[0].Length], b[:v.Segments[0].Length]) {
		t.Error("the data does not lie where it was")
	}
	served, _ := decodeFooter(t, out)
	source, _ := decodeFooter(t, b)
	for i, g := range served.RowGroups {
		got, want := g.Columns[len(g.Columns)-1], source.RowGroups[i].Columns[0]
		if !slices.Equal(got.MetaData.PathInSchema, []string{"key"}) || got.MetaData.DataPageOffset != want.MetaData.DataPageOffset ||
			!reflect.DeepEqual(got.MetaData.Statistics, want.MetaData.Statistics) || got.OffsetIndexOffset != want.OffsetIndexOffset ||
			got.ColumnIndexLength != want.ColumnIndexLength || got.OffsetIndexOffset == 0 {
			t.Errorf("row group %d describes a chunk that was not touched as %+v instead of %+v", i, got, want)
		}
	}
	for _, e := range served.Schema {
		if e.Name == "void" && (e.Type.V != format.Int32 || e.LogicalType.Value != nil) {
			t.Errorf("%+v", e)
		}
		if e.FieldID != 0 {
			t.Errorf("column %s has the field id %d", e.Name, e.FieldID)
		}
	}
}

func TestConstants(t *testing.T) {
	large, _ := new(big.Int).SetString("-12345678901234567890123456789012345678", 10)
	columns := []Field{
		same("id", of(Int64)),
		constant("bool", of(Boolean), true), constant("no", of(Boolean), false), constant("byte", of(Int8), int32(-3)),
		constant("short", of(Int16), int32(-300)), constant("int", of(Int32), int32(7)), constant("long", of(Int64), int64(1)<<40),
		constant("float", of(Float32), float32(1.5)), constant("double", of(Float64), -0.25), constant("string", of(String), "Ünï"),
		constant("empty", of(String), ""), constant("date", of(Date), int32(19000)), constant("null", of(Int64), nil),
		constant("dec", Type{Kind: Decimal, Precision: 38, Scale: 2}, large),
	}
	_, out := serve(t, sample(t), Wanted{Columns: columns})
	for _, got := range rowsOf(t, out) {
		for _, part := range []string{
			`"bool":true`, `"no":false`, `"byte":-3`, `"short":-300`, `"int":7`, `"long":1099511627776`, `"float":1.5`, `"double":-0.25`,
			`"string":"Ünï"`, `"empty":""`, `"null":null`,
		} {
			if !strings.Contains(got, part) {
				t.Errorf("%s is missing in %s", part, got)
			}
		}
	}
	meta, _ := decodeFooter(t, out)
	last := meta.RowGroups[1].Columns[13].MetaData
	if want := []byte{0xf6, 0xb6, 0x4f, 0x09, 0x0f, 0xfd, 0xcc, 0xec, 0x3b, 0xb6, 0x6f, 0xaf, 0x21, 0xc7, 0x0c, 0xb2}; !slices.Equal(last.Statistics.MinValue, want) {
		t.Errorf("the decimal is %x", last.Statistics.MinValue)
	}
	for _, bad := range []Field{
		constant("c", of(Int8), int32(200)), constant("c", of(String), int32(1)), constant("c", of(Int32), int64(1)),
		constant("c", Type{Kind: Decimal, Precision: 3}, big.NewInt(1000)), constant("c", of(Struct, same("x", of(Int32))), "x"),
	} {
		if _, err := plan(sample(t), Wanted{Columns: []Field{bad}}); !errors.Is(err, ErrMismatch) {
			t.Errorf("%v as %v: %v", bad.Constant.Value, bad.Type, err)
		}
	}
}

// A page of a constant column holds so many values at most; booleans, which are
// compressed by hand, differ most between pages.
func TestConstantsOfManyRows(t *testing.T) {
	const rows = maxPageRows + 77
	b := encode(t, make([]struct {
		N int8 `parquet:"n"`
	}, rows), rows)
	_, out := serve(t, b, Wanted{Columns: []Field{constant("b", of(Boolean), true), constant("s", of(String), "x")}})
	f, err := parquet.OpenFile(bytes.NewReader(out), int64(len(out)), parquet.SkipPageIndex(true))
	if err != nil {
		t.Fatal(err)
	}
	type served struct {
		B *bool   `parquet:"b,optional"`
		S *string `parquet:"s,optional"`
	}
	reader := parquet.NewGenericReader[served](f)
	n := 0
	for batch := make([]served, 1000); err == nil; {
		var k int
		k, err = reader.Read(batch)
		for _, r := range batch[:k] {
			if r.B == nil || !*r.B || r.S == nil || *r.S != "x" {
				t.Fatalf("row %d is %v, %v", n, r.B, r.S)
			}
			n++
		}
	}
	if n != rows || len(out) > len(b)+20_000 {
		t.Errorf("%d rows in %d bytes", n, len(out))
	}
}

func TestColumnsAreFoundByNameInAnyCase(t *testing.T) {
	b := encode(t, []struct {
		A int64 `parquet:"Abc"`
		B int64 `parquet:"aBC"`
		C int64 `parquet:"X"`
	}{{1, 2, 3}}, 1)
	for source, want := range map[string]string{"Abc": `{"c":1}`, "aBC": `{"c":2}`, "x": `{"c":3}`, "y": `{"c":null}`} {
		_, out := serve(t, b, Wanted{Columns: []Field{named("c", source, of(Int64))}})
		if got := rowsOf(t, out); got[0] != want {
			t.Errorf("%s: %s", source, got[0])
		}
	}
	if _, err := plan(b, Wanted{Columns: []Field{named("c", "ABC", of(Int64))}}); !errors.Is(err, ErrMismatch) {
		t.Errorf("two columns could be meant: %v", err)
	}
	if _, err := plan(b, Wanted{Columns: []Field{{Name: "c", Type: of(Int64), Required: true}}}); !errors.Is(err, ErrMismatch) {
		t.Errorf("a required column is missing: %v", err)
	}
}

func TestColumnsAreFoundByID(t *testing.T) {
	byID := func(name string, id int32, t Type) Field {
		return Field{Name: name, Source: Source{Name: "a", ByID: true, ID: id}, Type: t}
	}
	columns := []Field{
		byID("c", 2, of(Int64)), byID("d", 9, of(Int64)),
		byID("s", 3, of(Struct, byID("q", 1, of(Int64)), byID("p", 4, of(Int64)))),
	}
	type s struct {
		P int64 `parquet:"p,id(4)"`
	}
	b := encode(t, []struct {
		A int64 `parquet:"a,id(1)"`
		B int64 `parquet:"b,id(2)"`
		S s     `parquet:"s,id(3)"`
	}{{1, 2, s{3}}}, 1)
	_, out := serve(t, b, Wanted{Columns: columns})
	if got := rowsOf(t, out); got[0] != `{"c":2,"d":null,"s":{"p":3,"q":null}}` {
		t.Error(got)
	}
	plainFile := encode(t, []struct {
		A int64 `parquet:"a"`
	}{{1}}, 1)
	_, err := plan(plainFile, Wanted{Columns: columns})
	var f *fault.Error
	if !errors.Is(err, ErrMismatch) || !errors.As(err, &f) || f.Column != "c" {
		t.Errorf("a file without ids: %v", err)
	}
}

func TestGroupsOfManyColumnsAreFoundAlike(t *testing.T) {
	group := parquet.Group{}
	for i := range 2 * manyMembers {
		group[fmt.Sprintf("c%d", i)] = parquet.Leaf(parquet.Int32Type)
	}
	group["Dup"], group["dup"] = parquet.Leaf(parquet.Int32Type), parquet.Leaf(parquet.Int32Type)
	b := encode(t, []any{map[string]any{}}, 1, parquet.NewSchema("m", group))
	for source, ok := range map[string]bool{"c10": true, "C10": true, "Dup": true, "DUP": false} {
		v, err := plan(b, Wanted{Columns: []Field{{Name: "c", Source: Source{Name: source}, Type: of(Int32), Required: true}}})
		if ok != (err == nil) || err != nil && !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %v, %v", source, v, err)
		}
	}
}

func TestWhatCannotBeServedNamesColumnAndTypes(t *testing.T) {
	for _, test := range []struct {
		field  Field
		column string
		reason string
	}{
		{same("id", of(Int32)), "id", "the file has INT64 INT(64,signed=true), the table integer"},
		{same("name", of(Int32)), "name", "the file has BYTE_ARRAY STRING, the table integer"},
		{same("in", of(Struct, same("y", of(Date)))), "in.y", "the file has BYTE_ARRAY STRING, the table date"},
		{same("list", of(List, same("", of(Struct, same("y", of(Date)))))), "list.element.y", "the table date"},
		{same("map", of(Map, same("", of(String)), same("", of(String)))), "map.value", "the table string"},
		{same("map", of(List, same("", of(String)))), "map", "the file has group MAP, the table array<string>"},
		{same("in", of(Map, same("", of(String)), same("", of(String)))), "in", "the table map<string,string>"},
		{same("id", of(Struct, same("y", of(Date)))), "id", "the table struct<y:date>"},
		{same("in", of(Int64)), "in", "the file has group, the table long"},
	} {
		_, err := plan(sample(t), Wanted{Columns: []Field{test.field}})
		var f *fault.Error
		if !errors.Is(err, ErrMismatch) || !errors.As(err, &f) || f.Column != test.column || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%v, want %q on %s", err, test.reason, test.column)
		}
	}
	for _, columns := range [][]Field{nil, {same("in", of(Struct))}, {same("new", of(Struct))}} {
		if _, err := plan(sample(t), Wanted{Columns: columns}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("a group without columns: %v", err)
		}
	}
}

func TestBrokenFilesAreRefused(t *testing.T) {
	renamed := Wanted{Columns: []Field{named("key", "id", of(Int64))}}
	b := sample(t)
	for name, test := range map[string]struct {
		b    []byte
		kind error
	}{
		"empty":               {nil, ErrBroken},
		"text":                {[]byte("id,name\n1,a\n2,b\n"), ErrBroken},
		"cut":                 {b[:len(b)-1], ErrBroken},
		"footer too long":     {[]byte("PAR1....\xff\xff\xff\x7fPAR1"), ErrBroken},
		"encrypted footer":    {[]byte("PAREsecretsecret\x05\x00\x00\x00PARE"), ErrUnsupported},
		"rows":                {edit(t, b, func(m *format.FileMetaData) { m.NumRows++ }), ErrBroken},
		"rows of a group":     {edit(t, b, func(m *format.FileMetaData) { m.RowGroups[0].NumRows++; m.NumRows++ }), ErrBroken},
		"negative rows":       {edit(t, b, func(m *format.FileMetaData) { m.RowGroups[0].NumRows = -1; m.NumRows = 0 }), ErrBroken},
		"a chunk less":        {edit(t, b, func(m *format.FileMetaData) { c := &m.RowGroups[1].Columns; *c = (*c)[1:] }), ErrBroken},
		"chunk outside":       {edit(t, b, func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.DataPageOffset = 1 << 40 }), ErrBroken},
		"chunk too long":      {edit(t, b, func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.TotalCompressedSize = 1 << 62 }), ErrBroken},
		"chunk in the magic":  {edit(t, b, func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.DataPageOffset = 1 }), ErrBroken},
		"another type":        {edit(t, b, func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.Type = format.Double }), ErrBroken},
		"data elsewhere":      {edit(t, b, func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].FilePath = "x" }), ErrUnsupported},
		"dictionary too late": {edit(t, b, func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.DictionaryPageOffset = 1 << 30 }), ErrBroken},
	} {
		if _, err := plan(test.b, renamed); !errors.Is(err, test.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSamePlanForTheSameInput(t *testing.T) {
	b := sample(t)
	w := Wanted{Columns: append(allColumns()[1:], constant("c", of(String), "x"), same("none", of(Int64)))}
	first, err := plan(b, w)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, err := plan(b, w); err != nil || !reflect.DeepEqual(first, again) {
			t.Fatalf("%+v, %v instead of %+v", again, err, first)
		}
	}
}

func TestWhatTheFooterDoesNotReferToIsZeros(t *testing.T) {
	type wide struct {
		Before int64  `parquet:"a"`
		Long   []byte `parquet:"b"`
		After  int64  `parquet:"c"`
	}
	long := make([]byte, 1000)
	for i := range long {
		long[i] = byte(i * i >> 5)
	}
	b := encode(t, []wide{{1, long, 2}, {3, long[1:], 4}}, 1)
	v, out := serve(t, b, Wanted{Columns: []Field{named("x", "a", of(Int64)), named("y", "c", of(Int64))}})
	if got := rowsOf(t, out); !slices.Equal(got, []string{`{"x":1,"y":2}`, `{"x":3,"y":4}`}) {
		t.Error(got)
	}
	zeros := int64(0)
	for _, s := range v.Segments {
		if !s.Raw && s.Bytes == nil && s.Chunk == nil {
			zeros += s.Length
		}
	}
	if zeros < 2*1000 || bytes.Contains(out, long[:16]) {
		t.Errorf("%d segments, %d bytes of zeros", len(v.Segments), zeros)
	}
	// So that a copy of it can be given to a table.
	if _, err := parquetfile.Check(bytes.NewReader(out), int64(len(out))); err != nil {
		t.Error(err)
	}
}

func TestFooterKeepsItsWriterAndDropsSchemas(t *testing.T) {
	b := sample(t, parquet.CreatedBy("writer", "1.2", "abc"), parquet.KeyValueMetadata("keep", "me"),
		parquet.KeyValueMetadata(sparkHint, "{}"), parquet.KeyValueMetadata(pandasHint, "{}"))
	_, out := serve(t, b, Wanted{Columns: []Field{named("key", "id", of(Int64))}})
	source, _ := decodeFooter(t, b)
	meta, _ := decodeFooter(t, out)
	if meta.CreatedBy != source.CreatedBy || meta.Version != source.Version || len(meta.ColumnOrders) != 1 ||
		len(meta.KeyValueMetadata) != 1 || meta.KeyValueMetadata[0].Key != "keep" || meta.KeyValueMetadata[0].Value != "me" {
		t.Errorf("%+v", meta)
	}
}

// A long constant in many row groups stands for many columns in them.
func TestWhatWouldTakeTooMuchMemoryIsRefused(t *testing.T) {
	const length = 4 << 20
	b := encode(t, []struct {
		A int8 `parquet:"a"`
	}{{1}}, 1)
	groups := func(n int) []byte {
		return edit(t, b, func(m *format.FileMetaData) {
			m.RowGroups = slices.Repeat(m.RowGroups, n)
			m.NumRows = int64(n)
		})
	}
	w := Wanted{Columns: []Field{constant("c", of(String), strings.Repeat("x", length))}}
	if _, err := plan(groups(maxMade/length+1), w); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if _, err := plan(groups(2), w); err != nil {
		t.Error(err)
	}
}
