package parquetview

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// hinted are the columns that the hints in testdata, which pyarrow wrote, are
// for.
func hinted() []Field {
	return []Field{
		same("i8", of(Int8)), same("i64", of(Int64)), same("f", of(Float32)), same("d", of(Float64)), same("b", of(Boolean)),
		same("dec", Type{Kind: Decimal, Precision: 12, Scale: 2}), same("s", of(String)), same("bin", of(Binary)), same("day", of(Date)),
		same("ts", of(Timestamp)), same("ntz", of(TimestampNTZ)),
		same("st", of(Struct, same("x", of(Int32)), same("y", of(String)))),
		same("l", of(List, same("", of(Struct, same("y", of(String)))))),
		same("m", of(Map, same("", of(String)), same("", of(Int64)))),
	}
}

func hints(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/hints/*")
	if err != nil || len(files) < 14 {
		t.Fatalf("%d hints: %v", len(files), err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(f)] = b
	}
	return all
}

func TestArrowHints(t *testing.T) {
	for name, b := range hints(t) {
		if got, want := arrowAgrees(b, hinted()), strings.HasPrefix(name, "agrees"); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	agrees := hints(t)["agrees-plain"]
	for i, change := range map[int]Type{
		0: of(Int16), 1: of(Timestamp), 2: of(Float64), 3: of(Float32), 4: of(Int8), 5: {Kind: Decimal, Precision: 12, Scale: 3}, 6: of(Binary),
		7: of(String), 8: of(Int32), 9: of(TimestampNTZ), 10: of(Timestamp), 11: of(String), 12: of(List, same("", of(String))), 13: of(List, same("", of(String))),
	} {
		columns := hinted()
		columns[i].Type = change
		if arrowAgrees(agrees, columns) {
			t.Errorf("column %s as %v agrees", columns[i].Name, change)
		}
	}
}

// What does not decode says nothing, and panics nowhere.
func TestDamagedArrowHintsDisagree(t *testing.T) {
	agrees, err := base64.StdEncoding.DecodeString(string(hints(t)["agrees-plain"]))
	if err != nil {
		t.Fatal(err)
	}
	for n := range agrees {
		if n < len(agrees)-16 && arrowAgrees([]byte(base64.StdEncoding.EncodeToString(agrees[:n])), hinted()) {
			t.Errorf("%d of %d bytes agree", n, len(agrees))
		}
		for _, flip := range []byte{0xff, 0x80, 0x01} {
			damaged := append([]byte{}, agrees...)
			damaged[n] ^= flip
			arrowAgrees([]byte(base64.StdEncoding.EncodeToString(damaged)), hinted())
		}
	}
	for _, text := range []string{"", "!", "AAAA", "////////////////"} {
		if arrowAgrees([]byte(text), hinted()) {
			t.Errorf("%q agrees", text)
		}
	}
}

func TestPandasHints(t *testing.T) {
	const names = `"column_indexes":[{"name":null,"field_name":null,"pandas_type":"unicode","numpy_type":"object","metadata":{"encoding":"UTF-8"}}]`
	col := func(more string) string {
		return `"columns":[{"name":"a","field_name":"a",` + more + `,"numpy_type":"int64","metadata":null}]`
	}
	for hint, want := range map[string]bool{
		`{"index_columns":[{"kind":"range","name":null,"start":0,"stop":2,"step":1}],` + names + `,` + col(`"pandas_type":"int64"`) + `}`: true,
		`{"index_columns":[],` + names + `,` + col(`"pandas_type":"int64"`) + `}`:                                                         true,
		`{"index_columns":[],"column_indexes":[],"columns":[{"name":"a","pandas_type":"int64"}]}`:                                         true,
		`{"index_columns":["a"],` + names + `,` + col(`"pandas_type":"int64"`) + `}`:                                                      false,
		`{"index_columns":[],` + names + `,` + col(`"pandas_type":"categorical"`) + `}`:                                                   false,
		`{"index_columns":[],"column_indexes":[{"pandas_type":"int64"}],` + col(`"pandas_type":"int64"`) + `}`:                            false,
		`{"index_columns":[],` + names + `,"columns":[{"name":"b","field_name":"a","pandas_type":"int64"}]}`:                              false,
		`{"index_columns":[],` + names + `,"columns":[{"name":null,"field_name":"a","pandas_type":"int64"}]}`:                             false,
		`{` + names + `}`: false,
		`[]`:              false,
		`{`:               false,
	} {
		if pandasAgrees([]byte(hint)) != want {
			t.Errorf("%s: %t", hint, !want)
		}
	}
}

func TestHintsDecideWhetherAFileIsRaw(t *testing.T) {
	type file struct {
		S string `parquet:"s"`
	}
	columns := []Field{same("s", of(String))}
	for hint, raw := range map[string]bool{
		`{"index_columns":[],"column_indexes":[],"columns":[]}`:    true,
		`{"index_columns":["s"],"column_indexes":[],"columns":[]}`: false,
	} {
		b := encode(t, []file{{"x"}}, 1, parquet.KeyValueMetadata(pandasHint, hint), parquet.KeyValueMetadata("k", "v"))
		v, out := serve(t, b, Wanted{Columns: columns})
		meta, _ := decodeFooter(t, out)
		if v.Raw != raw || !raw && (len(meta.KeyValueMetadata) != 1 || meta.KeyValueMetadata[0].Key != "k") {
			t.Errorf("%s: raw %t, %v", hint, v.Raw, meta.KeyValueMetadata)
		}
	}
	b := encode(t, []file{{"x"}}, 1, parquet.KeyValueMetadata(arrowHint, "rubbish"))
	if v, err := plan(b, Wanted{Columns: columns}); err != nil || v.Raw {
		t.Errorf("a hint that does not decode is served: %v", err)
	}
}
