package snapshot

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParsePartitionNormalises(t *testing.T) {
	const refused = "\x00refused"
	for _, c := range []struct{ kind, name, want string }{
		{"string", "k=a%2Fb", "a/b"},
		{"string", "K=A", "A"},
		{"string", "k=null", "null"},
		{"string", "k=a=b", "a=b"},
		{"string", "k=\xff", refused},
		{"string", "j=a", refused},
		{"string", "k", refused},
		{"integer", "k=+007", "7"},
		{"integer", "k=-0", "0"},
		{"integer", "k=2147483648", refused},
		{"integer", "k=1.0", refused},
		{"integer", "k= 1", refused},
		{"long", "k=9007199254740993", "9007199254740993"},
		{"byte", "k=128", refused},
		{"byte", "k=-128", "-128"},
		{"short", "k=32767", "32767"},
		{"double", "k=1", "1.0"},
		{"double", "k=1e7", "1.0E7"},
		{"double", "k=0.0001", "1.0E-4"},
		{"double", "k=0.001", "0.001"},
		{"double", "k=12345678.9", "1.23456789E7"},
		{"double", "k=-0", "-0.0"},
		{"double", "k=nan", "NaN"},
		{"double", "k=inf", "Infinity"},
		{"double", "k=-Infinity", "-Infinity"},
		{"double", "k=1e400", refused},
		{"float", "k=0.1", "0.1"},
		{"float", "k=3.4028235e38", "3.4028235E38"},
		{"boolean", "k=TRUE", "true"},
		{"boolean", "k=1", refused},
		{"decimal(5,2)", "k=1.5", "1.50"},
		{"decimal(5,2)", "k=-0.1", "-0.10"},
		{"decimal(5,2)", "k=1.500", "1.50"},
		{"decimal(5,2)", "k=1.505", refused},
		{"decimal(5,2)", "k=999.99", "999.99"},
		{"decimal(5,2)", "k=1000", refused},
		{"decimal(5,2)", "k=1e2", "100.00"},
		{"decimal(5,2)", "k=1e999999999", refused},
		{"decimal(5,2)", "k=1%2F2", refused},
		{"decimal(38,0)", "k=12345678901234567890123456789012345678", "12345678901234567890123456789012345678"},
		{"date", "k=2024-02-29", "2024-02-29"},
		{"date", "k=2023-02-29", refused},
		{"date", "k=2024-05-01 10%3A00", refused},
		{"timestamp", "k=2024-06-15 19%3A30%3A45.5", "2024-06-15T19:30:45.500000Z"},
		{"timestamp", "k=2024-06-15T19:30:45+02:00", "2024-06-15T17:30:45.000000Z"},
		{"timestamp", "k=2024-06-15", "2024-06-15T00:00:00.000000Z"},
		{"timestamp", "k=2024-06-15 19:30:45.1234567", refused},
		{"timestamp_ntz", "k=2024-06-15T19:30:45", "2024-06-15 19:30:45"},
		{"timestamp_ntz", "k=2024-06-15 19:30:45.5", "2024-06-15 19:30:45.500000"},
		{"timestamp_ntz", "k=2024-06-15 19:30:45Z", refused},
		{"timestamp_ntz", "k=soon", refused},
		{"binary", "k=%01a", "\x01a"},
		{"variant", "k=1", refused},
	} {
		p, err := ParsePrimitive(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParsePartition(Field{Name: "k", Type: p}, c.name)
		switch {
		case c.want == refused:
			if !errors.Is(err, ErrPartition) {
				t.Errorf("%s %q is accepted: %v", c.kind, c.name, err)
			}
		case err != nil:
			t.Errorf("%s %q: %v", c.kind, c.name, err)
		case got == nil || *got != c.want:
			t.Errorf("%s %q is %v, want %q", c.kind, c.name, got, c.want)
		}
	}
	if _, err := ParsePartition(Field{Name: "k", Type: &Struct{}}, "k=1"); !errors.Is(err, ErrPartition) {
		t.Errorf("a struct partitions a table: %v", err)
	}
}

func TestParsePartitionNull(t *testing.T) {
	for _, kind := range []string{"string", "integer", "timestamp"} {
		for _, name := range []string{"k=", "k=__HIVE_DEFAULT_PARTITION__"} {
			got, err := ParsePartition(Field{Name: "k", Type: &Primitive{Name: kind}}, name)
			if got != nil || err != nil {
				t.Errorf("%s %q: %v, %v", kind, name, got, err)
			}
		}
	}
}

func TestPartitionTimestampsIgnoreTheLocalZone(t *testing.T) {
	saved := time.Local
	defer func() { time.Local = saved }()
	time.Local = time.FixedZone("far", 9*60*60)
	got, err := SerializePartition(&Primitive{Name: "timestamp"}, "2024-06-15 19:30:45")
	if err != nil || got != "2024-06-15T19:30:45.000000Z" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTimestampPartitionsAreOfNoProcess: what a directory is named and what it
// means does not depend on the zone of the process.
func TestTimestampPartitionsAreOfNoProcess(t *testing.T) {
	root, rows := thirdPartyTables(t)
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	shown := func() (out []string) {
		for _, text := range []string{"2024-06-15 13:00:00", "2024-06-15T13:00:00.123456Z", "2024-03-10 02:30:00", "2024-06-15 13:00:00+02:00"} {
			normal, err := SerializePartition(&Primitive{Name: "timestamp"}, text)
			parsed, parseErr := partitionConstant(&Primitive{Name: "timestamp"}, &text)
			out = append(out, fmt.Sprint(text, normal, err, parsed, parseErr))
		}
		for _, row := range rows {
			if !strings.Contains(row["types"], "timestamp") || row["partition_columns"] == "" || row["class"] != "ok" {
				continue
			}
			table, err := openTable(t, filepath.Join(root, row["table_path"]))
			if err != nil {
				t.Fatal(err)
			}
			for f, err := range at(t, table, table.Latest()).Files(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, row.id()+" "+f.Dir+" "+f.Name)
			}
		}
		return out
	}
	time.Local = time.UTC
	want := shown()
	for _, name := range []string{"Asia/Tokyo", "America/Los_Angeles"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		time.Local = zone
		if got := shown(); !slices.Equal(got, want) {
			t.Errorf("in %s: %q, in UTC: %q", name, got, want)
		}
	}
	if len(want) < 10 {
		t.Errorf("only %d names were looked at", len(want))
	}
}
