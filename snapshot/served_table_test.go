package snapshot

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
)

// mappedSchema has renamed columns at two depths and a widened one.
const mappedSchema = `{"type":"struct","fields":[
	{"name":"a","type":"long","nullable":false,"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1","comment":"the first"}},
	{"name":"b","type":{"type":"struct","fields":[
		{"name":"x y","type":"string","nullable":true,"metadata":{"delta.columnMapping.physicalName":"col-3"}}]},
		"nullable":true,"metadata":{"delta.columnMapping.physicalName":"a"}},
	{"name":"w","type":"double","nullable":true,"metadata":{"delta.typeChanges":[{"fromType":"float","toType":"double"}]}}]}`

func parsed(t *testing.T, schema string) *Schema {
	t.Helper()
	s, err := ParseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStatisticsAreThoseOfTheRowsThatAreServed(t *testing.T) {
	mapped := newServedStats(parsed(t, mappedSchema).Fields, true)
	plain := newServedStats(parsed(t, strings.ReplaceAll(schemaText, `\"`, `"`)).Fields, false)
	deleted := &action.DeletionVector{Cardinality: 3}
	for _, c := range []struct {
		what       string
		stats      *servedStats
		dv         *action.DeletionVector
		logged, is string
	}{
		{"as logged", plain, nil, `{"numRecords":3,"minValues":{"id":1},"other":1}`, `{"numRecords":3,"minValues":{"id":1},"other":1}`},
		{"none", plain, nil, "", ""},
		{"none of a file with deleted rows", plain, deleted, "", ""},
		{"as logged, but not JSON", plain, nil, `{"numRecords":1, "minValues" 2}`, ""},
		{"as logged, but no object", plain, nil, `3`, ""},
		{"not JSON", mapped, nil, `{"numRecords":`, ""},
		{"no rows known", mapped, nil, `{"minValues":{"col-1":1}}`, ""},
		{"more deleted than there are", plain, deleted, `{"numRecords":2}`, ""},
		{"bounds that may be wide", plain, nil, `{"numRecords":3,"minValues":{"id":1},"nullCount":{"id":0},"tightBounds":false}`,
			`{"numRecords":3,"nullCount":{"id":0}}`},
		{"bounds and nulls of deleted rows", plain, deleted,
			`{"numRecords":10,"minValues":{"id":1},"maxValues":{"id":9},"nullCount":{"id":0,"k":4},"tightBounds":true}`,
			`{"numRecords":7,"nullCount":{"id":0}}`},
		{"nulls alone", plain, deleted, `{"numRecords":10,"nullCount":{"k":10}}`, `{"numRecords":7,"nullCount":{"k":7}}`},
		{"logical names, and no bounds of a narrower type", mapped, nil,
			`{"numRecords":2,"minValues":{"col-1":9007199254740993,"a":{"col-3":"\u00e9"},"w":1.1,"gone":1},"maxValues":{"w":1.1},` +
				`"nullCount":{"col-1":0,"a":{"col-3":1},"w":2,"gone":0}}`,
			`{"numRecords":2,"minValues":{"a":9007199254740993,"b":{"x y":"\u00e9"}},"nullCount":{"a":0,"b":{"x y":1},"w":2}}`},
	} {
		if got := c.stats.of(&action.Add{Stats: c.logged, DeletionVector: c.dv}); got != c.is {
			t.Errorf("%s: %s, want %s", c.what, got, c.is)
		}
	}
}

func TestServedSchemaAsksForNothing(t *testing.T) {
	got, err := (&Schema{Fields: plainFields(parsed(t, mappedSchema).Fields)}).JSON()
	want := `{"type":"struct","fields":[{"name":"a","type":"long","nullable":false,"metadata":{"comment":"the first"}},` +
		`{"name":"b","type":{"type":"struct","fields":[{"name":"x y","type":"string","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},` +
		`{"name":"w","type":"double","nullable":true,"metadata":{}}]}`
	if err != nil || got != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

func TestServedProtocolIsTheLowestThatFits(t *testing.T) {
	all := &action.Protocol{MinReaderVersion: 3, MinWriterVersion: 7,
		ReaderFeatures: []string{"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "variantType-preview"}}
	for _, c := range []struct {
		schema   string
		protocol *action.Protocol
		features string
	}{
		{mappedSchema, all, ""},
		{`{"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":"timestamp_ntz","containsNull":true},"nullable":true}]}`,
			&action.Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, "timestampNtz"},
		{`{"type":"struct","fields":[{"name":"a","type":{"type":"map","keyType":"string","valueType":"variant"},"nullable":true}]}`, all, "variantType-preview"},
		{`{"type":"struct","fields":[{"name":"a","type":"interval day","nullable":true}]}`, all, ""},
	} {
		got := servedProtocol(c.protocol, parsed(t, c.schema))
		if c.features == "" {
			if got.MinReaderVersion != 1 || got.MinWriterVersion != 2 || got.ReaderFeatures != nil || got.WriterFeatures != nil {
				t.Errorf("%s: %+v", c.schema, got)
			}
		} else if got.MinReaderVersion != 3 || got.MinWriterVersion != 7 || strings.Join(got.ReaderFeatures, " ") != c.features ||
			!slices.Contains(got.WriterFeatures, c.features) {
			t.Errorf("%s: %+v", c.schema, got)
		}
	}
}

func TestServedTableHasTheNamesThatAreShown(t *testing.T) {
	f := newFixture(t)
	f.commit(0, `{"commitInfo":{"timestamp":5,"operation":"WRITE","inCommitTimestamp":7,"operationParameters":{"mode":"Append"},"custom":1}}`,
		protocolLine, metadataLine(`"k"`, "delta.enableChangeDataFeed", "true", "owner", "me"),
		`{"txn":{"appId":"app","version":3}}`,
		addPartition("ab/p-1.parquet", "a b/c=d%e"), addPartition("p-2.parquet", ""), addPartition("k=é/p%253A.parquet", "é"))
	f.setTime(CommitName(0), time.UnixMilli(1714557600123))
	s := at(t, f.open(), 0)
	table, err := s.AsTable()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for add, err := range table.Adds(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		value := "null"
		if v := add.PartitionValues["k"]; v != nil {
			value = *v
		}
		found[add.Path] = value
		if decoded := CanonicalPath(add.Path, "/t"); !strings.HasPrefix(decoded, "k=") || strings.ContainsAny(add.Path, " :é") {
			t.Errorf("path %s, decoded %s", add.Path, decoded)
		}
	}
	want := map[string]string{
		"k=a%20b%252Fc%253Dd%2525e/p-1.parquet":    "a b/c=d%e",
		"k=__HIVE_DEFAULT_PARTITION__/p-2.parquet": "null",
		"k=%C3%A9/p%253A.parquet":                  "é",
	}
	if !maps.Equal(found, want) {
		t.Errorf("adds: %v", found)
	}
	m := table.Metadata
	if !slices.Equal(m.PartitionColumns, []string{"k"}) || !maps.Equal(m.Configuration, map[string]string{"owner": "me"}) ||
		m.Format.Options == nil || table.Txns["app"].Version != 3 {
		t.Errorf("metadata %+v, txns %v", m, table.Txns)
	}
	info, err := table.CommitInfo(context.Background())
	line := `{"timestamp":1714557600123,"operation":"WRITE","operationParameters":{"mode":"Append"}}`
	if err != nil || string(info.Raw) != line {
		t.Errorf("commit: %s, %v", info.Raw, err)
	}
	if n, err := table.Files(context.Background()); err != nil || n != 3 {
		t.Errorf("%d files, %v", n, err)
	}
}
