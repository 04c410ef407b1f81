package parquetview

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// structWriter appends the fields of a struct, in ascending order of their ids,
// in thrift's compact protocol.
type structWriter struct {
	b    []byte
	last int16
}

// raw appends a field whose value is encoded already.
func (w *structWriter) raw(id int16, t thrift.Type, value []byte) {
	w.header(id, t)
	w.b = append(w.b, value...)
}

func (w *structWriter) header(id int16, t thrift.Type) {
	if delta := id - w.last; delta > 0 && delta < 16 {
		w.b = append(w.b, byte(delta)<<4|byte(t))
	} else {
		w.b = binary.AppendVarint(append(w.b, byte(t)), int64(id))
	}
	w.last = id
}

func (w *structWriter) i8(id int16, v int8) {
	w.header(id, thrift.I8)
	w.b = append(w.b, byte(v))
}

func (w *structWriter) i16(id int16, v int16) {
	w.header(id, thrift.I16)
	w.b = binary.AppendVarint(w.b, int64(v))
}

func (w *structWriter) i32(id int16, v int32) {
	w.header(id, thrift.I32)
	w.b = binary.AppendVarint(w.b, int64(v))
}

func (w *structWriter) i64(id int16, v int64) {
	w.header(id, thrift.I64)
	w.b = binary.AppendVarint(w.b, v)
}

func (w *structWriter) bool(id int16, v bool) {
	if v {
		w.header(id, thrift.TRUE)
	} else {
		w.header(id, thrift.FALSE)
	}
}

func (w *structWriter) bytes(id int16, v []byte) {
	w.header(id, thrift.BINARY)
	w.b = appendBytes(w.b, v)
}

// list appends a list of values that are encoded already.
func (w *structWriter) list(id int16, elem thrift.Type, values [][]byte) {
	w.header(id, thrift.LIST)
	w.b = appendListHeader(w.b, elem, len(values))
	for _, v := range values {
		w.b = append(w.b, v...)
	}
}

// structure appends a struct of the fields that write appends.
func (w *structWriter) structure(id int16, write func(w *structWriter)) {
	w.header(id, thrift.STRUCT)
	inner := structWriter{b: w.b}
	write(&inner)
	w.b = inner.end()
}

// end ends the struct and returns what was appended.
func (w *structWriter) end() []byte { return append(w.b, byte(thrift.STOP)) }

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendListHeader(b []byte, elem thrift.Type, n int) []byte {
	if n < 15 {
		return append(b, byte(n)<<4|byte(elem))
	}
	return binary.AppendUvarint(append(b, 0xF0|byte(elem)), uint64(n))
}

func encodedStrings(names []string) [][]byte {
	values := make([][]byte, len(names))
	for i, name := range names {
		values[i] = appendBytes(nil, []byte(name))
	}
	return values
}

func encodedInts(v ...int32) [][]byte {
	values := make([][]byte, len(v))
	for i := range v {
		values[i] = binary.AppendVarint(nil, int64(v[i]))
	}
	return values
}
