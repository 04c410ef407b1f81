package writer

import (
	"errors"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

type actions = []action.Action

// winnerOf is a commit that takes the version of a transaction.
func winnerOf(tx *txn, as ...action.Action) *winner { return newWinner(tx.version, as, tx.root) }

func TestRebase(t *testing.T) {
	dv := func(id string) *action.DeletionVector {
		return &action.DeletionVector{StorageType: "u", PathOrInlineDV: id, SizeInBytes: 1, Cardinality: 1}
	}
	newDV := testAdd("a.parquet")
	newDV.DeletionVector = dv("x")
	changedSchema := testMetadata()
	changedSchema.SchemaString = `{"type":"struct","fields":[]}`
	repartitioned := testMetadata()
	repartitioned.PartitionColumns = []string{"k"}
	domain := func(name string) *action.DomainMetadata { return &action.DomainMetadata{Domain: name} }
	features := header{testProtocol(1, 7, "appendOnly", "invariants", "domainMetadata"), testMetadata()}

	tests := []struct {
		name   string
		base   header
		spec   TxnSpec
		winner actions
		file   string // of the conflict
		want   string // part of the error, "" = passes
	}{
		{name: "append passes append",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{testAdd("a.parquet")}},
		{name: "append passes removal",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{testRemove("a.parquet")}},
		{name: "append passes commit without actions",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{testInfo("VACUUM START", "Spark")}},
		{name: "append passes domain metadata and txn of others",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{domain("d"), &action.Txn{AppID: "app"}}},
		{name: "append loses to the same path",
			spec: TxnSpec{Actions: actions{testAdd("n%20m.parquet")}}, winner: actions{testAdd("n m.parquet")},
			file: "n m.parquet", want: "added this file too"},

		{name: "removal loses to removal of the same file",
			spec: TxnSpec{Actions: actions{testRemove("k=a%20b/a.parquet")}}, winner: actions{testRemove("k=a%20b/a.parquet")},
			file: "k=a%20b/a.parquet", want: "removed this file first"},
		{name: "removal loses to removal spelled otherwise",
			spec: TxnSpec{Actions: actions{testRemove("k=a%20b/é.parquet")}}, winner: actions{testRemove("k=a b/%C3%A9.parquet")},
			file: "k=a b/%C3%A9.parquet", want: "removed this file first"},
		{name: "removal loses to removal spelled as absolute path",
			spec: TxnSpec{Actions: actions{testRemove("a.parquet")}}, winner: actions{testRemove("file:///table/a.parquet")},
			file: "file:///table/a.parquet", want: "removed this file first"},
		{name: "removal loses to a new deletion vector",
			spec: TxnSpec{Actions: actions{testRemove("a.parquet")}}, winner: actions{newDV, testRemove("a.parquet")},
			file: "a.parquet", want: "removed this file first"},
		{name: "removal passes removal of another file",
			spec: TxnSpec{Actions: actions{testRemove("a.parquet")}}, winner: actions{testRemove("b.parquet")}},
		{name: "replacement loses to compaction of its file",
			spec:   TxnSpec{Actions: actions{testRemove("a.parquet"), testAdd("n.parquet")}},
			winner: rearranged(testRemove("a.parquet"), testAdd("c.parquet")), file: "a.parquet", want: "removed this file first"},
		{name: "re-add loses to removal",
			spec:   TxnSpec{Actions: rearranged(testAdd("a.parquet"))},
			winner: actions{testRemove("a.parquet")}, file: "a.parquet", want: "to be added again"},

		{name: "read file removed",
			spec:   TxnSpec{ReadFiles: []string{"a.parquet"}, Actions: actions{testAdd("n.parquet")}},
			winner: actions{testRemove("a.parquet")}, file: "a.parquet", want: "removed a file that was read"},
		{name: "unread file removed",
			spec:   TxnSpec{ReadFiles: []string{"a.parquet"}, Actions: actions{testAdd("n.parquet")}},
			winner: actions{testRemove("b.parquet")}},
		{name: "whole table read, file removed",
			spec:   TxnSpec{ReadWhole: true, Actions: actions{testAdd("n.parquet")}},
			winner: actions{testRemove("b.parquet")}, file: "b.parquet", want: "removed a file that was read"},
		{name: "whole table read, file added",
			spec:   TxnSpec{ReadWhole: true, Actions: actions{testAdd("n.parquet")}},
			winner: actions{testAdd("b.parquet")}, file: "b.parquet", want: "read as a whole"},
		{name: "whole table read, file rearranged",
			spec:   TxnSpec{ReadWhole: true, Actions: actions{testAdd("n.parquet")}},
			winner: rearranged(testAdd("b.parquet")), file: "b.parquet", want: "read as a whole"},
		{name: "whole table read, nothing but commitInfo",
			spec:   TxnSpec{ReadWhole: true, Actions: actions{testAdd("n.parquet")}},
			winner: actions{testInfo("VACUUM END", "Spark")}},
		{name: "compaction of the whole table passes an append",
			spec:   TxnSpec{ReadWhole: true, Actions: rearranged(testAdd("n.parquet"), testRemove("a.parquet"))},
			winner: actions{testAdd("b.parquet")}},

		{name: "metadata with another schema",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{changedSchema}, want: "schema or identity"},
		{name: "metadata with other partition columns",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{repartitioned}, want: "schema or identity"},
		{name: "property that binds writers",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{testMetadata("delta.constraints.c", "v > 0")},
			want: "property delta.constraints.c"},
		{name: "property taken away", base: testHeader("delta.appendOnly", "true"),
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{testMetadata()}, want: "property delta.appendOnly"},
		{name: "property that binds nobody",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{testMetadata("delta.checkpointPolicy", "v2")}},
		{name: "metadata set by both",
			spec: TxnSpec{Actions: actions{testMetadata()}}, winner: actions{testMetadata()}, want: "metadata too"},

		{name: "protocol raised by a harmless feature",
			spec:   TxnSpec{Actions: actions{testAdd("n.parquet")}},
			winner: actions{testProtocol(1, 7, "appendOnly", "invariants", "inCommitTimestamp")}},
		{name: "protocol raised by a feature we cannot write",
			spec:   TxnSpec{Actions: actions{testAdd("n.parquet")}},
			winner: actions{testProtocol(1, 7, "appendOnly", "invariants", "rowTracking", "domainMetadata")}, want: "rowTracking"},
		{name: "protocol raised by a feature of the fail class",
			spec:   TxnSpec{Actions: actions{testAdd("n.parquet")}},
			winner: actions{testProtocol(1, 7, "appendOnly", "invariants", "clustering", "domainMetadata")}, want: "table feature clustering"},
		{name: "protocol raised to legacy constraints",
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{testProtocol(1, 3)}, want: "table feature checkConstraints"},
		{name: "protocol raised by an unknown feature",
			spec:   TxnSpec{Actions: actions{testAdd("n.parquet")}},
			winner: actions{testProtocol(1, 7, "appendOnly", "invariants", "hoverboard")}, want: "table feature hoverboard"},
		{name: "feature dropped", base: features,
			spec: TxnSpec{Actions: actions{testAdd("n.parquet")}}, winner: actions{testProtocol(1, 7, "appendOnly", "invariants")},
			want: "dropped the table feature domainMetadata"},
		{name: "protocol set by both",
			spec: TxnSpec{Actions: actions{testProtocol(1, 2)}}, winner: actions{testProtocol(1, 2)}, want: "protocol too"},

		{name: "one domain set by both", base: features,
			spec: TxnSpec{Actions: actions{domain("d")}}, winner: actions{domain("d")}, want: `domain metadata "d" too`},
		{name: "two domains", base: features,
			spec: TxnSpec{Actions: actions{domain("d")}}, winner: actions{domain("e")}},
		{name: "application that was read",
			spec:   TxnSpec{AppIDs: []string{"app"}, Actions: actions{testAdd("n.parquet")}},
			winner: actions{&action.Txn{AppID: "app", Version: 3}}, want: `application "app" too`},
		{name: "application recorded by both",
			spec:   TxnSpec{Actions: actions{testAdd("n.parquet"), &action.Txn{AppID: "app", Version: 3}}},
			winner: actions{&action.Txn{AppID: "app", Version: 3}}, want: `application "app" too`},
		{name: "two applications",
			spec:   TxnSpec{AppIDs: []string{"app"}, Actions: actions{testAdd("n.parquet")}},
			winner: actions{&action.Txn{AppID: "other", Version: 3}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := tt.spec
			spec.Operation, spec.Base = "WRITE", 6
			base := tt.base
			if base == (header{}) {
				base = testHeader()
			}
			tx, err := newTxn(&spec, base, "/table")
			if err != nil {
				t.Fatal(err)
			}
			err = tx.rebase(winnerOf(tx, append(actions{testInfo("MERGE", "Spark/4.1")}, tt.winner...)...))
			if tt.want == "" {
				if err != nil {
					t.Fatalf("conflict: %v", err)
				}
				if tx.version != 8 {
					t.Errorf("version %d after a rebase from 7", tx.version)
				}
				return
			}
			var e *fault.Error
			if !errors.Is(err, ErrConflict) || !errors.As(err, &e) {
				t.Fatalf("got %v, want ErrConflict", err)
			}
			wantText(t, err, tt.want, "MERGE by Spark/4.1")
			if e.Version == nil || *e.Version != 7 || e.File != tt.file {
				t.Errorf("names version %v, file %q; want 7, %q", e.Version, e.File, tt.file)
			}
			if tx.version != 7 {
				t.Errorf("version %d after a conflict at 7", tx.version)
			}
		})
	}
}

func TestRebaseAdoptsTheHeaderOfTheWinner(t *testing.T) {
	tx, err := newTxn(appendOf(0, "n.parquet"), testHeader(), "/table")
	if err != nil {
		t.Fatal(err)
	}
	p := testProtocol(1, 7, "appendOnly", "invariants", "inCommitTimestamp")
	m := testMetadata("delta.enableInCommitTimestamps", "true",
		"delta.inCommitTimestampEnablementVersion", "1", "delta.inCommitTimestampEnablementTimestamp", "5000")
	info := &action.CommitInfo{Raw: []byte(`{"inCommitTimestamp":5000}`)}
	if err := tx.rebase(winnerOf(tx, info, p, m)); err != nil {
		t.Fatal(err)
	}
	if tx.base != (header{p, m}) {
		t.Error("the header is not the winner's")
	}
	line, err := tx.encode(1000, "deltafs/test")
	if err != nil {
		t.Fatal(err)
	}
	if got := decodeInfo(t, line); got.InCommitTimestamp == nil || *got.InCommitTimestamp != 5001 {
		t.Errorf("inCommitTimestamp is %v, want the winner's + 1", got.InCommitTimestamp)
	}
}

func TestRebaseOnFirstVersionIsAConflict(t *testing.T) {
	spec := &TxnSpec{Operation: "CREATE TABLE", Base: -1, Actions: actions{testProtocol(1, 2), testMetadata()}}
	tx, err := newTxn(spec, header{}, "/table")
	if err != nil {
		t.Fatal(err)
	}
	err = tx.rebase(winnerOf(tx, testProtocol(1, 2), testMetadata()))
	if !errors.Is(err, ErrConflict) || tx.version != 0 {
		t.Errorf("got %v at version %d, want ErrConflict at 0", err, tx.version)
	}
}
