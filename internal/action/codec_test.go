package action

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func ptr[T any](v T) *T { return &v }

func TestDecodeKinds(t *testing.T) {
	tests := []struct {
		name, line string
		want       Action
	}{
		{"add", `{"add":{"path":"a%20b.parquet","partitionValues":{"d":"x","n":null},"size":9007199254740993,"modificationTime":1,"dataChange":true,"stats":"{}"}}`,
			&Add{Path: "a%20b.parquet", PartitionValues: map[string]*string{"d": ptr("x"), "n": nil},
				Size: 9007199254740993, ModificationTime: 1, DataChange: true, Stats: "{}"}},
		{"add with nulls and an unknown member",
			`{"add":{"path":"p","partitionValues":{},"size":0,"modificationTime":0,"dataChange":false,"stats":null,"tags":null,"deletionVector":null,"baseRowId":null,"new":{"a":[1.50,"\u0041"]}}}`,
			&Add{Path: "p", PartitionValues: map[string]*string{}, Extra: []byte(`{"new":{"a":[1.50,"\u0041"]}}`)}},
		{"add with deletion vector", `{"add":{"path":"p","size":1,"deletionVector":{"storageType":"u","pathOrInlineDv":"ab","offset":1,"sizeInBytes":3,"cardinality":2}}}`,
			&Add{Path: "p", Size: 1, DeletionVector: &DeletionVector{StorageType: "u", PathOrInlineDV: "ab", Offset: ptr(int64(1)), SizeInBytes: 3, Cardinality: 2}}},
		{"add with null tag", `{"add":{"path":"p","size":1,"tags":{"a":null,"b":"c"}}}`,
			&Add{Path: "p", Size: 1, Tags: map[string]*string{"a": nil, "b": ptr("c")}}},
		{"remove without dataChange", `{"remove":{"path":"p"}}`, &Remove{Path: "p", DataChange: true}},
		{"remove with null dataChange", `{"remove":{"path":"p","dataChange":null,"size":null}}`, &Remove{Path: "p", DataChange: true}},
		{"remove without data change", `{"remove":{"path":"p","dataChange":false,"size":5}}`, &Remove{Path: "p", Size: ptr(int64(5))}},
		{"cdc", `{"cdc":{"path":"_change_data/c","partitionValues":{},"size":3,"dataChange":false}}`,
			&CDC{Path: "_change_data/c", PartitionValues: map[string]*string{}, Size: 3}},
		{"metaData with null options", `{"metaData":{"id":"i","format":{"provider":"parquet","options":null},"schemaString":"s","partitionColumns":["d"],"configuration":null}}`,
			&Metadata{ID: "i", Format: Format{Provider: "parquet"}, SchemaString: "s", PartitionColumns: []string{"d"}}},
		{"protocol without features", `{"protocol":{"minReaderVersion":1,"minWriterVersion":2,"readerFeatures":null}}`,
			&Protocol{MinReaderVersion: 1, MinWriterVersion: 2}},
		{"protocol with empty features", `{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["appendOnly"]}}`,
			&Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{}, WriterFeatures: []string{"appendOnly"}}},
		{"txn", `{"txn":{"appId":"a","version":-1,"lastUpdated":7}}`, &Txn{AppID: "a", Version: -1, LastUpdated: ptr(int64(7))}},
		{"domainMetadata", `{"domainMetadata":{"domain":"d","configuration":"{}","removed":false}}`, &DomainMetadata{Domain: "d", Configuration: "{}"}},
		{"checkpointMetadata", `{"checkpointMetadata":{"version":3,"tags":{"a":"b"}}}`, &CheckpointMetadata{Version: 3, Tags: map[string]string{"a": "b"}}},
		{"sidecar", `{"sidecar":{"path":"s.parquet","sizeInBytes":1,"modificationTime":2}}`, &Sidecar{Path: "s.parquet", SizeInBytes: 1, ModificationTime: 2}},
		{"commitInfo", `{"commitInfo":{"timestamp":1, "x":[1.0]}}`, &CommitInfo{Raw: []byte(`{"timestamp":1, "x":[1.0]}`)}},
		{"unknown", `{"other":{"a": 1.0}}`, &Unknown{Name: "other", Raw: []byte(`{"a": 1.0}`)}},
		{"kinds are case-sensitive", `{"Add":{"path":"p"}}`, &Unknown{Name: "Add", Raw: []byte(`{"path":"p"}`)}},
		{"members are case-sensitive", `{"txn":{"appId":"a","Version":5}}`, &Txn{AppID: "a", Extra: []byte(`{"Version":5}`)}},
		{"null kinds count as absent", `{"add":null,"remove":null,"commitInfo":null,"new":null,"txn":{"appId":"a","version":1}}`, &Txn{AppID: "a", Version: 1}},
		{"unknown kind beside a known one", `{"new":{},"txn":{"appId":"a","version":1}}`, &Txn{AppID: "a", Version: 1}},
		{"integers of another spelling", `{"add":{"path":"p","size":1.0,"modificationTime":15e2,"baseRowId":2.50e1}}`,
			&Add{Path: "p", Size: 1, ModificationTime: 1500, BaseRowID: ptr(int64(25))}},
		{"largest long", `{"txn":{"appId":"a","version":9223372036854775807}}`, &Txn{AppID: "a", Version: 1<<63 - 1}},
		{"white space", " {\"txn\" : {\"appId\":\"a\",\"version\":1} }\r\n", &Txn{AppID: "a", Version: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Decode([]byte(tt.line))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %#v\nwant %#v", got, tt.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"nothing", ``, "EOF"},
		{"empty object", `{}`, "no action"},
		{"only nulls", `{"add":null,"new":null}`, "no action"},
		{"array", `[]`, "array"},
		{"truncated", `{"add":{"path":"p","size":1`, "EOF"},
		{"two actions", `{"remove":{"path":"p"},"txn":{"appId":"a","version":1}}`, "more than one"},
		{"two lines in one", `{"txn":{"appId":"a","version":1}}{"txn":{"appId":"b","version":1}}`, "after top-level value"},
		{"duplicate kind", `{"txn":{"appId":"a","version":1},"txn":{"appId":"a","version":1}}`, "duplicate"},
		{"duplicate member", `{"txn":{"appId":"a","appId":"b","version":1}}`, "duplicate"},
		{"duplicate partition value", `{"add":{"path":"p","size":1,"partitionValues":{"a":"1","a":"2"}}}`, "duplicate"},
		{"duplicate unknown member", `{"add":{"path":"p","size":1,"x":1,"x":2}}`, "duplicate"},
		{"fraction", `{"add":{"path":"p","size":1.5}}`, "size"},
		{"huge exponent", `{"add":{"path":"p","size":1e999999999}}`, "size"},
		{"negative exponent", `{"add":{"path":"p","size":1e-999999999}}`, "size"},
		{"long overflow", `{"txn":{"appId":"a","version":9223372036854775808}}`, "version"},
		{"number as text", `{"add":{"path":"p","size":"1"}}`, "size"},
		{"path of another type", `{"add":{"path":1,"size":1}}`, "path"},
		{"add without path", `{"add":{"size":1}}`, `"path"`},
		{"add without size", `{"add":{"path":"p"}}`, `"size"`},
		{"add with null size", `{"add":{"path":"p","size":null}}`, `"size"`},
		{"negative size", `{"add":{"path":"p","size":-1}}`, "-1"},
		{"remove without path", `{"remove":{}}`, `"path"`},
		{"txn without application", `{"txn":{"version":1}}`, `"appId"`},
		{"domain without name", `{"domainMetadata":{"configuration":"","removed":false}}`, `"domain"`},
		{"invalid UTF-8", "{\"txn\":{\"appId\":\"a\xff\",\"version\":1}}", "UTF-8"},
		{"NUL bytes", "\x00\x00\x00", "invalid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Decode([]byte(tt.line))
			if err == nil {
				t.Fatalf("got %#v, want an error", got)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not mention %q", err, tt.want)
			}
		})
	}
}

func TestEncodeWritesLinesReadersExpect(t *testing.T) {
	tests := []struct {
		name string
		a    Action
		want string
	}{
		{"add", &Add{Path: "a<&>.parquet", PartitionValues: map[string]*string{"z": ptr("1"), "n": nil, "a": ptr("")}, Size: 3, ModificationTime: 4, DataChange: true, Stats: `{"numRecords":1}`},
			`{"add":{"path":"a<&>.parquet","partitionValues":{"a":"","n":null,"z":"1"},"size":3,"modificationTime":4,"dataChange":true,"stats":"{\"numRecords\":1}"}}`},
		{"add without partitions", &Add{Path: "p"},
			`{"add":{"path":"p","partitionValues":{},"size":0,"modificationTime":0,"dataChange":false}}`},
		{"remove", &Remove{Path: "p", DataChange: false, Size: ptr(int64(1)), PartitionValues: map[string]*string{}},
			`{"remove":{"path":"p","dataChange":false,"partitionValues":{},"size":1}}`},
		{"protocol", &Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{}},
			`{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":[]}}`},
		{"metaData", &Metadata{ID: "i", Format: Format{Provider: "parquet"}, SchemaString: `{"a":"<>"}`},
			`{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{\"a\":\"<>\"}","partitionColumns":[],"configuration":{}}}`},
		{"commitInfo", &CommitInfo{Raw: []byte(`{"b":1,"a":1.0}`)}, `{"commitInfo":{"b":1,"a":1.0}}`},
		{"unknown", &Unknown{Name: "new", Raw: []byte(`{"b":10000000000000000000001,"a":"\u0041"}`)}, `{"new":{"b":10000000000000000000001,"a":"\u0041"}}`},
		{"unknown members", &Txn{AppID: "a", Version: 1, Extra: []byte(`{"x":"\u0041","w":1.50}`)},
			`{"txn":{"appId":"a","version":1,"x":"\u0041","w":1.50}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Encode(tt.a)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestEncodeRefusesWhatIsNoLine(t *testing.T) {
	for name, a := range map[string]Action{
		"nil":               nil,
		"broken raw":        &CommitInfo{Raw: []byte(`{"a":`)},
		"empty commitInfo":  &CommitInfo{},
		"nothing to write":  &Unknown{Name: "x"},
		"duplicate members": &Txn{AppID: "a", Extra: []byte(`{"appId":"b"}`)},
	} {
		if line, err := Encode(a); err == nil {
			t.Errorf("%s: got %s, want an error", name, line)
		}
	}
}

// TestRoundTripOfRealLogs decodes every commit of the test tables, encodes it
// and decodes it again.
func TestRoundTripOfRealLogs(t *testing.T) {
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES is not set")
	}
	logs, err := filepath.Glob(filepath.Join(root, "data/*/*/_delta_log/*.json"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs below %s: %v", root, err)
	}
	lines := 0
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			a, err := Decode([]byte(line))
			if err != nil {
				if !strings.Contains(name, "null_constraints_lists") { // pretty-printed JSON
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			lines++
			again, err := Encode(a)
			if err != nil {
				t.Fatalf("%s: encode: %v", name, err)
			}
			b, err := Decode(again)
			if err != nil {
				t.Fatalf("%s: decode again: %v", name, err)
			}
			if _, free := a.(*CommitInfo); !free && !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: changed by a round trip:\n%#v\n%#v", name, a, b)
			}
		}
	}
	if lines < 1000 {
		t.Errorf("only %d lines seen", lines)
	}
}
