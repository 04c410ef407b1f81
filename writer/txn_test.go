package writer

import (
	"bytes"
	"errors"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/go-json-experiment/json"
)

// decodeInfo decodes the commitInfo that must be the first line.
func decodeInfo(t *testing.T, file []byte) commitInfo {
	t.Helper()
	line, _, _ := bytes.Cut(file, []byte("\n"))
	var first struct {
		CommitInfo *commitInfo `json:"commitInfo"`
	}
	if err := json.Unmarshal(line, &first); err != nil || first.CommitInfo == nil {
		t.Fatalf("first line is no commitInfo: %s (%v)", line, err)
	}
	return *first.CommitInfo
}

func TestBlindAppend(t *testing.T) {
	tests := []struct {
		name string
		spec TxnSpec
		want bool
	}{
		{"adds", TxnSpec{Actions: actions{testAdd("a"), testAdd("b")}}, true},
		{"adds of an application", TxnSpec{AppIDs: []string{"app"}, Actions: actions{testAdd("a"), &action.Txn{AppID: "app"}}}, true},
		{"table creation", TxnSpec{Actions: actions{testProtocol(1, 2), testMetadata()}}, true},
		{"removal", TxnSpec{Actions: actions{testAdd("a"), testRemove("b")}}, false},
		{"change data", TxnSpec{Actions: actions{testAdd("a"), &action.CDC{Path: "c"}}}, false},
		{"read file", TxnSpec{ReadFiles: []string{"b"}, Actions: actions{testAdd("a")}}, false},
		{"read table", TxnSpec{ReadWhole: true, Actions: actions{testAdd("a")}}, false},
	}
	for _, tt := range tests {
		if got := tt.spec.BlindAppend(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestInvariantsRefuseWhatMustNotReachTheLog(t *testing.T) {
	partitioned := testMetadata()
	partitioned.PartitionColumns = []string{"k"}
	inPartition := testAdd("k=1/a")
	inPartition.PartitionValues = map[string]*string{"k": ptr("1")}
	nullPartition := testAdd("k=__HIVE_DEFAULT_PARTITION__/a")
	nullPartition.PartitionValues = map[string]*string{"k": nil}
	withDV := testAdd("a")
	withDV.DeletionVector = &action.DeletionVector{StorageType: "i", PathOrInlineDV: "x"}
	negative := testAdd("a")
	negative.Size = -1

	tests := []struct {
		name    string
		base    header
		actions actions
		want    string // "" = accepted
	}{
		{"two adds of one path", testHeader(), actions{testAdd("a%20b"), testAdd("a b")}, "more than one add"},
		{"two removes of one path", testHeader(), actions{testRemove("a"), testRemove("a")}, "more than one remove"},
		{"file added and removed", testHeader(), actions{testAdd("a"), testRemove("a")}, "both added and removed"},
		{"new deletion vector", testHeader(), actions{withDV, testRemove("a")}, ""},
		{"two protocols", testHeader(), actions{testProtocol(1, 2), testProtocol(1, 2)}, "more than one protocol"},
		{"two metadata", testHeader(), actions{testMetadata(), testMetadata()}, "more than one metaData"},
		{"two txns of one application", testHeader(), actions{&action.Txn{AppID: "a"}, &action.Txn{AppID: "a"}}, "more than one txn"},
		{"txns of two applications", testHeader(), actions{&action.Txn{AppID: "a"}, &action.Txn{AppID: "b"}}, ""},
		{"dataChange mixed", testHeader(), append(rearranged(testRemove("a")), testAdd("b")), "dataChange"},
		{"cdc beside dataChange", testHeader(), actions{testAdd("b"), &action.CDC{Path: "c"}}, ""},
		{"cdc that changes data", testHeader(), actions{&action.CDC{Path: "c", DataChange: true}}, "cdc"},
		{"commitInfo by the caller", testHeader(), actions{testInfo("WRITE", "x")}, "commitInfo"},
		{"sidecar", testHeader(), actions{&action.Sidecar{Path: "s"}}, "sidecar"},
		{"unknown action", testHeader(), actions{&action.Unknown{Name: "checkpoint", Raw: []byte("{}")}}, "checkpoint"},
		{"nil action", testHeader(), actions{nil}, "nil"},
		{"no path", testHeader(), actions{testAdd("")}, "without a path"},
		{"negative size", testHeader(), actions{negative}, "size"},
		{"first version without metadata", header{}, actions{testProtocol(1, 2)}, "first commit"},
		{"first version without protocol", header{}, actions{testMetadata()}, "first commit"},
		{"first version", header{}, actions{testProtocol(1, 2), testMetadata(), testAdd("a")}, ""},
		{"domain without the feature", testHeader(), actions{&action.DomainMetadata{Domain: "d"}}, "domainMetadata"},
		{"no partition value", header{testProtocol(1, 2), partitioned}, actions{testAdd("a")}, "no partition value"},
		{"partition value", header{testProtocol(1, 2), partitioned}, actions{inPartition}, ""},
		{"null partition value", header{testProtocol(1, 2), partitioned}, actions{nullPartition}, ""},
		{"partition value of no partition column", testHeader(), actions{inPartition}, "not partitioned by"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := &TxnSpec{Operation: "WRITE", Base: 4, Actions: tt.actions}
			if tt.base == (header{}) {
				spec.Base = -1
			}
			_, err := newTxn(spec, tt.base, "/table")
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("got %v, want ErrInvalid", err)
			}
			wantText(t, err, tt.want)
		})
	}
	if _, err := newTxn(&TxnSpec{Base: 4}, testHeader(), "/table"); !errors.Is(err, ErrInvalid) {
		t.Errorf("no operation: got %v, want ErrInvalid", err)
	}
}

func TestCommitTimeExceedsThatOfTheVersionBefore(t *testing.T) {
	for _, tt := range []struct{ now, floor, want int64 }{{1000, 500, 1000}, {1000, 1000, 1001}, {1000, 7000, 7001}} {
		tx, err := newTxn(appendOf(3, "a"), testHeader("delta.enableInCommitTimestamps", "TRUE"), "/table")
		if err != nil {
			t.Fatal(err)
		}
		tx.floor = tt.floor
		file, err := tx.encode(tt.now, "deltafs/test")
		if err != nil {
			t.Fatal(err)
		}
		info := decodeInfo(t, file)
		if info.InCommitTimestamp == nil || *info.InCommitTimestamp != tt.want {
			t.Errorf("now %d after %d: inCommitTimestamp %v, want %d", tt.now, tt.floor, info.InCommitTimestamp, tt.want)
		}
		if info.Timestamp != tt.now {
			t.Errorf("timestamp %d, want the clock's %d", info.Timestamp, tt.now)
		}
	}
}

func TestEnablingCommitTimesRecordsTheirOrigin(t *testing.T) {
	m := testMetadata("delta.enableInCommitTimestamps", "true", "mine", "kept")
	spec := &TxnSpec{Operation: "SET TBLPROPERTIES", Base: 3,
		Actions: actions{testProtocol(1, 7, "appendOnly", "invariants", "inCommitTimestamp"), m}}
	tx, err := newTxn(spec, testHeader(), "/table")
	if err != nil {
		t.Fatal(err)
	}
	tx.floor = 9000
	if err := tx.rebase(winnerOf(tx, testAdd("a"))); err != nil {
		t.Fatal(err)
	}
	file, err := tx.encode(1000, "deltafs/test")
	if err != nil {
		t.Fatal(err)
	}
	var got *action.Metadata
	for _, a := range decodeFile(t, file) {
		if m, ok := a.(*action.Metadata); ok {
			got = m
		}
	}
	want := map[string]string{
		"delta.enableInCommitTimestamps":             "true",
		"delta.inCommitTimestampEnablementVersion":   "5",
		"delta.inCommitTimestampEnablementTimestamp": "9001",
		"mine": "kept",
	}
	for k, v := range want {
		if got.Configuration[k] != v {
			t.Errorf("%s is %q, want %q", k, got.Configuration[k], v)
		}
	}
	if len(m.Configuration) != 2 {
		t.Error("the caller's metadata was changed")
	}
}

func decodeFile(t *testing.T, file []byte) actions {
	t.Helper()
	var out actions
	for line := range bytes.Lines(file) {
		a, err := action.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}
