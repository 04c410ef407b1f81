package snapshot

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
)

// pageValues are the values of a page that are not null, in the memory of the
// page or of the column's dictionary.
type pageValues struct {
	// indexes are the places of the values in the dictionary, nil without one.
	indexes []int32

	// One of these, by the type of the column.
	int32s  []int32
	int64s  []int64
	int96s  []deprecated.Int96
	floats  []float32
	doubles []float64
	bits    []byte
	// bytes holds texts, each from its offset to the next one, or of a width.
	bytes   []byte
	offsets []uint32
	width   int
}

func valuesOf(page parquet.Page) pageValues {
	var out pageValues
	if dictionary := page.Dictionary(); dictionary != nil {
		indexes := page.Data()
		out.indexes = indexes.Int32()
		page = dictionary.Page()
	}
	data := page.Data()
	switch kind := page.Type().Kind(); kind {
	case parquet.Int32:
		out.int32s = data.Int32()
	case parquet.Int64:
		out.int64s = data.Int64()
	case parquet.Int96:
		out.int96s = data.Int96()
	case parquet.Float:
		out.floats = data.Float()
	case parquet.Double:
		out.doubles = data.Double()
	case parquet.Boolean:
		out.bits = data.Boolean()
	case parquet.ByteArray:
		out.bytes, out.offsets = data.ByteArray()
	case parquet.FixedLenByteArray:
		out.bytes, out.width = data.FixedLenByteArray()
	default:
		panic(fmt.Sprintf("a page of type %s", kind)) // guarded, as what parquet-go does on damaged files
	}
	return out
}

// at is the place of value i.
func (v *pageValues) at(i int) int {
	if v.indexes != nil {
		return int(v.indexes[i])
	}
	return i
}

// text returns a text, which is never nil.
func (v *pageValues) text(i int) []byte {
	i = v.at(i)
	if v.width > 0 {
		return v.bytes[i*v.width : (i+1)*v.width : (i+1)*v.width]
	}
	from, to := v.offsets[i], v.offsets[i+1]
	if from == to {
		return []byte{}
	}
	return v.bytes[from:to:to]
}

func (v *pageValues) long(i int) int64 {
	i = v.at(i)
	if v.int32s != nil {
		return int64(v.int32s[i])
	}
	return v.int64s[i]
}

func (v *pageValues) flag(i int) bool {
	i = v.at(i)
	return v.bits[i/8]>>(i%8)&1 != 0
}
