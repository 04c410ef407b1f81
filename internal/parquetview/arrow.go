package parquetview

import (
	"encoding/base64"
	"encoding/binary"
)

// Members of the union Type of Arrow's Schema.fbs.
const (
	arrowInt             = 2
	arrowFloatingPoint   = 3
	arrowBinary          = 4
	arrowUtf8            = 5
	arrowBool            = 6
	arrowDecimal         = 7
	arrowDate            = 8
	arrowTimestamp       = 10
	arrowList            = 12
	arrowStruct          = 13
	arrowFixedSizeBinary = 15
	arrowMap             = 17
	arrowLargeBinary     = 19
	arrowLargeUtf8       = 20
	arrowLargeList       = 21
)

// arrowSchema decodes the value of ARROW:schema, an encapsulated message in
// base64, and returns its Schema.
func arrowSchema(value []byte) (table, bool) {
	b := make([]byte, base64.StdEncoding.DecodedLen(len(value)))
	n, err := base64.StdEncoding.Decode(b, value)
	if err != nil || n < 8 {
		return table{}, false
	}
	b = b[:n]
	// Older messages begin with their length, newer ones with a mark.
	if binary.LittleEndian.Uint32(b) == 0xFFFFFFFF {
		b = b[4:]
	}
	message := (&flatbuffer{b: b[4:]}).root()
	const headerIsSchema = 1
	if message.byte(1) != headerIsSchema {
		return table{}, false
	}
	return message.table(2), true
}

// arrowAgrees reports whether a reader that follows the value of ARROW:schema
// sees the columns, which the file has, with their names and types. Sizes of
// offsets do not matter: readers take large strings and lists for the same.
// Dictionaries, views, other time zones and extension types do: a table of such
// a file and one without is refused, or cannot be filtered.
func arrowAgrees(value []byte, columns []Field) bool {
	s, ok := arrowSchema(value)
	if !ok || !arrowFieldsAgree(s.tables(1), columns) {
		return false
	}
	for _, kv := range s.tables(2) {
		if kv.string(0) == pandasHint && !pandasAgrees([]byte(kv.string(1))) {
			return false
		}
	}
	return !s.f.bad
}

func arrowFieldsAgree(fields []table, wanted []Field) bool {
	if len(fields) != len(wanted) {
		return false
	}
	for i, f := range fields {
		if f.string(0) != wanted[i].Name || !arrowFieldAgrees(f, wanted[i].Type) {
			return false
		}
	}
	return true
}

func arrowFieldAgrees(f table, t Type) bool {
	if f.field(4) != 0 {
		return false // a dictionary
	}
	if t.Kind == Variant || t.Kind == Other {
		return true
	}
	for _, kv := range f.tables(6) {
		if kv.string(0) == "ARROW:extension:name" {
			return false
		}
	}
	kind, detail, children := f.byte(2), f.table(3), f.tables(5)
	switch t.Kind {
	case Boolean:
		return kind == arrowBool
	case Int8, Int16, Int32, Int64:
		bits := map[Kind]int{Int8: 8, Int16: 16, Int32: 32, Int64: 64}[t.Kind]
		return kind == arrowInt && detail.int32(0, 0) == bits && detail.byte(1) != 0
	case Float32:
		return kind == arrowFloatingPoint && detail.int16(0, 0) == 1
	case Float64:
		return kind == arrowFloatingPoint && detail.int16(0, 0) == 2
	case Decimal:
		return kind == arrowDecimal && detail.int32(0, 0) == t.Precision && detail.int32(1, 0) == t.Scale && detail.int32(2, 128) == 128
	case String:
		return kind == arrowUtf8 || kind == arrowLargeUtf8
	case Binary:
		return kind == arrowBinary || kind == arrowLargeBinary || kind == arrowFixedSizeBinary
	case Date:
		const days, millis = 0, 1
		return kind == arrowDate && detail.int16(0, millis) == days
	case Timestamp, TimestampNTZ:
		const micros = 2
		zone := ""
		if t.Kind == Timestamp {
			zone = "UTC"
		}
		return kind == arrowTimestamp && detail.int16(0, 0) == micros && detail.string(1) == zone
	case Struct:
		return kind == arrowStruct && arrowFieldsAgree(children, t.Fields)
	case List:
		return (kind == arrowList || kind == arrowLargeList) && len(children) == 1 && arrowFieldAgrees(children[0], t.Fields[0].Type)
	case Map:
		if kind != arrowMap || len(children) != 1 {
			return false
		}
		entry := children[0].tables(5)
		return len(entry) == 2 && arrowFieldAgrees(entry[0], t.Fields[0].Type) && arrowFieldAgrees(entry[1], t.Fields[1].Type)
	}
	return false
}
