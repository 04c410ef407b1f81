package snapshot

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscapeHive(t *testing.T) {
	for plain, escaped := range map[string]string{
		"":                     "",
		"2024-05-01 10:00":     "2024-05-01 10%3A00",
		"a b/c=d%e":            "a b%2Fc%3Dd%25e",
		"US/East":              "US%2FEast",
		"\"#%'*/:=?\\{[]^":     "%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E",
		"}<>|&+,;@!$()~ü日":     "}<>|&+,;@!$()~ü日",
		"\x00\x01\n\x1f\x7f":   "%00%01%0A%1F%7F",
		"..":                   "..",
		"__HIVE_DEFAULT_PART_": "__HIVE_DEFAULT_PART_",
	} {
		if got := EscapeHive(plain); got != escaped {
			t.Errorf("%q escapes to %q, want %q", plain, got, escaped)
		}
		if got := UnescapeHive(escaped); got != plain {
			t.Errorf("%q unescapes to %q, want %q", escaped, got, plain)
		}
	}
	for text, want := range map[string]string{"%": "%", "%4": "%4", "%zz%3a": "%zz:", "100%": "100%", "%%41": "%A"} {
		if got := UnescapeHive(text); got != want {
			t.Errorf("%q unescapes to %q, want %q", text, got, want)
		}
	}
}

func text(s string) *string { return &s }

func TestPartitionDir(t *testing.T) {
	fields := []Field{
		{Name: "date", Type: &Primitive{Name: "date"}},
		{Name: "the=key", Metadata: map[string]string{"delta.columnMapping.physicalName": `"col-1"`}},
	}
	for _, c := range []struct {
		values map[string]*string
		want   string
	}{
		{map[string]*string{"date": text("2024-05-01"), "col-1": text("a/b")}, "date=2024-05-01/the%3Dkey=a%2Fb"},
		{map[string]*string{"date": text("2024-05-01"), "the=key": text("x")}, "date=2024-05-01/the%3Dkey=x"},
		{map[string]*string{"date": nil, "col-1": text("")}, "date=__HIVE_DEFAULT_PARTITION__/the%3Dkey=__HIVE_DEFAULT_PARTITION__"},
		{nil, "date=__HIVE_DEFAULT_PARTITION__/the%3Dkey=__HIVE_DEFAULT_PARTITION__"},
	} {
		if got := PartitionDir(fields, c.values); got != c.want {
			t.Errorf("%v: %q, want %q", c.values, got, c.want)
		}
	}
	if got := PartitionDir(nil, map[string]*string{"a": text("b")}); got != "" {
		t.Errorf("an unpartitioned table has the directory %q", got)
	}
}

func TestPartitionDirOfLongValuesStaysUniqueAndShort(t *testing.T) {
	f := []Field{{Name: "k", Type: &Primitive{Name: "string"}}}
	seen := map[string]string{}
	for _, unit := range []string{"a", "ü", "日", "/", "a/", "ü/"} {
		for _, tail := range []string{"x", "y"} {
			value := strings.Repeat(unit, 300) + tail
			dir := PartitionDir(f, map[string]*string{"k": &value})
			if len(dir) > 255 || !utf8.ValidString(dir) || strings.Contains(dir, "/") {
				t.Errorf("%q… becomes %q (%d bytes)", unit, dir, len(dir))
			}
			if !strings.HasPrefix(dir, "k="+EscapeHive(unit)) || UnescapeHive(EscapeHive(UnescapeHive(dir))) != UnescapeHive(dir) {
				t.Errorf("%q… becomes %q", unit, dir)
			}
			if other, ok := seen[dir]; ok {
				t.Errorf("%q and %q share %q", other, value, dir)
			}
			seen[dir] = value
			if _, err := ParsePartition(f[0], dir); err == nil {
				t.Errorf("the shortened %q parses to a wrong value", dir)
			}
		}
	}
}
