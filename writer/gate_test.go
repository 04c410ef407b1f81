package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

// withColumn is metadata whose only column is a struct that holds one with
// the given type and metadata.
func withColumn(typ, metadata string) *action.Metadata {
	m := testMetadata()
	m.SchemaString = fmt.Sprintf(`{"type":"struct","fields":[{"name":"s","type":{"type":"array","elementType":`+
		`{"type":"struct","fields":[{"name":"c","type":%q,"nullable":true,"metadata":%s}]},"containsNull":true},`+
		`"nullable":true,"metadata":{}}]}`, typ, metadata)
	return m
}

func TestWritableRefusesFeaturesInUseAlone(t *testing.T) {
	partitioned := testMetadata()
	partitioned.PartitionColumns = []string{"k"}
	notNull := testMetadata()
	notNull.SchemaString = strings.ReplaceAll(testSchema, `"nullable":true`, `"nullable":false`)
	listed := func(features ...string) *action.Protocol { return testProtocol(3, 7, features...) }

	tests := []struct {
		name     string
		protocol *action.Protocol
		metadata *action.Metadata
		want     string // what the error names, "" = writable
	}{
		{"plain", testProtocol(1, 2), testMetadata(), ""},
		{"oldest", testProtocol(1, 1), testMetadata(), ""},
		{"all legacy features, none in use", testProtocol(2, 6), testMetadata(), ""},
		{"all legacy features by name, none in use", listed("appendOnly", "invariants", "checkConstraints", "changeDataFeed",
			"generatedColumns", "columnMapping", "identityColumns"), testMetadata(), ""},
		{"NOT NULL columns", testProtocol(1, 2), notNull, ""},
		{"append-only table", testProtocol(1, 2), testMetadata("delta.appendOnly", "true"), ""},
		{"change data feed", testProtocol(1, 4), testMetadata("delta.enableChangeDataFeed", "true"), ""},
		{"features that ask nothing of an append", listed("timestampNtz", "domainMetadata", "vacuumProtocolCheck", "inCommitTimestamp",
			"clustering", "checkpointProtection", "v2Checkpoint", "deletionVectors", "allowColumnDefaults", "typeWidening", "icebergCompatV2",
			"variantType"), testMetadata(), ""},
		{"in-commit timestamps", listed("inCommitTimestamp"), testMetadata("delta.enableInCommitTimestamps", "true"), ""},
		{"column mapping none", testProtocol(2, 5), testMetadata("delta.columnMapping.mode", "none"), ""},
		{"compatibility switched off", listed("icebergCompatV2"), testMetadata("delta.enableIcebergCompatV2", "false"), ""},
		{"materialised partition columns without any", listed("materializePartitionColumns"), testMetadata(), ""},
		{"comment and physical name", testProtocol(1, 2), withColumn("string", `{"comment":"x","delta.columnMapping.physicalName":"c"}`), ""},

		{"newer writer", testProtocol(1, 8), testMetadata(), "(1,8)"},
		{"newer reader", testProtocol(4, 7), testMetadata(), "(4,7)"},
		{"unknown writer feature", listed("appendOnly", "hoverboard"), testMetadata(), "hoverboard"},
		{"unknown reader feature", &action.Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"hoverboard"}},
			testMetadata(), "hoverboard"},
		{"row tracking supported", listed("rowTracking", "domainMetadata"), testMetadata(), "rowTracking"},
		{"row tracking enabled", testProtocol(1, 2), testMetadata("delta.enableRowTracking", "true"), "RowTracking"},
		{"catalog", listed("catalogManaged"), testMetadata(), "catalogManaged"},
		{"coordinated commits", listed("coordinatedCommits-preview"), testMetadata(), "coordinatedCommits-preview"},
		{"coordinated commits by property", testProtocol(1, 2), testMetadata("delta.coordinatedCommits.commitCoordinator-preview", "x"),
			"commitCoordinator"},
		{"redirection", listed("redirectWriterOnly-preview"), testMetadata(), "redirectWriterOnly-preview"},
		{"redirection by property", testProtocol(1, 2), testMetadata("delta.redirectReaderWriter-preview", "{}"), "redirectReaderWriter"},
		{"materialised partition columns", listed("materializePartitionColumns"), partitioned, "materializePartitionColumns"},
		{"collations", listed("collations", "domainMetadata"), testMetadata(), "collations"},
		{"constraint", testProtocol(1, 3), testMetadata("delta.constraints.positive", "v > 0"), "CHECK constraint positive"},
		{"column mapping", testProtocol(2, 5), testMetadata("delta.columnMapping.mode", "Name"), "column mapping by name"},
		{"iceberg compatibility", listed("icebergCompatV2", "columnMapping"), testMetadata("delta.enableIcebergCompatV2", "True"), "IcebergCompatV2"},
		{"invariant", testProtocol(1, 2), withColumn("long", `{"delta.invariants":"{}"}`), "s.element.c"},
		{"generated column", testProtocol(1, 4), withColumn("long", `{"delta.generationExpression":"1"}`), "generated column"},
		{"identity column", testProtocol(1, 6), withColumn("long", `{"delta.identity.start":1}`), "identity column"},
		{"default", listed("allowColumnDefaults"), withColumn("long", `{"CURRENT_DEFAULT":"1"}`), "column default"},
		{"varchar", testProtocol(1, 2), withColumn("string", `{"__CHAR_VARCHAR_TYPE_STRING":"varchar(10)"}`), "varchar(10)"},
		{"widened column", listed("typeWidening"), withColumn("long", `{"delta.typeChanges":[]}`), "widened"},
		{"variant", listed("variantType"), withColumn("variant", `{}`), "variant"},
		{"geometry", testProtocol(1, 2), withColumn("geometry(OGC:CRS84)", `{}`), "geometry"},
		{"damaged schema", testProtocol(1, 2), &action.Metadata{SchemaString: "{"}, "schema"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkWritable(header{tt.protocol, tt.metadata})
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrReadOnly) {
				t.Fatalf("got %v, want ErrReadOnly", err)
			}
			wantText(t, err, tt.want)
			if fault.Hint(err) == "" && tt.name != "damaged schema" {
				t.Errorf("no way out in %q", err)
			}
		})
	}
}

func TestAppendOnly(t *testing.T) {
	removal := &TxnSpec{Actions: actions{testRemove("a")}}
	rearranging := &TxnSpec{Actions: rearranged(testRemove("a"), testAdd("b"))}
	appending := &TxnSpec{Actions: actions{testAdd("b")}}
	tests := []struct {
		name  string
		h     header
		mount bool
		spec  *TxnSpec
		ok    bool
	}{
		{"removal", testHeader(), false, removal, true},
		{"table, removal", testHeader("delta.appendOnly", "true"), false, removal, false},
		{"table in other letter case, removal", testHeader("delta.appendonly", "True"), false, removal, false},
		{"old table, removal", testHeader("appendOnly", "true"), false, removal, false},
		{"table set to false, removal", testHeader("delta.appendOnly", "false"), false, removal, true},
		{"table, compaction", testHeader("delta.appendOnly", "true"), false, rearranging, true},
		{"table, append", testHeader("delta.appendOnly", "true"), false, appending, true},
		{"mount, removal", testHeader(), true, removal, false},
		{"mount, compaction", testHeader(), true, rearranging, false},
		{"mount, append", testHeader(), true, appending, true},
	}
	for _, tt := range tests {
		err := checkAppendOnly(tt.h, tt.mount, tt.spec)
		if tt.ok != (err == nil) || err != nil && !errors.Is(err, ErrAppendOnly) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestGateFollowsTheHeader(t *testing.T) {
	var g gate
	if err := g.check(testHeader()); err != nil {
		t.Fatal(err)
	}
	if err := g.check(testHeader("delta.constraints.c", "v > 0")); !errors.Is(err, ErrReadOnly) {
		t.Fatalf("got %v, want ErrReadOnly", err)
	}
	if err := g.check(testHeader()); err != nil {
		t.Fatal(err)
	}
}

func TestWritableOfPublishedTables(t *testing.T) {
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES is not set")
	}
	for name, want := range map[string]string{
		"delta-golden/snapshot-data0":                    "",
		"delta-rs/cdc_ict_table":                         "",
		"kernel-rs-data/cdf-table-partitioned":           "",
		"connectors-flink/source_table_no_partitions":    "",
		"dat/check_constraints":                          "CHECK constraint const1",
		"dat/column_mapping":                             "column mapping by name",
		"dat/generated_columns":                          `column "creation"`,
		"delta-rs/issue-2152":                            "identity column",
		"delta-rs/table-with-domain-metadata":            "rowTracking",
		"delta-golden/collations-preview-table":          "collations-preview",
		"delta-golden/table-with-icebegCompatV2Enabled":  "column mapping by id",
		"delta-golden/type-widening":                     "widened",
		"delta-rs/spark-variant-checkpoint":              "variant",
		"kernel-rs-data/uc-catalog_managed_0":            "catalogManaged",
		"delta-golden/deltalog-invalid-protocol-version": "(99,7)",
	} {
		t.Run(name, func(t *testing.T) {
			table := openTable(t, filepath.Join(root, "data", name))
			err := newCommitter(table, Options{}).writable(t.Context())
			if want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrReadOnly) {
				t.Fatalf("got %v, want ErrReadOnly", err)
			}
			wantText(t, err, want)
		})
	}
}
