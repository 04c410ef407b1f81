package writer

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestCommitFileIsWhatSparkWrites(t *testing.T) {
	partitioned := testMetadata()
	partitioned.PartitionColumns = []string{"k"}
	add := testAdd("k=a/n.parquet")
	add.PartitionValues = map[string]*string{"k": ptr("a")}
	noStats, compacted := testAdd("n.parquet"), testAdd("n.parquet")
	noStats.Stats, compacted.Stats = "", ""

	tests := []struct {
		name string
		base header
		spec TxnSpec
		want string
	}{
		{
			name: "append to a partitioned table",
			base: header{testProtocol(1, 2), partitioned},
			spec: TxnSpec{Operation: "WRITE", Base: 6, Actions: actions{add}},
			want: `{"commitInfo":{"timestamp":1700000000123,"operation":"WRITE","operationParameters":{"mode":"Append","partitionBy":"[\"k\"]"},` +
				`"readVersion":6,"isolationLevel":"Serializable","isBlindAppend":true,` +
				`"operationMetrics":{"numFiles":"1","numOutputBytes":"100","numOutputRows":"10"},"engineInfo":"deltafs/test","txnId":"ID"}}` + "\n" +
				`{"add":{"path":"k=a/n.parquet","partitionValues":{"k":"a"},"size":100,"modificationTime":1700000000000,"dataChange":true,"stats":"{\"numRecords\":10}"}}` + "\n",
		},
		{
			name: "replacement in a table with commit times",
			base: testHeader("delta.enableInCommitTimestamps", "true"),
			spec: TxnSpec{Operation: "WRITE", Base: 6, UserMetadata: "from the mount", Actions: actions{testRemove("a.parquet"), noStats}},
			want: `{"commitInfo":{"timestamp":1700000000123,"inCommitTimestamp":1700000000123,"operation":"WRITE","operationParameters":{"mode":"Append","partitionBy":"[]"},` +
				`"readVersion":6,"isolationLevel":"Serializable","isBlindAppend":false,` +
				`"operationMetrics":{"numFiles":"1","numOutputBytes":"100","numRemovedBytes":"100","numRemovedFiles":"1"},` +
				`"userMetadata":"from the mount","engineInfo":"deltafs/test","txnId":"ID"}}` + "\n" +
				`{"remove":{"path":"a.parquet","deletionTimestamp":1700000000001,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":100,"stats":"{\"numRecords\":10}"}}` + "\n" +
				`{"add":{"path":"n.parquet","partitionValues":{},"size":100,"modificationTime":1700000000000,"dataChange":true}}` + "\n",
		},
		{
			name: "parameters of the caller",
			base: testHeader(),
			spec: TxnSpec{Operation: "DELETE", Base: 6,
				Parameters: map[string]any{"predicate": []string{`(id < "3")`}, "auto": false, "version": int64(3), "description": nil},
				Metrics:    map[string]string{"numRemovedFiles": "1"},
				Actions:    actions{testRemove("a.parquet")}},
			want: `{"commitInfo":{"timestamp":1700000000123,"operation":"DELETE",` +
				`"operationParameters":{"auto":false,"description":null,"predicate":"[\"(id < \\\"3\\\")\"]","version":3},` +
				`"readVersion":6,"isolationLevel":"Serializable","isBlindAppend":false,"operationMetrics":{"numRemovedFiles":"1"},"engineInfo":"deltafs/test","txnId":"ID"}}` + "\n" +
				`{"remove":{"path":"a.parquet","deletionTimestamp":1700000000001,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":100,"stats":"{\"numRecords\":10}"}}` + "\n",
		},
		{
			name: "compaction",
			base: testHeader(),
			spec: TxnSpec{Operation: "OPTIMIZE", Base: 6, ReadFiles: []string{"a.parquet"}, Metrics: map[string]string{},
				Actions: rearranged(compacted)},
			want: `{"commitInfo":{"timestamp":1700000000123,"operation":"OPTIMIZE","operationParameters":{},` +
				`"readVersion":6,"isolationLevel":"SnapshotIsolation","isBlindAppend":false,"operationMetrics":{},"engineInfo":"deltafs/test","txnId":"ID"}}` + "\n" +
				`{"add":{"path":"n.parquet","partitionValues":{},"size":100,"modificationTime":1700000000000,"dataChange":false}}` + "\n",
		},
		{
			name: "first version",
			spec: TxnSpec{Operation: "CREATE TABLE", Base: -1, Parameters: map[string]any{"isManaged": "false"},
				Actions: actions{testProtocol(1, 2), testMetadata()}},
			want: `{"commitInfo":{"timestamp":1700000000123,"operation":"CREATE TABLE","operationParameters":{"isManaged":"false"},` +
				`"isolationLevel":"Serializable","isBlindAppend":true,"operationMetrics":{},"engineInfo":"deltafs/test","txnId":"ID"}}` + "\n" +
				`{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}` + "\n" +
				`{"metaData":{"id":"11111111-2222-3333-4444-555555555555","format":{"provider":"parquet","options":{}},"schemaString":` +
				quoted(t, testSchema) + `,"partitionColumns":[],"createdTime":1,"configuration":{}}}` + "\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tx, err := newTxn(&tt.spec, tt.base, "/table")
			if err != nil {
				t.Fatal(err)
			}
			tx.id = "ID"
			file, err := tx.encode(1700000000123, "deltafs/test")
			if err != nil {
				t.Fatal(err)
			}
			if string(file) != tt.want {
				t.Errorf("got\n%swant\n%s", file, tt.want)
			}
			decodeFile(t, file)
		})
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	out, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestReadVersionStaysWhatWasReadAfterARebase(t *testing.T) {
	tx, err := newTxn(appendOf(6, "n.parquet"), testHeader(), "/table")
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.rebase(winnerOf(tx, testAdd("a.parquet"))); err != nil {
		t.Fatal(err)
	}
	file, err := tx.encode(1, "deltafs/test")
	if err != nil {
		t.Fatal(err)
	}
	if info := decodeInfo(t, file); info.ReadVersion == nil || *info.ReadVersion != 6 {
		t.Errorf("readVersion %v, want 6", info.ReadVersion)
	}
}
