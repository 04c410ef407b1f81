package parquetview

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// discard takes what a damaged file renders to.
type discard struct{}

func (discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// FuzzPlan plans files whose footers are damaged.
func FuzzPlan(f *testing.F) {
	for i, b := range [][]byte{sample(f), encode(f, []struct {
		A int32  `parquet:"id,id(1)"`
		B string `parquet:"name,id(2),dict"`
	}{{1, "x"}, {2, "y"}}, 1)} {
		_, start := decodeFooter(f, b)
		f.Add(b[:start], b[start:len(b)-8], uint8(i))
		f.Add(b[:start], b[start:len(b)-8], uint8(i+6))
	}
	f.Fuzz(func(t *testing.T, data, foot []byte, which uint8) {
		b := append(bytes.Clone(data), foot...)
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(foot))), magic...)
		planDamaged(t, b, damagedWanted()[int(which)%len(damagedWanted())])
	})
}

// TestDamagedFooters changes a footer a byte at a time.
func TestDamagedFooters(t *testing.T) {
	b := sample(t)
	_, start := decodeFooter(t, b)
	for at := start; at < len(b)-8; at++ {
		for i, flip := range []byte{0x01, 0x80} {
			damaged := bytes.Clone(b)
			damaged[at] ^= flip
			planDamaged(t, damaged, damagedWanted()[(at+i)%len(damagedWanted())])
		}
	}
}

func damagedWanted() []Wanted {
	return []Wanted{
		{Columns: allColumns()},
		{Columns: []Field{{Name: "a", Source: Source{ByID: true, ID: 1}, Type: of(Int64)}, constant("c", of(String), "x")}},
		{Columns: allColumns(), Deleted: roaring64.BitmapOf(0, 2)},
		{Columns: []Field{same("in", of(Struct, same("new", of(List, same("", of(Date)))))), same("list", of(List, same("", of(Struct, same("v", of(Void))))))}},
		{Columns: []Field{same("id", Type{Kind: Decimal, Precision: 30, Scale: 4}), named("x", "score", of(Other))}, Deleted: roaring64.BitmapOf(1)},
		{Columns: []Field{same("name", of(Binary)), named("m", "map", of(Map, same("", of(String)), same("", of(Void))))}},
	}
}

// planDamaged checks what holds for every file: errors are of a kind, and what is
// served ends in a footer that decodes.
func planDamaged(t *testing.T, b []byte, w Wanted) {
	t.Helper()
	v, err := plan(b, w)
	if err != nil {
		if !errors.Is(err, ErrBroken) && !errors.Is(err, ErrMismatch) && !errors.Is(err, ErrUnsupported) &&
			!errors.Is(err, parquetchunk.ErrBroken) && !errors.Is(err, parquetchunk.ErrUnsupported) {
			t.Fatalf("an error of no kind: %v", err)
		}
		return
	}
	checkView(t, v, b)
	if again, err := plan(b, w); err != nil || !reflect.DeepEqual(v, again) {
		t.Fatalf("another plan: %v", err)
	}
	if v.Raw {
		return
	}
	if foot, err := parquetfile.ReadFooter(&servedFooter{v}, v.Size); err != nil || foot.NumRows != v.NumRows {
		t.Fatalf("the served footer: %v", err)
	}
	if v.Size < 1<<20 {
		_ = v.Render(context.Background(), bytes.NewReader(b), discard{})
	}
}

// servedFooter reads what a view serves of itself.
type servedFooter struct{ v *View }

func (s *servedFooter) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	for _, seg := range s.v.Segments {
		if from := seg.Offset - off; seg.Bytes != nil && from < int64(len(p)) && from+seg.Length > 0 {
			copy(p[max(0, from):], seg.Bytes[max(0, -from):])
		}
	}
	if off+int64(len(p)) > s.v.Size {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}
