package writer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
)

const testSchema = `{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}},` +
	`{"name":"k","type":"string","nullable":true,"metadata":{}}]}`

func ptr[T any](v T) *T { return &v }

func testProtocol(reader, writer int, features ...string) *action.Protocol {
	return &action.Protocol{MinReaderVersion: reader, MinWriterVersion: writer, WriterFeatures: features}
}

// testMetadata has a long v and a string k; config is key, value, ….
func testMetadata(config ...string) *action.Metadata {
	m := &action.Metadata{
		ID:               "11111111-2222-3333-4444-555555555555",
		Format:           action.Format{Provider: "parquet", Options: map[string]string{}},
		SchemaString:     testSchema,
		PartitionColumns: []string{},
		CreatedTime:      ptr(int64(1)),
		Configuration:    map[string]string{},
	}
	for i := 0; i < len(config); i += 2 {
		m.Configuration[config[i]] = config[i+1]
	}
	return m
}

func testHeader(config ...string) header {
	return header{testProtocol(1, 2), testMetadata(config...)}
}

func testAdd(path string) *action.Add {
	return &action.Add{
		Path:             path,
		PartitionValues:  map[string]*string{},
		Size:             100,
		ModificationTime: 1700000000000,
		DataChange:       true,
		Stats:            `{"numRecords":10}`,
	}
}

func testRemove(path string) *action.Remove { return testAdd(path).ToRemove(1700000000001, true) }

// rearranged are file actions with dataChange=false.
func rearranged(actions ...action.Action) []action.Action {
	for _, a := range actions {
		switch a := a.(type) {
		case *action.Add:
			a.DataChange = false
		case *action.Remove:
			a.DataChange = false
		}
	}
	return actions
}

func testInfo(operation, engine string) *action.CommitInfo {
	return &action.CommitInfo{Raw: fmt.Appendf(nil, `{"operation":%q,"engineInfo":%q}`, operation, engine)}
}

func appendOf(base int64, adds ...string) *TxnSpec {
	s := &TxnSpec{Operation: "WRITE", Base: base}
	for _, path := range adds {
		s.Actions = append(s.Actions, testAdd(path))
	}
	return s
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}
