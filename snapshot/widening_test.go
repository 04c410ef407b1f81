package snapshot

import (
	"strings"
	"testing"
)

func TestTypeChangesOfTheProtocolAreKnown(t *testing.T) {
	for _, c := range []struct {
		list, names string
	}{
		{``, ""},
		{`[]`, ""},
		{`[{"fromType":"byte","toType":"short"},{"fromType":"short","toType":"long","tableVersion":3}]`, ""},
		{`[{"fromType":"float","toType":"double","fieldPath":"element"}]`, ""},
		{`[{"fromType":"integer","toType":"double"}]`, ""},
		{`[{"fromType":"date","toType":"timestamp_ntz"}]`, ""},
		{`[{"fromType":"decimal(5,2)","toType":"decimal(8,3)"}]`, ""},
		{`[{"fromType":"integer","toType":"decimal(12,2)"}]`, ""},
		{`[{"fromType":"byte","toType":"decimal(4,1)"},{"fromType":"short","toType":"decimal(6,1)"}]`, ""},
		{`[{"fromType":"byte","toType":"decimal(4,2)"}]`, "from byte to decimal(4,2)"},
		{`[{"fromType":"long","toType":"decimal(20,0)"}]`, ""},
		{`[{"fromType":"long","toType":"decimal(19,0)"}]`, "from long to decimal(19,0)"},
		{`[{"fromType":"integer","toType":"decimal(10,1)"}]`, "decimal(10,1)"},
		{`[{"fromType":"decimal(5,2)","toType":"decimal(6,4)"}]`, "decimal(6,4)"},
		{`[{"fromType":"long","toType":"integer"}]`, "from long to integer"},
		{`[{"fromType":"long","toType":"double"}]`, "from long to double"},
		{`[{"fromType":"date","toType":"timestamp"}]`, "from date to timestamp"},
		{`[{"fromType":"integer","toType":"string"}]`, "to string"},
		{`[{"fromType":"integer","toType":{"type":"array","elementType":"long","containsNull":true}}]`, "from integer"},
		{`[{"fromType":"integer"}]`, "from integer"},
		{`"text"`, "not described"},
		{`[7]`, "not described"},
	} {
		metadata := ""
		if c.list != "" {
			metadata = `"` + typeChangesKey + `":` + c.list
		}
		s, err := ParseSchema(`{"type":"struct","fields":[{"name":"a","type":{"type":"array","containsNull":true,"elementType":` +
			`{"type":"struct","fields":[{"name":"inner","type":"long","nullable":true,"metadata":{` + metadata + `}}]}},"nullable":true,"metadata":{}}]}`)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(unsupportedChanges(s), ", ")
		if (got == "") != (c.names == "") || !strings.Contains(got, c.names) || got != "" && !strings.Contains(got, "inner") {
			t.Errorf("%s: refused %q, want %q", c.list, got, c.names)
		}
	}
}
