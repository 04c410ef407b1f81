package parquetview

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"github.com/parquet-go/parquet-go/format"
)

// maxPageRows bounds a page of a constant column: some readers make room for all
// values of a page.
const maxPageRows = 1 << 20

// plain encodes a value of the type as PLAIN does, but strings without their
// length.
func plain(t Type, value any) ([]byte, error) {
	stored := t.stored()
	switch v := value.(type) {
	case bool:
		if t.Kind == Boolean && v {
			return []byte{1}, nil
		} else if t.Kind == Boolean {
			return []byte{0}, nil
		}
	case int32:
		switch {
		case t.Kind == Int32, t.Kind == Date,
			t.Kind == Int8 && v >= math.MinInt8 && v <= math.MaxInt8,
			t.Kind == Int16 && v >= math.MinInt16 && v <= math.MaxInt16:
			return binary.LittleEndian.AppendUint32(nil, uint32(v)), nil
		}
	case int64:
		if t.Kind == Int64 || t.Kind == Timestamp || t.Kind == TimestampNTZ {
			return binary.LittleEndian.AppendUint64(nil, uint64(v)), nil
		}
	case float32:
		if t.Kind == Float32 {
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)), nil
		}
	case float64:
		if t.Kind == Float64 {
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), nil
		}
	case string:
		if t.Kind == String {
			return []byte(v), nil
		}
	case []byte:
		if t.Kind == Binary {
			return append([]byte{}, v...), nil
		}
	case *big.Int:
		if t.Kind == Decimal && v != nil && len(new(big.Int).Abs(v).String()) <= t.Precision {
			return decimalBytes(stored, v)
		}
	}
	return nil, fmt.Errorf("the constant %.100v (%T) is no %v", value, value, t)
}

// decimalBytes encodes an unscaled decimal.
func decimalBytes(s stored, v *big.Int) ([]byte, error) {
	switch s.physical {
	case format.Int32:
		if v.IsInt64() && v.Int64() == int64(int32(v.Int64())) {
			return binary.LittleEndian.AppendUint32(nil, uint32(v.Int64())), nil
		}
	case format.Int64:
		if v.IsInt64() {
			return binary.LittleEndian.AppendUint64(nil, uint64(v.Int64())), nil
		}
	case format.FixedLenByteArray:
		if bits := 8*uint(s.length) - 1; uint(v.BitLen()) <= bits {
			b := make([]byte, s.length)
			if v.Sign() < 0 {
				v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), bits+1))
			}
			return v.FillBytes(b), nil
		}
	}
	return nil, fmt.Errorf("the decimal %v is too large for %v", v, s.physical)
}

// chunkOf is a chunk of rows equal values, or of nulls, with what the footer says
// of it.
type chunkOf struct {
	bytes        []byte
	uncompressed int64
	// dataPage is where the first data page begins; 0 means that there is no
	// dictionary before it.
	dataPage  int
	codec     format.CompressionCodec
	encodings [][]byte
}

// constantChunk makes a chunk of rows equal values of a top-level column, or of
// nulls if there is no value: runs of levels, and runs of indexes into a
// dictionary of one value. Booleans have no dictionary, and few readers know
// their runs, so that they are plain, and compressed.
func constantChunk(col *column, rows int64) chunkOf {
	var c chunkOf
	c.encodings = encodedInts(int32(format.RLE), int32(format.Plain))
	switch {
	case col.constant == nil:
	case col.stored.physical == format.Boolean:
		c.codec = format.Snappy
	default:
		c.encodings = append(c.encodings, encodedInts(int32(format.RLEDictionary))...)
		c.page(format.DictionaryPage, dictionary(col), 0, 7, func(w *structWriter) {
			w.i32(1, 1)
			w.i32(2, int32(format.Plain))
		})
		c.dataPage = len(c.bytes)
	}
	for rows > 0 {
		n := min(rows, maxPageRows)
		rows -= n
		c.data(col, int(n))
	}
	return c
}

func dictionary(col *column) []byte {
	var page []byte
	if col.stored.physical == format.ByteArray {
		page = binary.LittleEndian.AppendUint32(page, uint32(len(col.constant)))
	}
	return append(page, col.constant...)
}

// data appends a data page.
func (c *chunkOf) data(col *column, rows int) {
	run := func(v byte) []byte { return append(binary.AppendUvarint(nil, uint64(rows)<<1), v) }
	var page []byte
	level := func(v byte) {
		r := run(v)
		page = append(binary.LittleEndian.AppendUint32(page, uint32(len(r))), r...)
	}
	if col.maxRepetition > 0 {
		level(0)
	}
	encoding, repeat := format.Plain, 0
	switch {
	case col.constant == nil:
		level(0)
	case col.stored.physical == format.Boolean:
		level(1)
		page = append(page, -col.constant[0]) // all bits
		repeat = (rows+7)/8 - 1
	default:
		level(1)
		encoding = format.RLEDictionary
		// Indexes of one bit: some readers know no width of 0.
		page = append(append(page, 1), run(0)...)
	}
	c.page(format.DataPage, page, repeat, 5, func(w *structWriter) {
		w.i32(1, int32(rows))
		w.i32(2, int32(encoding))
		w.i32(3, int32(format.RLE))
		w.i32(4, int32(format.RLE))
	})
}

// page appends a page whose last byte is repeated, and whose header of its own
// kind is the field id of PageHeader.
func (c *chunkOf) page(kind format.PageType, page []byte, repeat int, id int16, header func(*structWriter)) {
	size := len(page) + repeat
	if c.codec == format.Snappy {
		page = snappyRepeat(page, repeat)
	}
	before := len(c.bytes)
	w := structWriter{b: c.bytes}
	w.i32(1, int32(kind))
	w.i32(2, int32(size))
	w.i32(3, int32(len(page)))
	w.structure(id, header)
	c.bytes = w.end()
	c.uncompressed += int64(len(c.bytes)-before) + int64(size)
	c.bytes = append(c.bytes, page...)
}

// snappyRepeat compresses b, of 60 bytes at most, with its last byte repeated.
// A library would do it shorter, but not the same in all its versions.
func snappyRepeat(b []byte, repeat int) []byte {
	out := binary.AppendUvarint(nil, uint64(len(b)+repeat))
	out = append(append(out, byte(len(b)-1)<<2), b...)
	for repeat > 0 {
		const copyTwoByteOffset = 2
		n := min(repeat, 64)
		repeat -= n
		out = append(out, byte(n-1)<<2|copyTwoByteOffset, 1, 0)
	}
	return out
}
