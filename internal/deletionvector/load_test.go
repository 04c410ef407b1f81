package deletionvector

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/deltafs/deltafs/internal/action"
)

// vectors are known encodings of known rows.
var vectors = []struct {
	name, hex, z85 string
	crc            uint32
	rows           []uint64
}{
	{"array", "d1d33964 0100000000000000 00000000 3a300000 01000000 00000500 10000000 0300 0400 0700 0b00 1200 1d00",
		"^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 0xacd74a79, []uint64{3, 4, 7, 11, 18, 29}},
	{"two buckets", "d1d33964 0200000000000000 00000000 3a300000 01000000 0000 0000 10000000 0000" +
		"01000000 3a300000 01000000 0000 0000 10000000 0100",
		"^Bg9^0SSi20000000000iXQKl0rr91000005c8Xg000310025l0003100000000Mg00031", 0x5ea136c5, []uint64{0, 1<<32 + 1}},
	{"runs", "d1d33964 0100000000000000 00000000 3b30 0000 01 0000 0f27 0100 0000 0f27",
		"^Bg9^0rr910000000000j1{Tm0rr9gcJKhE01QBS", 0x6920f60f, upTo(10_000)},
	{"bits", "", "", 0, everySecond(20_000)},
	{"none", "", "", 0, nil},
}

func upTo(n uint64) (out []uint64) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func everySecond(n uint64) (out []uint64) {
	for i := uint64(1); i < n; i += 2 {
		out = append(out, i)
	}
	return out
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	out, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// encode is the portable layout of rows.
func encode(t testing.TB, rows []uint64) []byte {
	t.Helper()
	body, err := roaring64.BitmapOf(rows...).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint32(nil, portableMagic), body...)
}

// framedBytes is a file with vectors, and the offset of each.
func framedBytes(vectors ...[]byte) (file []byte, offsets []int64) {
	file = []byte{fileVersion}
	for _, v := range vectors {
		offsets = append(offsets, int64(len(file)))
		file = binary.BigEndian.AppendUint32(file, uint32(len(v)))
		file = append(file, v...)
		file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(v))
	}
	return file, offsets
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// files is an Opener of files in memory.
type files map[string][]byte

var errMissing = errors.New("missing")

func (f files) open(_ context.Context, path string) (Object, int64, error) {
	data, ok := f[path]
	if !ok {
		return nil, 0, errMissing
	}
	return memory{bytes.NewReader(data)}, int64(len(data)), nil
}

const (
	someUUID = "^-aqEH.-t@S}K{vb[*k^"
	somePath = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
)

func TestVectorsDecode(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			data := encode(t, v.rows)
			if v.hex != "" {
				data = unhex(t, v.hex)
				if got := crc32.ChecksumIEEE(data); got != v.crc {
					t.Fatalf("the vector's CRC is %08x, want %08x", got, v.crc)
				}
				d := &action.DeletionVector{StorageType: "i", PathOrInlineDV: v.z85,
					SizeInBytes: int64(len(data)), Cardinality: int64(len(v.rows))}
				wantRows(t, d, nil, v.rows)
			}
			file, offsets := framedBytes(encode(t, []uint64{9}), data)
			d := &action.DeletionVector{StorageType: "u", PathOrInlineDV: "ab" + someUUID, Offset: &offsets[1],
				SizeInBytes: int64(len(data)), Cardinality: int64(len(v.rows))}
			wantRows(t, d, files{"ab/" + somePath: file}, v.rows)
		})
	}
}

func wantRows(t *testing.T, d *action.DeletionVector, f files, want []uint64) {
	t.Helper()
	got, err := Load(t.Context(), d, f.open)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.ToArray(), want) {
		t.Fatalf("%d rows are deleted, want %d", got.GetCardinality(), len(want))
	}
}

func TestNativeLayoutDecodes(t *testing.T) {
	native := binary.LittleEndian.AppendUint32(nil, nativeMagic)
	native = binary.LittleEndian.AppendUint32(native, 3)
	for _, rows := range [][]uint32{{1, 5}, nil, {7}} {
		bitmap, err := roaring.BitmapOf(rows...).ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		native = binary.LittleEndian.AppendUint32(native, uint32(len(bitmap)))
		native = append(native, bitmap...)
	}
	file, _ := framedBytes(native)
	// Without an offset: the first vector of the file.
	d := &action.DeletionVector{StorageType: "p", PathOrInlineDV: "file:/x/y.bin",
		SizeInBytes: int64(len(native)), Cardinality: 3}
	wantRows(t, d, files{"file:/x/y.bin": file}, []uint64{1, 5, 2<<32 + 7})
}

func TestPathOfADescriptor(t *testing.T) {
	for _, c := range []struct{ storage, text, want string }{
		{"i", "whatever", ""},
		{"u", someUUID, somePath},
		{"u", "ab" + someUUID, "ab/" + somePath},
		{"u", "a%b/.." + someUUID, "a%25b%2F../" + somePath},
		{"p", "file:/a%20b", "file:/a%20b"},
	} {
		got, err := Path(&action.DeletionVector{StorageType: c.storage, PathOrInlineDV: c.text})
		if err != nil || got != c.want {
			t.Errorf("%s %s: %q, %v; want %q", c.storage, c.text, got, err, c.want)
		}
	}
}

// TestBrokenVectorsAreRefused changes one thing of a right vector at a time.
func TestBrokenVectorsAreRefused(t *testing.T) {
	data := encode(t, []uint64{3, 4, 7})
	file, offsets := framedBytes(data)
	flipped := slices.Clone(file)
	flipped[len(flipped)-10] ^= 1
	for _, c := range []struct {
		name   string
		file   []byte
		change func(*action.DeletionVector)
	}{
		{"unknown storage", file, func(d *action.DeletionVector) { d.StorageType = "x" }},
		{"short uuid", file, func(d *action.DeletionVector) { d.PathOrInlineDV = "abc" }},
		{"no digit", file, func(d *action.DeletionVector) { d.PathOrInlineDV = strings.Repeat("~", 20) }},
		{"number too large", file, func(d *action.DeletionVector) { d.PathOrInlineDV = strings.Repeat("#", 20) }},
		{"no absolute path", file, func(d *action.DeletionVector) { d.StorageType, d.PathOrInlineDV = "p", "" }},
		{"negative size", file, func(d *action.DeletionVector) { d.SizeInBytes = -1 }},
		{"huge size", file, func(d *action.DeletionVector) { d.SizeInBytes = 1 << 62 }},
		{"negative cardinality", file, func(d *action.DeletionVector) { d.Cardinality = -1 }},
		{"other cardinality", file, func(d *action.DeletionVector) { d.Cardinality++ }},
		{"other size", file, func(d *action.DeletionVector) { d.SizeInBytes-- }},
		{"offset in the version", file, func(d *action.DeletionVector) { d.Offset = new(int64) }},
		{"offset behind the end", file, func(d *action.DeletionVector) { o := int64(1) << 62; d.Offset = &o }},
		{"checksum", flipped, func(*action.DeletionVector) {}},
		{"cut", file[:len(file)-1], func(*action.DeletionVector) {}},
		{"empty", nil, func(*action.DeletionVector) {}},
		{"version", append([]byte{2}, file[1:]...), func(*action.DeletionVector) {}},
		{"inline of another size", nil, func(d *action.DeletionVector) {
			d.StorageType, d.PathOrInlineDV = "i", "^Bg9^0rr91"
		}},
		{"inline that is no text of fives", nil, func(d *action.DeletionVector) {
			d.StorageType, d.PathOrInlineDV = "i", "^Bg9^0"
		}},
	} {
		d := &action.DeletionVector{StorageType: "u", PathOrInlineDV: someUUID, Offset: &offsets[0],
			SizeInBytes: int64(len(data)), Cardinality: 3}
		c.change(d)
		if _, err := Load(t.Context(), d, files{somePath: c.file}.open); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	d := &action.DeletionVector{StorageType: "u", PathOrInlineDV: someUUID, SizeInBytes: 9, Cardinality: 3}
	if _, err := Load(t.Context(), d, files{}.open); !errors.Is(err, errMissing) || errors.Is(err, ErrBroken) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestBrokenBitmapsAreRefused has bitmaps that the library would take.
func TestBrokenBitmapsAreRefused(t *testing.T) {
	const one = "d1d33964 0100000000000000 00000000"
	for name, text := range map[string]string{
		"short":                  "d1d3",
		"big-endian":             "6439d3d0 00000001",
		"a huge count":           "d1d33964 ffffffffffffffff 00000000 3a300000 00000000",
		"an empty bucket":        one + "3a300000 00000000",
		"a negative key":         "d1d33964 0100000000000000 00000080 3a300000 01000000 00000000 10000000 0100",
		"buckets out of order":   "d1d33964 0200000000000000 01000000 3a300000 01000000 00000000 10000000 0100 00000000 3a300000 01000000 00000000 10000000 0100",
		"an unknown cookie":      one + "00000000 01000000",
		"too many containers":    one + "3a300000 ffffffff",
		"containers that repeat": one + "3a300000 02000000 00000000 00000000 18000000 1a000000 0100 0100",
		"rows that repeat":       one + "3a300000 01000000 00000100 10000000 0100 0100",
		"bytes left over":        one + "3a300000 01000000 00000000 10000000 0100 00",
		"a run over the end":     one + "3b300000 01 00000000 0100 ffff 0100",
		"runs that overlap":      one + "3b300000 01 00000000 0200 0000 0500 0300 0500",
		"no runs":                one + "3b300000 01 00000000 0000",
		"bits that do not count": one + "3a300000 01000000 00000010 10000000" + strings.Repeat("00", bitmapBytes),
		"native, a huge count":   "d0d33964 ffffffff",
		"native, bytes between":  "d0d33964 01000000 13000000 3a300000 01000000 00000000 10000000 0100 00",
	} {
		if _, err := decode(unhex(t, text), 1); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRowsBeyondTheFileAreRefused(t *testing.T) {
	for _, c := range []struct {
		deleted []uint64
		rows    int64
		ok      bool
	}{{nil, 0, true}, {[]uint64{4}, 5, true}, {[]uint64{5}, 5, false}, {[]uint64{0}, 0, false}} {
		err := CheckRows(roaring64.BitmapOf(c.deleted...), c.rows)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrBroken) {
			t.Errorf("%v of %d rows: %v", c.deleted, c.rows, err)
		}
	}
}
