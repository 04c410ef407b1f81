package action

import (
	"reflect"
	"testing"
)

func TestDeletionVectorID(t *testing.T) {
	for _, tt := range []struct {
		dv   *DeletionVector
		want string
	}{
		{nil, ""},
		{&DeletionVector{StorageType: "u", PathOrInlineDV: "ab^-aqEH.-t@S}K{vb[*k^", Offset: ptr(int64(4))}, "uab^-aqEH.-t@S}K{vb[*k^@4"},
		{&DeletionVector{StorageType: "i", PathOrInlineDV: "wi5b"}, "iwi5b"},
		{&DeletionVector{StorageType: "p", PathOrInlineDV: "s3://x/y", Offset: ptr(int64(0))}, "ps3://x/y@0"},
	} {
		add, remove := Add{DeletionVector: tt.dv}, Remove{DeletionVector: tt.dv}
		if tt.dv.ID() != tt.want || add.DVID() != tt.want || remove.DVID() != tt.want {
			t.Errorf("got %q, %q, %q, want %q", tt.dv.ID(), add.DVID(), remove.DVID(), tt.want)
		}
	}
}

func TestToRemoveKeepsWhatIdentifiesTheFile(t *testing.T) {
	add := &Add{
		Path: "d=a%20b/%C3%A4+.parquet", PartitionValues: map[string]*string{"d": ptr("a b"), "n": nil}, Size: 7, ModificationTime: 3,
		DataChange: true, Stats: `{"numRecords":1}`, Tags: map[string]*string{"k": ptr("v")},
		DeletionVector: &DeletionVector{StorageType: "u", PathOrInlineDV: "x", Offset: ptr(int64(1))},
		BaseRowID:      ptr(int64(10)), DefaultRowCommitVersion: ptr(int64(2)), ClusteringProvider: ptr("liquid"),
	}
	want := &Remove{
		Path: add.Path, DeletionTimestamp: ptr(int64(99)), DataChange: false, ExtendedFileMetadata: ptr(true),
		PartitionValues: add.PartitionValues, Size: ptr(int64(7)), Stats: add.Stats, Tags: add.Tags, DeletionVector: add.DeletionVector,
		BaseRowID: ptr(int64(10)), DefaultRowCommitVersion: ptr(int64(2)),
	}
	if got := add.ToRemove(99, false); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	line, err := Encode((&Add{Path: "p"}).ToRemove(5, true))
	if want := `{"remove":{"path":"p","deletionTimestamp":5,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":0}}`; err != nil || string(line) != want {
		t.Errorf("got  %s, %v\nwant %s", line, err, want)
	}
}

func TestNumRecords(t *testing.T) {
	for stats, want := range map[string]int64{
		"":                               -1,
		`{}`:                             -1,
		`null`:                           -1,
		`[]`:                             -1,
		`not JSON`:                       -1,
		`{"numRecords":5}`:               5,
		`{"numRecords":5,"minValues":{}`: 5,
		`{"numRecords":9007199254740993,"minValues":{}}`:      9007199254740993,
		`{"minValues":{"numRecords":1},"numRecords":2}`:       2,
		` { "minValues" : {"a":[1,{}]}, "numRecords" : 3.0 }`: 3,
		`{"numRecords":-1}`:                                   -1,
		`{"numRecords":"5"}`:                                  -1,
		`{"numRecords":null}`:                                 -1,
		`{"numRecords":1.5}`:                                  -1,
		`{"numRecords":99999999999999999999}`:                 -1,
		`{"minValues":{"a":"` + "\xff" + `"},"numRecords":4}`: -1,
		`{"nullCount":{"a":0},"numRecords":6,"maxValues":{"a":"\"}, \"numRecords\":7"}}`: 6,
	} {
		if got := (&Add{Stats: stats}).NumRecords(); got != want {
			t.Errorf("%s: got %d, want %d", stats, got, want)
		}
	}
}
