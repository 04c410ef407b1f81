package snapshot

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const richSchema = `{"type":"struct","fields":[` +
	`{"name":"Id","type":"long","nullable":false,"metadata":{"delta.identity.start":1,"delta.identity.step":2,"delta.identity.allowExplicitInsert":false}},` +
	`{"name":"price","type":"decimal(10, 2)","nullable":true,"metadata":{"comment":"it's \"€\"","z":1.50,"a":9007199254740993}},` +
	`{"name":"code","type":"string","nullable":true,"metadata":{"__CHAR_VARCHAR_TYPE_STRING":"varchar(10)","CURRENT_DEFAULT":"'x'"}},` +
	`{"name":"day","type":"date","nullable":true,"metadata":{"delta.generationExpression":"CAST(ts AS DATE)"},"future":{"x":[1]}},` +
	`{"name":"odd name","type":{"type":"struct","fields":[{"name":"a","type":"integer","nullable":false,"metadata":{}},` +
	`{"name":"b","type":{"type":"array","elementType":"byte","containsNull":true},"nullable":true,"metadata":{"comment":"in"}}]},"nullable":true,"metadata":{}},` +
	`{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[]},"valueContainsNull":false},"nullable":true,"metadata":{}}]}`

func TestSchemaRoundTripKeepsEverything(t *testing.T) {
	s, err := ParseSchema(richSchema)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(richSchema, "decimal(10, 2)", "decimal(10,2)", 1); got != want {
		t.Errorf("serialised as\n%s, want\n%s", got, want)
	}
	price, ok := s.Lookup("PRICE")
	if !ok || price.Type.String() != "decimal(10,2)" || price.Metadata["a"] != "9007199254740993" {
		t.Errorf("price is %+v", price)
	}
	if comment, _ := price.Text("comment"); comment != `it's "€"` {
		t.Errorf("comment %q", comment)
	}
	if id := s.Fields[0]; id.Nullable || id.PhysicalName() != "Id" {
		t.Errorf("id is %+v", id)
	}
}

func TestSchemaDDL(t *testing.T) {
	s, err := ParseSchema(richSchema)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		`Id BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 2)`,
		`price DECIMAL(10,2) COMMENT 'it\'s "€"'`,
		`code VARCHAR(10) DEFAULT 'x'`,
		`day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))`,
		"`odd name` STRUCT<a: INT NOT NULL, b: ARRAY<TINYINT> COMMENT 'in'>",
		`m MAP<STRING, STRUCT<>>`,
	}, ",\n")
	if got := s.DDL(); got != want {
		t.Errorf("DDL is\n%s, want\n%s", got, want)
	}
}

func TestSchemaLeavesInOrder(t *testing.T) {
	s, err := ParseSchema(richSchema)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	s.Leaves(func(path []Field) bool {
		var names []string
		for _, f := range path {
			names = append(names, f.Name)
		}
		got = append(got, strings.Join(names, "."))
		return len(got) < 6
	})
	if want := "Id price code day odd name.a odd name.b"; strings.Join(got, " ") != want {
		t.Errorf("leaves %q", got)
	}
}

func TestParseSchemaRefuses(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","containsNull":true,"elementType":`, 150) + `"long"` + strings.Repeat("}", 150)
	for name, text := range map[string]string{
		"not JSON":         `{"type":`,
		"no struct":        `"long"`,
		"two names":        `{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"A","type":"long"}]}`,
		"nested two names": `{"type":"struct","fields":[{"name":"a","type":{"type":"struct","fields":[{"name":"b","type":"long"},{"name":"B","type":"long"}]}}]}`,
		"unknown nesting":  `{"type":"struct","fields":[{"name":"a","type":{"type":"tensor"}}]}`,
		"no type":          `{"type":"struct","fields":[{"name":"a"}]}`,
		"precision":        `{"type":"struct","fields":[{"name":"a","type":"decimal(39,0)"}]}`,
		"scale":            `{"type":"struct","fields":[{"name":"a","type":"decimal(3,4)"}]}`,
		"half a decimal":   `{"type":"struct","fields":[{"name":"a","type":"decimal(3"}]}`,
		"too deep":         `{"type":"struct","fields":[{"name":"a","type":` + deep + `}]}`,
		"key case":         `{"Type":"struct","Fields":[]}`,
	} {
		if s, err := ParseSchema(text); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: parsed to %v, %v", name, s, err)
		}
	}
	if s, err := ParseSchema(""); err != nil || len(s.Fields) != 0 {
		t.Errorf("no schema: %v, %v", s, err)
	}
}

func TestTypesThatAreNotReadAreKeptAndNamed(t *testing.T) {
	for name, known := range map[string]bool{
		"void": true, "variant": true, "timestamp_ntz": true, "decimal(38,10)": true,
		"interval year to month": true, "interval day to second": true, "interval hour to minute": true,
		"geometry(OGC:CRS84)": false, "geography(OGC:CRS84, spherical)": false, "geometry": false, "timestamp_nanos": false, "char(3)": false,
	} {
		s, err := ParseSchema(`{"type":"struct","fields":[{"name":"g","type":{"type":"map","keyType":"string","valueContainsNull":true,` +
			`"valueType":` + strconv.Quote(name) + `},"nullable":true,"metadata":{}}]}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := unsupportedTypes(s); (len(got) == 0) != known || !known && (len(got) != 1 || !strings.Contains(got[0], name)) {
			t.Errorf("%s: unsupported types %q", name, got)
		}
		if out, _ := s.JSON(); !jsontext.Value(out).IsValid() || !strings.Contains(out, strconv.Quote(name)) {
			t.Errorf("%s: serialised as %s", name, out)
		}
	}
}
