package action

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// briefLines are lines that writers make, and lines that are not quite these.
var briefLines = []string{
	`{"add":{"path":"d=1/a%20b","partitionValues":{"d":"1","e":null},"size":9007199254740993,"modificationTime":1,"dataChange":true,"stats":"{\"numRecords\":1}"}}`,
	`{"add":{"path":"p","size":0}}`, `{"add":{"path":"p","size":1,"partitionValues":null,"tags":null,"stats":null,"deletionVector":null,"baseRowId":null}}`,
	` { "add" : { "path" : "p" , "size" : 1 , "dataChange" : false } } `,
	`{"add":{"path":"ü\u00fc\"\\\/\n","size":1,"tags":{"a":"b\tc","":""},"baseRowId":-5,"defaultRowCommitVersion":7,"clusteringProvider":"liquid"}}`,
	`{"add":{"path":"p","size":1,"deletionVector":{"storageType":"u","pathOrInlineDv":"ab","offset":1,"sizeInBytes":3,"cardinality":2}}}`,
	`{"add":{"path":"p","size":1,"deletionVector":{"storageType":"u","offset":null,"maxRowIndex":3}}}`,
	`{"remove":{"path":"p"}}`, `{"remove":{"path":"p","dataChange":null,"size":null,"deletionTimestamp":4}}`,
	`{"remove":{"path":"p","dataChange":false,"extendedFileMetadata":true,"partitionValues":{"d":"1"},"size":5,"tags":{},"stats":"x","baseRowId":1,"defaultRowCommitVersion":2,"deletionVector":{"storageType":"u"}}}`,
	txnLine, `{"commitInfo":{"add":1}}`, `{"add":null,"remove":{"path":"p"}}`, `{"add":{"path":"p","size":1},"remove":null}`,
	`{"add":{"path":"p","size":1.0}}`, `{"add":{"path":"p","size":1e2}}`, `{"add":{"path":"p","size":-0}}`, `{"add":{"path":"p","size":1,"x":1}}`,
	`{"add":{"path":"p","size":9223372036854775807}}`, `{"add":{"p\u0061th":"p","size":1}}`, `{"add":{"path":"p","size":1,"tags":{"a\u0062":"1"}}}`,

	`{"add":{"path":"p","size":1},"add":{"path":"p","size":1}}`, `{"add":{"path":"p","size":1},"txn":{"appId":"a","version":1}}`,
	`{"add":{"path":"p","path":"q","size":1}}`, `{"add":{"path":"p","size":1,"stats":"a","stats":"b"}}`,
	`{"add":{"path":"p","size":1,"partitionValues":{"a":"1","a":"2"}}}`, `{"add":{"path":"p","size":1,"tags":{"a":null,"a":null}}}`,
	`{"add":{"path":"p","size":01}}`, `{"add":{"path":"p","size":+1}}`, `{"add":{"path":"p","size":1a}}`, `{"add":{"path":"p","size":-1}}`,
	`{"add":{"path":"p","size":"1"}}`, `{"add":{"path":"p","size":9223372036854775808}}`, `{"add":{"path":"p","size":1,"stats":1}}`,
	`{"add":{"path":"p"}}`, `{"add":{"size":1}}`, `{"add":{"path":"","size":1}}`, `{"add":{"path":null,"size":1}}`, `{"add":{"path":"p","size":null}}`,
	"{\"add\":{\"path\":\"a\xff\",\"size\":1}}", "{\"add\":{\"path\":\"a\x01\",\"size\":1}}", `{"add":{"path":"p","size":1,"stats":"\ud800"}}`,
	`{"add":{"path":"p","size":1,"stats":"\x"}}`, `{"add":{"path":"p","size":1,}}`, `{"add":{"path":"p","size":1}`, `{"add":{"path":"p","size":1}}}`,
	`{"add":{"path":"p" "size":1}}`, `{"add":{"path":"p","size":1,"dataChange":truer}}`, `{"add":{"path":"p","size":1,"dataChange":1}}`,
	`{"add":{"path":"p","size":1,"tags":{"a":1}}}`, `{"add":{"path":"p","size":1,"deletionVector":{"storageType":1}}}`, `{"add":[]}`, `{"add":{}}`,
	`{"remove":{"path":"p","dataChange":1}}`, `{"remove":{}}`, `{"remove":{"path":"p","size":1,"size":1}}`, `{}`, `[]`, `{"add"`, `{"add":{"path":"`,
}

// checkBrief compares both ways to decode a line.
func checkBrief(t *testing.T, line []byte) {
	t.Helper()
	want, wantErr := Decode(line)
	got, err := decodeBrief(line)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s: %v, want %v", line, err, wantErr)
	}
	for _, a := range []Action{got, want} {
		switch a := a.(type) {
		case *Add:
			a.Stats, a.BaseRowID, a.DefaultRowCommitVersion, a.ClusteringProvider = "", nil, nil, nil
		case *Remove:
			*a = Remove{Path: a.Path, DataChange: a.DataChange, DeletionVector: a.DeletionVector}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\ngot  %#v\nwant %#v", line, got, want)
	}
}

func TestBriefDecodesAsDecodeDoes(t *testing.T) {
	for _, line := range briefLines {
		checkBrief(t, []byte(line))
	}
}

func TestBriefReadsWhatWritersMakeByItself(t *testing.T) {
	for _, line := range briefLines[:5] {
		if s := (briefScan{text: []byte(line)}); s.action() == nil && !strings.Contains(line, `\u`) {
			t.Errorf("gives up on %s", line)
		}
	}
}

func FuzzBrief(f *testing.F) {
	for _, line := range briefLines {
		f.Add([]byte(line))
	}
	f.Fuzz(checkBrief)
}

func TestBriefReaderLeavesStatisticsOut(t *testing.T) {
	r := NewReader(strings.NewReader(briefLines[0]+"\n"+`{"add":{"path":"p","size":-1}}`), 0)
	r.Brief = true
	a, err := r.Next()
	if add, ok := a.(*Add); err != nil || !ok || add.Path != "d=1/a%20b" || add.Stats != "" {
		t.Errorf("got %#v, %v", a, err)
	}
	a, err = r.Whole()
	if add, ok := a.(*Add); err != nil || !ok || add.Stats != `{"numRecords":1}` {
		t.Errorf("in full %#v, %v", a, err)
	}
	var bad *LineError
	if _, err := r.Next(); !errors.As(err, &bad) || bad.Line != 2 {
		t.Errorf("a negative size: %v", err)
	}
}

func BenchmarkBriefReader(b *testing.B) {
	const adds = 100_000
	text := commitFile(adds)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(text), int64(len(text)))
		r.Brief = true
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/adds, "ns/add")
}
