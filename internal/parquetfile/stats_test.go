package parquetfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// TestStatsHoldForEveryValue compares what Stats makes of footers with the
// values themselves, for the files of all the writers in the corpus.
func TestStatsHoldForEveryValue(t *testing.T) {
	columns := 0
	eachFile(t, func(name string, r io.ReaderAt, size int64) {
		if size > 1<<20 || brokenInputs[name] != "" || strings.Contains(name, "_delta_log") {
			return
		}
		f, err := Check(r, size)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		scan := f.NewScanner(r)
		for _, leaf := range f.Columns() {
			if leaf.MaxRepetition > 0 {
				continue
			}
			columns++
			got, err := scan.Stats(t.Context(), leaf, true)
			if err != nil {
				t.Errorf("%s: %s: %v", name, pathOf(leaf), err)
				continue
			}
			holds(t, name, scan, leaf, got)
		}
	})
	if columns < 1000 {
		t.Errorf("only %d columns", columns)
	}
}

func holds(t *testing.T, name string, scan *Scanner, leaf *Node, got ColumnStats) {
	var nulls int64
	err := scan.Each(t.Context(), leaf, func(v Value) error {
		if v.IsNull() {
			nulls++
			return nil
		}
		if got.Min == nil {
			return nil
		}
		one := accumulator{order: leaf.order()}
		one.add(v)
		value, _ := one.bounds()
		if value == nil || less(value, got.Min) || less(got.Max, value) {
			t.Errorf("%s: %s: %v is outside of %v to %v", name, pathOf(leaf), value, got.Min, got.Max)
		}
		return nil
	})
	if errors.Is(err, ErrUnreadable) {
		return
	}
	if err != nil || got.Nulls != nulls {
		t.Errorf("%s: %s: %d nulls instead of %d (%v)", name, pathOf(leaf), got.Nulls, nulls, err)
	}
}

func less(a, b any) bool {
	switch a := a.(type) {
	case int64:
		return a < b.(int64)
	case float64:
		return a < b.(float64)
	case []byte:
		return bytes.Compare(a, b.([]byte)) < 0
	case *big.Int:
		return a.Cmp(b.(*big.Int)) < 0
	}
	return true
}

// column writes one column and returns its statistics.
func column[T any](t *testing.T, rows []T, mutate func(*format.Statistics), options ...parquet.WriterOption) ColumnStats {
	t.Helper()
	b := encode(t, rows, 3, options...)
	if mutate != nil {
		meta := decodeFooter(t, b)
		for i := range meta.RowGroups {
			mutate(&meta.RowGroups[i].Columns[0].MetaData.Statistics)
		}
		b = withFooter(t, b[:footerStart(b)], meta)
	}
	f, err := checkBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.NewScanner(bytes.NewReader(b)).Stats(t.Context(), f.Columns()[0], true)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStatsTrustFootersOnlyWhereRight(t *testing.T) {
	type integers struct {
		V *int32 `parquet:"v,optional"`
	}
	ints := []integers{{ptr(int32(5))}, {nil}, {ptr(int32(-7))}, {ptr(int32(2))}}
	lie := func(s *format.Statistics) { s.MinValue, s.MaxValue = []byte{9, 0, 0, 0}, []byte{9, 0, 0, 0} }
	if s := column(t, ints, nil); s.Min != int64(-7) || s.Max != int64(5) || s.Nulls != 1 {
		t.Errorf("integers: %+v", s)
	}
	if s := column(t, ints, lie); s.Min != int64(9) {
		t.Errorf("the footer of integers is not used: %+v", s)
	}
	for name, mutate := range map[string]func(*format.Statistics){
		"no statistics":    func(s *format.Statistics) { *s = format.Statistics{NullCount: s.NullCount} },
		"only a maximum":   func(s *format.Statistics) { s.MinValue, s.Min, s.Max = nil, nil, nil },
		"min above max":    func(s *format.Statistics) { s.MinValue, s.MaxValue, s.Min, s.Max = s.MaxValue, s.MinValue, nil, nil },
		"too short":        func(s *format.Statistics) { s.MinValue, s.Min, s.Max = s.MinValue[:2], nil, nil },
		"too many nulls":   func(s *format.Statistics) { s.NullCount = 1 << 40 },
		"all are null":     func(s *format.Statistics) { s.NullCount = 3 },
		"nulls below zero": func(s *format.Statistics) { s.NullCount = -1 },
	} {
		if s := column(t, ints[:3], mutate); s.Min != int64(-7) || s.Max != int64(5) || s.Nulls != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}

	type floats struct {
		V float64 `parquet:"v"`
	}
	negativeZero := math.Copysign(0, -1)
	for _, test := range []struct {
		values []float64
		lo, hi any
	}{
		{[]float64{1, math.NaN(), 3}, nil, nil},
		{[]float64{2, 1, 3}, 1.0, 3.0},
		{[]float64{math.Inf(-1), 0, math.Inf(1)}, math.Inf(-1), math.Inf(1)},
		{[]float64{0, negativeZero, 0}, negativeZero, 0.0},
		{[]float64{0, 1}, negativeZero, 1.0},
		{[]float64{-1, negativeZero}, -1.0, 0.0},
	} {
		rows := make([]floats, len(test.values))
		for i, v := range test.values {
			rows[i].V = v
		}
		s := column(t, rows, nil)
		if s.Min != test.lo || s.Max != test.hi {
			t.Errorf("%v: %+v", test.values, s)
		}
		for _, pair := range [][2]any{{s.Min, test.lo}, {s.Max, test.hi}} {
			if f, ok := pair[0].(float64); ok && math.Signbit(f) != math.Signbit(pair[1].(float64)) {
				t.Errorf("%v: wrong sign of %v", test.values, f)
			}
		}
	}

	// The library compares the bytes of decimals as unsigned.
	decimals := parquet.NewSchema("d", parquet.Group{"v": parquet.Decimal(2, 20, parquet.FixedLenByteArrayType(9))})
	type decimal struct {
		V [9]byte `parquet:"v"`
	}
	minusFive, seven := decimal{}, decimal{}
	for i := range 9 {
		minusFive.V[i] = 0xff
	}
	minusFive.V[8], seven.V[8] = 0xfb, 7
	s := column(t, []decimal{seven, minusFive}, nil, decimals)
	if s.Min == nil || s.Min.(*big.Int).Int64() != -5 || s.Max.(*big.Int).Int64() != 7 {
		t.Errorf("decimals: %+v", s)
	}

	type strings struct {
		V string `parquet:"v"`
	}
	words := []strings{{"é"}, {"a"}, {"z"}}
	if s := column(t, words, nil); string(s.Min.([]byte)) != "a" || string(s.Max.([]byte)) != "é" {
		t.Errorf("strings: %+v", s)
	}
	onlyOld := func(s *format.Statistics) { *s = format.Statistics{Min: []byte("é"), Max: []byte("z")} }
	if s := column(t, words, onlyOld); string(s.Min.([]byte)) != "a" || string(s.Max.([]byte)) != "é" {
		t.Errorf("strings with deprecated bounds: %+v", s)
	}

	type times struct {
		V deprecated.Int96 `parquet:"v"`
	}
	s = column(t, []times{{int96(2440588, 86399999999999)}, {int96(2440587, 1999)}}, nil)
	if s.Min != int64(-86400000000+1) || s.Max != int64(86399999999) {
		t.Errorf("INT96: %+v", s)
	}
	if s := column(t, []times{{int96(math.MaxInt32, 0)}}, nil); s.Min != nil {
		t.Errorf("INT96 out of range: %+v", s)
	}
}

func int96(day uint32, nanos uint64) deprecated.Int96 {
	return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), day}
}

func TestStatsCountNullsOfStructs(t *testing.T) {
	b := encode(t, makeRows(40), 15)
	f, err := checkBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.NewScanner(bytes.NewReader(b)).Stats(t.Context(), lookup(f, "in", "a"), true)
	if err != nil {
		t.Fatal(err)
	}
	// Every fourth struct is null, and every odd row's value.
	if s.Nulls != 30 || s.Min != int64(2) || s.Max != int64(38) {
		t.Errorf("%+v", s)
	}
}

func lookup(f *File, path ...string) *Node {
	n := f.Root
	for _, name := range path {
		for _, c := range n.Children {
			if c.Name == name {
				n = c
				break
			}
		}
	}
	return n
}

func TestLevelsCountRowsAndEntries(t *testing.T) {
	for _, version := range []int{1, 2} {
		b := encode(t, makeRows(9), 4, parquet.DataPageVersion(version))
		f, err := checkBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		tags := lookup(f, "tags")
		element, present := tags.Element()
		if element == nil || present != tags.MaxDefinition+1 {
			t.Fatalf("element %v at level %d", element, present)
		}
		l, err := f.NewScanner(bytes.NewReader(b)).Levels(t.Context(), f.Cheapest(tags))
		if err != nil {
			t.Fatal(err)
		}
		// Rows 0, 3, 6 have no tags, 1, 4, 7 one, 2, 5, 8 two.
		if sumOf(l.Rows) != 9 || l.Rows[element.MaxDefinition] != 6 || l.All[element.MaxDefinition] != 9 {
			t.Errorf("pages v%d: %+v", version, l)
		}
	}
}

func TestScannerGivesUpOnWhatItCannotRead(t *testing.T) {
	rows := makeRows(20)
	b := encode(t, rows, 20, parquet.Compression(&parquet.Lz4Raw))
	f, err := checkBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	scan := f.NewScanner(bytes.NewReader(b))
	if _, err := scan.Levels(t.Context(), lookup(f, "name")); !errors.Is(err, ErrUnreadable) {
		t.Errorf("LZ4_RAW: %v", err)
	}
	s, err := scan.Stats(t.Context(), lookup(f, "score"), true)
	if err != nil || s.Min != nil || s.Nulls != 7 {
		t.Errorf("LZ4_RAW: %+v, %v", s, err)
	}

	b = encode(t, rows, 20, parquet.Compression(&parquet.Zstd))
	c := decodeFooter(t, b).RowGroups[0].Columns[1].MetaData
	w := &window{r: bytes.NewReader(b), end: int64(footerStart(b))}
	h, n, err := w.pageHeader(c.DataPageOffset, w.end)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(h.compressed) {
		b[c.DataPageOffset+n+i] ^= 0x5a
	}
	if f, err = checkBytes(b); err != nil {
		t.Fatal(err)
	}
	err = f.NewScanner(bytes.NewReader(b)).Each(t.Context(), lookup(f, "name"), func(Value) error { return nil })
	if !errors.Is(err, ErrUnreadable) {
		t.Errorf("damaged page: %v", err)
	}
}

func TestScannerStops(t *testing.T) {
	b := sample(t)
	f, err := checkBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	scan := f.NewScanner(bytes.NewReader(b))
	n := 0
	err = scan.Each(t.Context(), f.Columns()[0], func(Value) error {
		if n++; n == 5 {
			return enough
		}
		return nil
	})
	if err != enough || n != 5 {
		t.Errorf("%d values, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scan.Stats(ctx, lookup(f, "score"), true); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	bad := errors.New("disk on fire")
	r := &countingReader{ReaderAt: bytes.NewReader(b)}
	scan = f.NewScanner(r)
	r.err = bad
	if _, err := scan.Stats(t.Context(), lookup(f, "score"), true); !errors.Is(err, bad) {
		t.Errorf("reader: %v", err)
	}
}

func TestSchemaUnderstandsBothSpellings(t *testing.T) {
	group := parquet.Group{
		"date":  parquet.Date(),
		"dec":   parquet.Decimal(2, 9, parquet.Int32Type),
		"int8":  parquet.Int(8),
		"json":  parquet.JSON(),
		"text":  parquet.String(),
		"ts_ms": parquet.Timestamp(parquet.Millisecond),
		"ts_us": parquet.Timestamp(parquet.Microsecond),
		"uint":  parquet.Uint(32),
		"list":  parquet.List(parquet.String()),
		"map":   parquet.Map(parquet.String(), parquet.Leaf(parquet.Int64Type)),
	}
	want := map[string]Logical{
		"date": {Kind: Date}, "dec": {Kind: Decimal, Precision: 9, Scale: 2}, "int8": {Kind: Int, Width: 8, Signed: true},
		"json": {Kind: JSON}, "text": {Kind: String}, "ts_ms": {Kind: Timestamp, Unit: Millis, UTC: true},
		"ts_us": {Kind: Timestamp, Unit: Micros, UTC: true}, "uint": {Kind: Int, Width: 32},
		"list": {Kind: List}, "map": {Kind: Map},
	}
	var b bytes.Buffer
	if err := parquet.NewGenericWriter[any](&b, parquet.NewSchema("s", group)).Close(); err != nil {
		t.Fatal(err)
	}
	meta := decodeFooter(t, b.Bytes())
	for _, spelling := range []string{"logical", "converted"} {
		if spelling == "converted" {
			for i := range meta.Schema {
				meta.Schema[i].LogicalType = format.LogicalType{}
			}
		}
		f, err := checkBytes(withFooter(t, b.Bytes()[:4], meta))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range f.Root.Children {
			if n.Logical != want[n.Name] {
				t.Errorf("%s type of %s: %v", spelling, n.Name, n)
			}
		}
	}
}
