package parquetview

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// withoutFillers is the rendered file for the library that reads it back, which
// does not know how to skip pages: rendered chunks end behind their last value.
func withoutFillers(t testing.TB, b []byte, v *View) []byte {
	t.Helper()
	return edit(t, b, func(m *format.FileMetaData) {
		for _, g := range m.RowGroups {
			for i := range g.Columns {
				meta := &g.Columns[i].MetaData
				if slices.ContainsFunc(v.Segments, func(s Segment) bool { return s.Chunk != nil && s.Offset == meta.DataPageOffset }) {
					shorten(t, b, meta)
				}
			}
		}
	})
}

func shorten(t testing.TB, b []byte, m *format.ColumnMetaData) {
	t.Helper()
	at, end := m.DataPageOffset, m.DataPageOffset+m.TotalCompressedSize
	for n := int64(0); n < m.NumValues; {
		var h format.PageHeader
		r := new(thrift.CompactProtocol).NewReaderFromBytes(b[at:end])
		if err := thrift.NewDecoder(r).Decode(&h); err != nil {
			t.Fatal(err)
		}
		at += int64(r.BytesRead()) + int64(h.CompressedPageSize)
		switch h.Type {
		case format.DataPage:
			n += int64(h.DataPageHeader.V.NumValues)
		case format.DataPageV2:
			n += int64(h.DataPageHeaderV2.V.NumValues)
		case format.DictionaryPage:
			m.DictionaryPageOffset = m.DataPageOffset
			m.DataPageOffset = at
		}
	}
	start := m.DataPageOffset
	if m.DictionaryPageOffset > 0 {
		start = m.DictionaryPageOffset
	}
	m.TotalCompressedSize, m.TotalUncompressedSize = at-start, at-start
}

func checkRows(t *testing.T, b []byte, w Wanted, want ...string) (*View, *format.FileMetaData) {
	t.Helper()
	v, out := serve(t, b, w)
	if got := rowsOf(t, withoutFillers(t, out, v)); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if v.NumRows != int64(len(want)) {
		t.Errorf("%d rows instead of %d", v.NumRows, len(want))
	}
	meta, _ := decodeFooter(t, out)
	return v, meta
}

func jobs(v *View) (all []*parquetchunk.Job) {
	for _, s := range v.Segments {
		if s.Chunk != nil {
			all = append(all, s.Chunk)
		}
	}
	return all
}

func TestDeletedRowsAreLeftOut(t *testing.T) {
	b := sample(t)
	rows := []string{
		`{"id":1,"in":{"x":5,"y":"y"},"list":[{"x":null,"y":"p"},{"x":null,"y":"q"}],"map":{"k":7},"name":"a","score":0}`,
		`{"id":2,"in":null,"list":[],"map":{},"name":null,"score":0.5}`,
		`{"id":3,"in":{"x":null,"y":"z"},"list":[{"x":6,"y":"r"}],"map":{},"name":"c","score":0}`,
	}
	source, _ := decodeFooter(t, b)
	for _, test := range []struct {
		deleted []uint64
		groups  []int // groups of the file, -1 for one that is made anew
	}{
		{[]uint64{0}, []int{-1, 1}}, {[]uint64{1}, []int{-1, 1}}, {[]uint64{2}, []int{0}},
		{[]uint64{0, 1}, []int{1}}, {[]uint64{1, 2}, []int{-1}}, {[]uint64{0, 1, 2}, nil},
	} {
		var want []string
		for i, r := range rows {
			if !slices.Contains(test.deleted, uint64(i)) {
				want = append(want, r)
			}
		}
		v, meta := checkRows(t, b, Wanted{Columns: allColumns(), Deleted: roaring64.BitmapOf(test.deleted...)}, want...)
		if len(meta.RowGroups) != len(test.groups) {
			t.Fatalf("without %v: %d row groups", test.deleted, len(meta.RowGroups))
		}
		made := 0
		for i, g := range test.groups {
			for j, c := range meta.RowGroups[i].Columns {
				if g < 0 {
					made++
					if len(c.MetaData.Statistics.MinValue) > 0 || c.OffsetIndexOffset != 0 || c.ColumnIndexOffset != 0 || c.MetaData.BloomFilterOffset != 0 {
						t.Errorf("without %v: row group %d column %d keeps %+v", test.deleted, i, j, c)
					}
				} else if want := source.RowGroups[g].Columns[j]; c.MetaData.DataPageOffset != want.MetaData.DataPageOffset || c.OffsetIndexOffset != want.OffsetIndexOffset {
					t.Errorf("without %v: row group %d column %d was touched", test.deleted, i, j)
				}
			}
		}
		if n := len(jobs(v)); n != made {
			t.Errorf("without %v: %d chunks are made anew, expected %d", test.deleted, n, made)
		}
	}
	if _, err := plan(b, Wanted{Columns: allColumns(), Deleted: roaring64.BitmapOf(3)}); err == nil {
		t.Error("a row that is not there was deleted")
	}
	if v, err := plan(b, Wanted{Columns: allColumns(), Deleted: roaring64.New()}); err != nil || !v.Raw {
		t.Errorf("no row deleted: %v", err)
	}
}

func TestMissingMembersAreNullWhereTheirGroupIsThere(t *testing.T) {
	newMembers := of(Struct, same("n", of(Date)), same("ns", of(Struct, same("a", of(List, same("", of(Int32)))))))
	columns := []Field{
		named("only", "in", newMembers),
		named("some", "in", of(Struct, same("n", of(Void)), same("y", of(String)))),
		same("list", of(List, same("", newMembers))),
		same("map", of(Map, same("", of(String)), same("", of(Int64)))),
	}
	for _, deleted := range []*roaring64.Bitmap{nil, roaring64.BitmapOf(1)} {
		want := []string{
			`{"list":[{"n":null,"ns":null},{"n":null,"ns":null}],"map":{"k":7},"only":{"n":null,"ns":null},"some":{"n":null,"y":"y"}}`,
			`{"list":[],"map":{},"only":null,"some":null}`,
			`{"list":[{"n":null,"ns":null}],"map":{},"only":{"n":null,"ns":null},"some":{"n":null,"y":"z"}}`,
		}
		if deleted != nil {
			want = slices.Delete(want, 1, 2)
		}
		v, _ := checkRows(t, sample(t), Wanted{Columns: columns, Deleted: deleted}, want...)
		for _, j := range jobs(v) {
			if j.Nulls != nil && j.Source.MaxRepetition != j.Nulls.Repetition {
				t.Errorf("%+v follows a column that repeats deeper", j.Nulls)
			}
		}
	}
}

func TestWideningIsAConversion(t *testing.T) {
	type file struct {
		I8   int32   `parquet:"i8,optional"`
		I32  int32   `parquet:"i32"`
		I64  int64   `parquet:"i64"`
		F    float32 `parquet:"f"`
		Day  int32   `parquet:"day,date"`
		Ms   int64   `parquet:"ms,timestamp(millisecond)"`
		Ns   int64   `parquet:"ns,timestamp(nanosecond:local)"`
		Dec  int32   `parquet:"dec,decimal(2:9)"`
		List []int32 `parquet:"list,list"`
	}
	b := encode(t, []file{{I8: -3, I32: 7, I64: -1 << 40, F: 1.5, Day: -1, Ms: -1, Ns: -1, Dec: -12345, List: []int32{4, 5}}, {I8: 4}}, 2)
	columns := []Field{
		same("i8", of(Int64)), same("i32", of(Float64)), same("i64", Type{Kind: Decimal, Precision: 22, Scale: 2}), same("f", of(Float64)),
		same("day", of(TimestampNTZ)), same("ms", of(Timestamp)), same("ns", of(TimestampNTZ)),
		same("dec", Type{Kind: Decimal, Precision: 12, Scale: 4}), same("list", of(List, same("", of(Int64)))),
	}
	v, out := serve(t, b, Wanted{Columns: columns})
	meta, _ := decodeFooter(t, out)
	if len(jobs(v)) != len(columns) {
		t.Errorf("%d conversions", len(jobs(v)))
	}
	le := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	double := func(v float64) []byte { return le(int64(math.Float64bits(v))) }
	decimal, _ := decimalBytes(columns[2].Type.stored(), big.NewInt(-100<<40))
	for i, want := range [][2][]byte{
		{le(-3), le(4)}, {double(0), double(7)}, {decimal, make([]byte, 16)}, {double(0), double(1.5)},
		{le(-86_400_000_000), le(0)}, {le(-1000), le(0)}, {le(-1), le(0)}, {le(-1_234_500), le(0)},
	} {
		s := meta.RowGroups[0].Columns[i].MetaData.Statistics
		if !bytes.Equal(s.MinValue, want[0]) || !bytes.Equal(s.MaxValue, want[1]) {
			t.Errorf("%s has the bounds %x, %x", columns[i].Name, s.MinValue, s.MaxValue)
		}
	}
	out = withoutFillers(t, out, v)
	f, err := parquet.OpenFile(bytes.NewReader(out), int64(len(out)), parquet.SkipPageIndex(true))
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]parquet.Row, 1)
	if n, err := f.RowGroups()[0].Rows().ReadRows(rows); n != 1 {
		t.Fatal(err)
	}
	got := make([]string, len(rows[0]))
	for i, v := range rows[0] {
		got[i] = v.String()
		if v.Kind() == parquet.FixedLenByteArray {
			got[i] = new(big.Int).Sub(new(big.Int).SetBytes(v.ByteArray()), new(big.Int).Lsh(big.NewInt(1), 128)).String()
		}
	}
	want := []string{"-3", "7", "-109951162777600", "1.5", "-86400000000", "-1000", "-1", "-1234500", "4", "5"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSameValuesUnderAnotherTypeStayWhereTheyAre(t *testing.T) {
	type file struct {
		Bytes []byte `parquet:"bytes"`
		Enum  string `parquet:"enum,enum"`
		Bare  int32  `parquet:"bare"`
		Dec   int64  `parquet:"dec,decimal(2:10)"`
		Local int64  `parquet:"local,timestamp(microsecond:local)"`
		U8    uint8  `parquet:"u8"`
		Str   string `parquet:"str"`
	}
	b := encode(t, []file{{Bytes: []byte("x"), Enum: "e", Bare: 3, Dec: 5, Local: 6, U8: 200, Str: "s"}}, 1)
	b = edit(t, b, func(m *format.FileMetaData) {
		e := &m.Schema[slices.IndexFunc(m.Schema, func(e format.SchemaElement) bool { return e.Name == "bare" })]
		e.LogicalType, e.ConvertedType = format.LogicalType{}, thrift.Null[deprecated.ConvertedType]{}
	})
	v, meta := checkRows(t, b, Wanted{Columns: []Field{
		same("bytes", of(String)), same("enum", of(String)), same("bare", of(Date)),
		same("dec", Type{Kind: Decimal, Precision: 18, Scale: 2}), same("local", of(Timestamp)), same("u8", of(Int16)), same("str", of(Binary)),
	}}, `{"bare":3,"bytes":"x","dec":0.05,"enum":"e","local":6,"str":"s","u8":200}`)
	if len(jobs(v)) > 0 {
		t.Error("values are encoded anew")
	}
	var got []string
	for _, e := range meta.Schema[1:] {
		text := e.LogicalType.String()
		if e.ConvertedType.Valid {
			text += fmt.Sprint("/", e.ConvertedType.V)
		}
		got = append(got, text)
	}
	if want := []string{
		"STRING/0", "STRING/0", "DATE/6", "DECIMAL(18,2)/5", "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)/10", "INT(16,true)/16", "",
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestWhatDoesNotFit(t *testing.T) {
	type leaf struct {
		physical format.Type
		length   int32
		logical  parquetfile.Logical
	}
	integer := func(width int8, signed bool) parquetfile.Logical {
		return parquetfile.Logical{Kind: parquetfile.Int, Width: width, Signed: signed}
	}
	dec := func(p, s int32) parquetfile.Logical {
		return parquetfile.Logical{Kind: parquetfile.Decimal, Precision: p, Scale: s}
	}
	var none parquetfile.Logical
	decimal := func(p, s int) Type { return Type{Kind: Decimal, Precision: p, Scale: s} }
	convert := func(k parquetchunk.ConversionKind) *parquetchunk.ConversionKind { return &k }
	keep := convert(parquetchunk.Keep)
	for _, test := range []struct {
		leaf leaf
		t    Type
		want *parquetchunk.ConversionKind // nil if it does not fit
	}{
		{leaf{format.Int32, 0, integer(16, true)}, of(Int8), nil},
		{leaf{format.Int32, 0, integer(8, false)}, of(Int8), nil},
		{leaf{format.Int32, 0, integer(8, false)}, of(Int16), keep},
		{leaf{format.Int32, 0, integer(32, false)}, of(Int32), nil},
		{leaf{format.Int32, 0, integer(32, false)}, of(Int64), nil},
		{leaf{format.Int32, 0, integer(16, false)}, of(Int64), convert(parquetchunk.ToInt64)},
		{leaf{format.Int64, 0, integer(64, false)}, of(Int64), nil},
		{leaf{format.Int32, 0, none}, of(Int8), keep},
		{leaf{format.Int64, 0, none}, of(Int32), nil},
		{leaf{format.Int64, 0, none}, of(Float64), nil},
		{leaf{format.Double, 0, none}, of(Float32), nil},
		{leaf{format.Int64, 0, none}, of(Timestamp), nil},
		{leaf{format.Int96, 0, none}, of(Timestamp), convert(parquetchunk.Int96ToMicros)},
		{leaf{format.Int32, 0, parquetfile.Logical{Kind: parquetfile.Date}}, of(Timestamp), nil},
		{leaf{format.Int32, 0, parquetfile.Logical{Kind: parquetfile.Date}}, of(Int32), nil},
		{leaf{format.Int32, 0, parquetfile.Logical{Kind: parquetfile.Time, Unit: parquetfile.Millis}}, of(Int32), nil},
		{leaf{format.Int32, 0, dec(5, 2)}, of(Int32), nil},
		{leaf{format.FixedLenByteArray, 16, parquetfile.Logical{Kind: parquetfile.UUID}}, of(String), nil},
		{leaf{format.FixedLenByteArray, 3, dec(5, 2)}, decimal(6, 2), keep},
		{leaf{format.FixedLenByteArray, 3, dec(5, 2)}, decimal(7, 2), convert(parquetchunk.ToDecimal)},
		{leaf{format.Int32, 0, dec(5, 2)}, decimal(9, 2), keep},
		{leaf{format.Int32, 0, dec(5, 2)}, decimal(10, 2), convert(parquetchunk.ToDecimal)},
		{leaf{format.Int32, 0, dec(5, 2)}, decimal(9, 3), convert(parquetchunk.ToDecimal)},
		{leaf{format.Int32, 0, dec(5, 2)}, decimal(5, 3), nil},
		{leaf{format.Int32, 0, dec(5, 2)}, decimal(5, 1), nil},
		{leaf{format.Int32, 0, dec(5, 2)}, decimal(4, 2), nil},
		{leaf{format.Int32, 0, dec(10, 2)}, decimal(10, 2), nil},
		{leaf{format.ByteArray, 0, dec(38, 2)}, decimal(38, 2), keep},
		{leaf{format.ByteArray, 0, none}, decimal(38, 2), nil},
		{leaf{format.Int32, 0, none}, decimal(10, 0), convert(parquetchunk.ToDecimal)},
		{leaf{format.Int32, 0, none}, decimal(9, 0), nil},
		{leaf{format.Int32, 0, integer(8, true)}, decimal(5, 2), convert(parquetchunk.ToDecimal)},
		{leaf{format.Int64, 0, none}, decimal(20, 1), convert(parquetchunk.ToDecimal)},
		{leaf{format.Int64, 0, none}, decimal(19, 1), nil},
		{leaf{format.Boolean, 0, none}, of(Int32), nil},
	} {
		n := &parquetfile.Node{Physical: test.leaf.physical, Length: test.leaf.length, Logical: test.leaf.logical}
		f, ok := fit(n, test.t)
		if ok != (test.want != nil) || ok && f.convert.Kind != *test.want {
			t.Errorf("%v as %v: %v, %+v", n, test.t, ok, f)
		}
	}
}

func TestBoundsOfDecimalsThatTheLibraryGetsWrongAreLeftOut(t *testing.T) {
	schema := parquet.NewSchema("m", parquet.Group{"d": parquet.Decimal(2, 20, parquet.FixedLenByteArrayType(9))})
	b := encode(t, []any{map[string]any{"d": make([]byte, 9)}}, 1, schema)
	field := same("d", Type{Kind: Decimal, Precision: 20, Scale: 2})
	v, out := serve(t, b, Wanted{Columns: []Field{field}})
	meta, _ := decodeFooter(t, out)
	if c := meta.RowGroups[0].Columns[0]; v.Raw || c.MetaData.Statistics.MinValue != nil || c.ColumnIndexOffset != 0 {
		t.Errorf("raw %t, %+v", v.Raw, c)
	}
	other := edit(t, b, func(m *format.FileMetaData) { m.CreatedBy = "another" })
	if v, err := plan(other, Wanted{Columns: []Field{field}}); err != nil || !v.Raw {
		t.Errorf("another writer's file is not served raw: %v", err)
	}
}

func TestRowGroupsLieWhereTheirMiddleIsLookedFor(t *testing.T) {
	type wide struct {
		N int64  `parquet:"n"`
		B []byte `parquet:"b"`
	}
	b := encode(t, []wide{{1, make([]byte, 100_000)}, {2, make([]byte, 100_000)}}, 1)
	_, out := serve(t, b, Wanted{Columns: []Field{constant("c", of(String), "x"), same("b", of(Binary)), same("n", of(Int64))}})
	meta, start := decodeFooter(t, out)
	for i, g := range meta.RowGroups {
		c := g.Columns[0].MetaData
		first := c.DataPageOffset
		if c.DictionaryPageOffset > 0 {
			first = c.DictionaryPageOffset
		}
		if middle := first + g.TotalCompressedSize/2; middle < first || middle >= int64(start) || g.FileOffset != first {
			t.Errorf("row group %d begins at %d, its middle is at %d, the footer at %d", i, first, middle, start)
		}
	}
}

func TestRenderingCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b := sample(t)
	if _, err := Plan(ctx, bytes.NewReader(b), int64(len(b)), Wanted{Columns: allColumns()[:2]}); err != context.Canceled {
		t.Error(err)
	}
}

// readRecorder remembers where it was read.
type readRecorder struct {
	b  []byte
	at []int64
}

func (r *readRecorder) ReadAt(p []byte, off int64) (int, error) {
	r.at = append(r.at, off)
	return bytes.NewReader(r.b).ReadAt(p, off)
}

func TestDataIsReadToCountRepeatedValuesOnly(t *testing.T) {
	b := sample(t)
	source, _ := decodeFooter(t, b)
	columnOf := func(off int64) (path string) {
		for _, g := range source.RowGroups {
			for _, c := range g.Columns {
				if m := c.MetaData; off >= m.DataPageOffset && off < m.DataPageOffset+m.TotalCompressedSize {
					path = strings.Join(m.PathInSchema, ".")
				}
			}
		}
		return path
	}
	for _, test := range []struct {
		w    Wanted
		want []string
	}{
		{Wanted{Columns: allColumns()[:3], Deleted: roaring64.BitmapOf(0)}, nil},
		{Wanted{Columns: []Field{same("list", of(List, same("", of(Struct, same("n", of(Date)))))), same("id", Type{Kind: Decimal, Precision: 20})}}, nil},
		{Wanted{Columns: allColumns(), Deleted: roaring64.BitmapOf(0)}, []string{"list.list.element.x", "map.key_value.key"}},
	} {
		r := &readRecorder{b: b}
		if _, err := Plan(context.Background(), r, int64(len(b)), test.w); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, off := range r.at[1:] {
			if path := columnOf(off); !slices.Contains(got, path) {
				got = append(got, path)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("read %q instead of %q", got, test.want)
		}
	}
}
