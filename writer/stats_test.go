package writer

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

func statsText(t *testing.T, b []byte, to *target) string {
	t.Helper()
	file, r := checked(t, b)
	text, rows, err := statsFor(t.Context(), file, r, to)
	if err != nil {
		t.Fatal(err)
	}
	if rows != file.NumRows {
		t.Errorf("%d rows instead of %d", rows, file.NumRows)
	}
	return text
}

func TestStatsText(t *testing.T) {
	type pair struct {
		A *int64  `parquet:"a,optional"`
		B *string `parquet:"b,optional"`
	}
	type row struct {
		ID   int64            `parquet:"id"`
		Flag *bool            `parquet:"flag,optional"`
		F    float32          `parquet:"f"`
		D    float64          `parquet:"d"`
		Dec  int32            `parquet:"dec,decimal(2:9)"`
		S    *string          `parquet:"s,optional"`
		Bin  []byte           `parquet:"bin"`
		Day  int32            `parquet:"day,date"`
		TS   int64            `parquet:"ts,timestamp(microsecond)"`
		NTZ  int64            `parquet:"ntz,timestamp(microsecond:local)"`
		L    []int64          `parquet:"l,list,optional"`
		M    map[string]int64 `parquet:"m,optional"`
		P    *pair            `parquet:"p,optional"`
	}
	rows := []row{
		{ID: 1 << 60, F: 0.1, D: 1e10, Dec: -5, S: ptrTo("b"), Bin: []byte("x"), Day: -1, TS: -1, NTZ: 1001,
			L: []int64{1}, M: map[string]int64{"k": 1}, P: &pair{ptrTo(int64(7)), nil}},
		{ID: -1 << 60, Flag: ptrTo(true), F: 2, D: -2.5, Dec: 12345, Day: 19844, TS: 1714557600123456, NTZ: 2000, P: &pair{}},
		{ID: 0, F: 1, D: 0, Dec: 0, S: ptrTo("a"), L: []int64{}},
	}
	to := tableOf(t, "id long", "flag boolean", "f float", "d double", "dec decimal(9,2)", "s string", "bin binary", "day date",
		"ts timestamp", "ntz timestamp_ntz", "l "+`{"type":"array","elementType":"long","containsNull":true}`,
		"m "+`{"type":"map","keyType":"string","valueType":"long","valueContainsNull":true}`,
		"p "+`{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}},{"name":"b","type":"string","nullable":true,"metadata":{}},{"name":"c","type":"integer","nullable":true,"metadata":{}}]}`,
		"later string", "late "+structOfInts)
	want := `{"numRecords":3,` +
		`"minValues":{"id":-1152921504606846976,"f":0.1,"d":-2.5,"dec":-0.05,"s":"a","day":"1969-12-31","ts":"1969-12-31T23:59:59.999Z","ntz":"1970-01-01T00:00:00.000","p":{"a":7}},` +
		`"maxValues":{"id":1152921504606846976,"f":2.0,"d":1e+10,"dec":123.45,"s":"b","day":"2024-05-01","ts":"2024-05-01T10:00:00.124Z","ntz":"1970-01-01T00:00:00.002","p":{"a":7}},` +
		`"nullCount":{"id":0,"flag":2,"f":0,"d":0,"dec":0,"s":1,"bin":0,"day":0,"ts":0,"ntz":0,"l":1,"m":2,"p":{"a":2,"b":3,"c":3},"later":3,"late":{"a":3,"b":3}}}`
	for name, options := range map[string][]parquet.WriterOption{
		"pages v1": {parquet.DataPageVersion(1)}, "pages v2": {parquet.DataPageVersion(2)},
	} {
		if got := statsText(t, fileOf(t, rows, options...), to); got != want {
			t.Errorf("%s:\n%s, expected\n%s", name, got, want)
		}
	}
}

func TestStatsLeaveOutWhatIsUncertain(t *testing.T) {
	type row struct {
		F *float64 `parquet:"f,optional"`
		S string   `parquet:"s"`
		T int64    `parquet:"t,timestamp(microsecond)"`
		L []int64  `parquet:"l,list,optional"`
	}
	one := row{F: ptrTo(1.0), S: "x"}
	to := tableOf(t, "f double", "s string", "t timestamp", `l {"type":"array","elementType":"long","containsNull":true}`)
	for name, test := range map[string]struct {
		rows    []row
		options []parquet.WriterOption
		want    string
	}{
		"NaN": {[]row{one, {F: ptrTo(math.NaN()), S: "x"}}, nil,
			`{"numRecords":2,"minValues":{"s":"x","t":"1970-01-01T00:00:00.000Z"},"maxValues":{"s":"x","t":"1970-01-01T00:00:00.000Z"},"nullCount":{"f":0,"s":0,"t":0,"l":2}}`},
		"infinity": {[]row{one, {F: ptrTo(math.Inf(1)), S: "x"}}, nil,
			`{"numRecords":2,"minValues":{"f":1.0,"s":"x","t":"1970-01-01T00:00:00.000Z"},"maxValues":{"s":"x","t":"1970-01-01T00:00:00.000Z"},"nullCount":{"f":0,"s":0,"t":0,"l":2}}`},
		"only nulls": {[]row{{S: "x"}}, nil,
			`{"numRecords":1,"minValues":{"s":"x","t":"1970-01-01T00:00:00.000Z"},"maxValues":{"s":"x","t":"1970-01-01T00:00:00.000Z"},"nullCount":{"f":1,"s":0,"t":0,"l":1}}`},
		"no rows": {nil, nil,
			`{"numRecords":0,"minValues":{},"maxValues":{},"nullCount":{"f":0,"s":0,"t":0,"l":0}}`},
		"unreadable": {[]row{one}, []parquet.WriterOption{parquet.Compression(&parquet.Lz4Raw)},
			`{"numRecords":1,"minValues":{"s":"x","t":"1970-01-01T00:00:00.000Z"},"maxValues":{"s":"x","t":"1970-01-01T00:00:00.000Z"},"nullCount":{"f":0,"s":0,"t":0}}`},
		"far away": {[]row{{S: "x", T: 1 << 62}, {S: "x", T: -1 << 62}}, nil,
			`{"numRecords":2,"minValues":{"s":"x"},"maxValues":{"s":"x"},"nullCount":{"f":2,"s":0,"t":0,"l":2}}`},
		"calendar of old": {[]row{{S: "x", T: -1 << 53}, {S: "x"}}, []parquet.WriterOption{parquet.CreatedBy("parquet-mr", "1.10.1", "x")},
			`{"numRecords":2,"minValues":{"s":"x"},"maxValues":{"s":"x"},"nullCount":{"f":2,"s":0,"t":0,"l":2}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := fileOf(t, test.rows, test.options...)
			if got := statsText(t, b, to); got != test.want {
				t.Errorf("\n%s, expected\n%s", got, test.want)
			}
		})
	}
}

func TestStatsColumns(t *testing.T) {
	columns := []string{"a integer", "part string", "s " + structOfInts, "z.x integer", "b integer"}
	type row struct {
		A int32 `parquet:"a"`
		B int32 `parquet:"b"`
	}
	b := fileOf(t, []row{{1, 2}})
	for name, test := range map[string]struct {
		config     map[string]string
		clustering [][]string
		want       string
	}{
		"default":           {nil, nil, "a s.a s.b z.x b"},
		"two":               {map[string]string{"delta.dataSkippingNumIndexedCols": "2"}, nil, "a s.a"},
		"none":              {map[string]string{"delta.dataSkippingNumIndexedCols": "0"}, nil, ""},
		"all":               {map[string]string{"delta.dataSkippingNumIndexedCols": "-1"}, nil, "a s.a s.b z.x b"},
		"no number":         {map[string]string{"delta.dataSkippingNumIndexedCols": "many"}, nil, "a s.a s.b z.x b"},
		"named":             {map[string]string{"delta.dataSkippingStatsColumns": "B, s.b"}, nil, "s.b b"},
		"a struct":          {map[string]string{"delta.dataSkippingStatsColumns": "s"}, nil, "s.a s.b"},
		"quoted":            {map[string]string{"delta.dataSkippingStatsColumns": " `z.x` , `s`.`a` "}, nil, "s.a z.x"},
		"named over number": {map[string]string{"delta.dataSkippingStatsColumns": "b", "delta.dataSkippingNumIndexedCols": "1"}, nil, "b"},
		"quote left open":   {map[string]string{"delta.dataSkippingStatsColumns": "`b"}, nil, ""},
		"partition column":  {map[string]string{"delta.dataSkippingStatsColumns": "part,b"}, nil, "b"},
		"clustering":        {map[string]string{"delta.dataSkippingNumIndexedCols": "1"}, [][]string{{"s", "b"}}, "a s.b"},
	} {
		t.Run(name, func(t *testing.T) {
			to := tableOf(t, columns...)
			to.partitionColumns, to.config, to.clustering = []string{"part"}, test.config, test.clustering
			var got []string
			var list func(prefix string, counts map[string]any)
			list = func(prefix string, counts map[string]any) {
				for _, f := range []string{"a", "part", "s", "z.x", "b"} {
					if inner, ok := counts[f].(map[string]any); ok {
						list(f+".", inner)
					} else if _, ok := counts[f]; ok {
						got = append(got, prefix+f)
					}
				}
			}
			list("", decodeStats(t, statsText(t, b, to)).NullCount)
			if strings.Join(got, " ") != test.want {
				t.Errorf("%v, expected %s", got, test.want)
			}
		})
	}
}

func TestStatsSayTightBoundsWithDeletionVectors(t *testing.T) {
	b := fileOf(t, []struct{ A int32 }{{1}})
	to := tableOf(t, "A integer")
	to.tightBounds = true
	if got := statsText(t, b, to); !strings.HasSuffix(got, `,"tightBounds":true}`) {
		t.Error(got)
	}
}

func TestStatsOfStrings(t *testing.T) {
	long := strings.Repeat("a", 32)
	clef := "\U0001D11E" // two UTF-16 units
	last := string(rune(utf8.MaxRune))
	for name, test := range map[string]struct{ value, lo, hi string }{
		"empty":                  {"", "", ""},
		"short":                  {"abc", "abc", "abc"},
		"just short enough":      {long, long, long},
		"a unit longer":          {long + "b", long, long + "\x7f"},
		"longer by DEL":          {long + "\x7f", long, long + last},
		"longer by a letter":     {long + "é", long, long + last},
		"longer by the last":     {long + last + "z", long, long + last + "\x7f"},
		"exactly the last":       {long + last, long, long + last},
		"nothing but the last":   {strings.Repeat(last, 100), strings.Repeat(last, 16), "none"},
		"pair at the limit":      {strings.Repeat("a", 31) + clef + "z", strings.Repeat("a", 31), strings.Repeat("a", 31) + last},
		"pair before the limit":  {strings.Repeat("a", 30) + clef + "z", strings.Repeat("a", 30) + clef, strings.Repeat("a", 30) + clef + "\x7f"},
		"accents":                {strings.Repeat("é", 40), strings.Repeat("é", 32), strings.Repeat("é", 32) + last},
		"broken":                 {"ab\xffcd", "ab", "none"},
		"broken behind":          {long + "\xff", long, "none"},
		"replacement character":  {"\uFFFD", "\uFFFD", "\uFFFD"},
		"quotes and backslashes": {"\"\\\n", "\"\\\n", "\"\\\n"},
	} {
		lo, hi := minString([]byte(test.value), 32), maxString([]byte(test.value), 32)
		if test.hi == "none" {
			if hi != "" {
				t.Errorf("%s: maximum %s", name, hi)
			}
		} else if hi != quote(test.hi) || test.hi < test.value {
			t.Errorf("%s: maximum %s, expected %q", name, hi, test.hi)
		}
		if lo != quote(test.lo) || test.lo > test.value {
			t.Errorf("%s: minimum %s, expected %q", name, lo, test.lo)
		}
	}
}

func TestDecimalText(t *testing.T) {
	for _, test := range []struct {
		unscaled int64
		scale    int
		want     string
	}{{0, 0, "0"}, {0, 2, "0.00"}, {5, 2, "0.05"}, {-5, 2, "-0.05"}, {-12345, 2, "-123.45"}, {math.MaxInt64, 0, "9223372036854775807"}, {100, 3, "0.100"}} {
		if got := decimalBound(test.unscaled, test.scale); got != test.want {
			t.Errorf("%d, %d: %s, expected %s", test.unscaled, test.scale, got, test.want)
		}
	}
}
