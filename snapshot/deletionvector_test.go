package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/go-json-experiment/json"

	"github.com/deltafs/deltafs/internal/action"
)

// someVector is the end of a descriptor, and its file.
const (
	someVector     = "^-aqEH.-t@S}K{vb[*k^"
	someVectorFile = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
)

// vectorFile is a file with one vector, and the vector's size.
func vectorFile(t *testing.T, rows ...uint64) (string, int64) {
	t.Helper()
	body, err := roaring64.BitmapOf(rows...).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	data := append([]byte{0xd1, 0xd3, 0x39, 0x64}, body...)
	file := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(data)))
	file = append(file, data...)
	return string(binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(data))), int64(len(data))
}

func withVector(storage, text string, size, cardinality int64) *action.Add {
	offset := int64(1)
	return &action.Add{Path: "p", DeletionVector: &action.DeletionVector{StorageType: storage, PathOrInlineDV: text,
		Offset: &offset, SizeInBytes: size, Cardinality: cardinality}}
}

func TestDeletionVectorOfAFile(t *testing.T) {
	file, size := vectorFile(t, 1, 8)
	f := newFixture(t).plain().write("a b/"+someVectorFile, file)
	table := f.open()
	if rows, err := table.DeletionVector(t.Context(), &action.Add{}); rows != nil || err != nil {
		t.Errorf("without a vector: %v, %v", rows, err)
	}
	for _, add := range []*action.Add{
		withVector("u", "a b"+someVector, size, 2),
		withVector("p", "file:"+f.dir+"/a%20b/"+someVectorFile, size, 2),
	} {
		rows, err := table.DeletionVector(t.Context(), add)
		if err != nil || rows.GetCardinality() != 2 || !rows.Contains(8) {
			t.Errorf("%s: %v, %v", add.DVID(), rows, err)
		}
	}
	// It is kept: the file is immutable.
	f.remove("a b/" + someVectorFile)
	if _, err := table.DeletionVector(t.Context(), withVector("u", "a b"+someVector, size, 2)); err != nil {
		t.Errorf("asked again: %v", err)
	}
}

func TestDeletionVectorThatCannotBeUsed(t *testing.T) {
	file, size := vectorFile(t, 1, 8)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "v.bin"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t).plain().write(someVectorFile, file)
	if err := os.Symlink(outside, filepath.Join(f.dir, "link")); err != nil {
		t.Fatal(err)
	}
	table := f.open()
	for _, c := range []struct {
		add  *action.Add
		want error
	}{
		{withVector("u", "no"+someVector, size, 2), ErrFileGone},
		{withVector("u", someVector, size, 3), ErrCorrupt},
		{withVector("u", someVector, size-1, 2), ErrCorrupt},
		{withVector("x", someVector, size, 2), ErrCorrupt},
		{withVector("p", "file://"+outside+"/v.bin", size, 2), ErrOutside},
		{withVector("p", "s3://bucket/v.bin", size, 2), ErrOutside},
		{withVector("u", "../"+filepath.Base(outside)+someVector, size, 2), ErrOutside},
		{withVector("p", f.dir+"/link/v.bin", size, 2), ErrOutside},
	} {
		if _, err := table.DeletionVector(t.Context(), c.add); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.add.DVID(), err, c.want)
		}
	}
}

func TestVectorsThatWereKeptAreBounded(t *testing.T) {
	var c vectorCache
	large := roaring64.New()
	for i := range uint64(40_000) { // a container for every 32 rows
		large.Add(i * 65536 / 16)
	}
	for i := range 1000 {
		c.put(vectorKey{id: fmt.Sprint(i)}, large)
	}
	if c.bytes > mostVectorBytes || len(c.byKey) != c.order.Len() || c.order.Len() == 0 {
		t.Errorf("%d bytes, %d entries, %d in order", c.bytes, len(c.byKey), c.order.Len())
	}
	if c.get(vectorKey{id: "0"}) != nil || c.get(vectorKey{id: "999"}) != large {
		t.Error("it was not the oldest that went")
	}
}

// TestThirdPartyDeletionVectors decodes those of the latest versions.
func TestThirdPartyDeletionVectors(t *testing.T) {
	root, rows := thirdPartyTables(t)
	checked := 0
	for _, row := range rows {
		if row["DV"] == "" || row["class"] == "template" {
			continue
		}
		t.Run(row.id(), func(t *testing.T) {
			table, err := openTable(t, filepath.Join(root, row["table_path"]))
			if err != nil {
				t.Fatal(err)
			}
			checked += checkVectors(t, table, readOracle(t, root, row), row["class"] == "error")
		})
	}
	if checked < 20 {
		t.Errorf("only %d vectors were decoded", checked)
	}
}

// checkVectors compares the vectors of the latest version with the oracle.
func checkVectors(t *testing.T, table *Table, o *oracle, missing bool) (decoded int) {
	t.Helper()
	want := map[string]int64{}
	for _, raw := range o.Versions[len(o.Versions)-1].Files {
		var f struct {
			DV *struct {
				ID          string `json:"id"`
				Cardinality int64  `json:"cardinality"`
			} `json:"dv"`
		}
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
		if f.DV != nil {
			want[f.DV.ID] = f.DV.Cardinality
		}
	}
	life, err := table.current()
	if err != nil {
		t.Fatal(err)
	}
	h, err := life.files(context.Background(), table.Latest())
	if err != nil {
		t.Fatal(err)
	}
	for f, err := range (&Snapshot{table: table, life: life, header: h}).AllAdds(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if f.DV == "" {
			continue
		}
		rows, err := table.DeletionVector(context.Background(), f.Add)
		switch n, ok := want[f.DV]; {
		case missing && errors.Is(err, ErrFileGone):
		case missing || err != nil:
			t.Errorf("%s: %v", f.DV, err)
		case !ok || rows.GetCardinality() != uint64(n):
			t.Errorf("%s deletes %d rows, want %d", f.DV, rows.GetCardinality(), n)
		default:
			decoded++
		}
		delete(want, f.DV)
	}
	if len(want) > 0 {
		t.Errorf("vectors that no file has: %v", want)
	}
	return decoded
}
