package action

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

// FuzzDecode checks that no line makes the codec panic, and that what it
// accepts comes back from Encode as it was.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		txnLine, `{"add":{"path":"p","partitionValues":{"a":null},"size":1e1,"stats":"{\"numRecords\":1}","tags":{},"x":[1.0]}}`,
		`{"remove":{"path":"p","deletionVector":{"storageType":"i","pathOrInlineDv":"x","sizeInBytes":1,"cardinality":1}}}`,
		`{"metaData":{"id":"i","format":{"provider":"parquet","options":null},"schemaString":"","partitionColumns":null}}`,
		`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[]}}`, `{"commitInfo":` + strings.ReplaceAll(sparkInfo, "\n", "") + `}`,
		`{"x":{"y":"\ud800"}}`, `{"cdc":{"path":"p"},"add":null}`, `{"sidecar":{"path":"s","sizeInBytes":1}}`, `{"domainMetadata":{"domain":"d"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := Decode(line)
		if err != nil {
			return
		}
		switch a := a.(type) {
		case *Add:
			a.NumRecords()
			a.ToRemove(1, true)
		case *CommitInfo:
			a.Timestamp()
			a.Operation()
			a.OperationParameters()
		}
		encoded, err := Encode(a)
		if err != nil {
			t.Fatalf("%#v: %v", a, err)
		}
		b, err := Decode(encoded)
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		again, err := Encode(b)
		if err != nil || !bytes.Equal(encoded, again) || a.Kind() != b.Kind() {
			t.Fatalf("%s\n%s, %v", encoded, again, err)
		}
		switch a.(type) {
		case *Txn, *Sidecar, *DomainMetadata:
			if len(bytes.TrimSpace(line)) < 100 && !bytes.ContainsAny(line, `\`) && reflect.ValueOf(a).Elem().FieldByName("Extra").Len() == 0 && !reflect.DeepEqual(a, b) {
				t.Fatalf("%#v\n%#v", a, b)
			}
		}
	})
}

// commitFile is a commit of n adds, about 450 bytes each.
func commitFile(n int) []byte {
	var text bytes.Buffer
	stats := `{\"numRecords\":1000,\"minValues\":{\"id\":1,\"name\":\"aaaaaaaa\",\"ts\":\"2024-01-01T00:00:00.000Z\"},\"maxValues\":{\"id\":1000,\"name\":\"zzzzzz\",\"ts\":\"2024-01-02T00:00:00.000Z\"},\"nullCount\":{\"id\":0,\"name\":0,\"ts\":0}}`
	for i := range n {
		fmt.Fprintf(&text, `{"add":{"path":"date=2024-01-01/part-%05d-4f2c7b1e-8d9a-4b0c-9e6f-2a1b3c4d5e6f.c000.snappy.parquet","partitionValues":{"date":"2024-01-01"},"size":%d,"modificationTime":1700000000000,"dataChange":true,"stats":"%s"}}`+"\n", i, i*1000, stats)
	}
	return text.Bytes()
}

func BenchmarkReader(b *testing.B) {
	const adds = 100_000
	text := commitFile(adds)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(text), int64(len(text)))
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

func BenchmarkEncode(b *testing.B) {
	a, err := Decode(bytes.TrimSpace(commitFile(1)))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNumRecords(b *testing.B) {
	a, err := Decode(bytes.TrimSpace(commitFile(1)))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if a.(*Add).NumRecords() != 1000 {
			b.Fatal("wrong")
		}
	}
}
