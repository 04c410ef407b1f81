package rowtext

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// errVariant: the bytes are no variant.
var errVariant = errors.New("broken variant value")

// maxVariantDepth bounds the nesting, as a value may come from anyone.
const maxVariantDepth = 500

// AppendVariant appends a variant, of the Parquet format specification, as JSON.
func AppendVariant(dst, metadata, value []byte) ([]byte, error) {
	v := variant{left: len(value)}
	if err := v.readKeys(metadata); err != nil {
		return dst, err
	}
	return v.append(dst, value, 0)
}

// variant is a value being read.
type variant struct {
	// keys are those of objects.
	keys [][]byte
	// left is how many values may follow: each has a byte of its own, unless
	// somebody makes few bytes stand for a value without end.
	left int
}

// uintAt reads an unsigned integer of 1 to 4 bytes.
func uintAt(b []byte, at, size int) (int, bool) {
	if at < 0 || size > len(b) || at > len(b)-size {
		return 0, false
	}
	n := 0
	for i := size - 1; i >= 0; i-- {
		n = n<<8 | int(b[at+i])
	}
	return n, true
}

// span is element i of those that lie behind base, by a table of where they begin
// and end.
func span(b []byte, table, i, size, base int) ([]byte, bool) {
	from, ok1 := uintAt(b, table+i*size, size)
	to, ok2 := uintAt(b, table+(i+1)*size, size)
	if !ok1 || !ok2 || from > to || to > len(b)-base {
		return nil, false
	}
	return b[base+from : base+to], true
}

func (v *variant) readKeys(b []byte) error {
	if len(b) == 0 || b[0]&0xf != 1 {
		return errVariant
	}
	size := int(b[0]>>6) + 1
	n, ok := uintAt(b, 1, size)
	if !ok || n > len(b) {
		return errVariant
	}
	base := 1 + size*(n+2)
	for i := range n {
		key, ok := span(b, 1+size, i, size, base)
		if !ok || !utf8.Valid(key) {
			return errVariant
		}
		v.keys = append(v.keys, key)
	}
	return nil
}

// The basic types of values.
const (
	variantPrimitive = iota
	variantShortString
	variantObject
	variantArray
)

func (v *variant) append(dst, b []byte, depth int) ([]byte, error) {
	if v.left--; v.left < 0 || len(b) == 0 || depth > maxVariantDepth {
		return dst, errVariant
	}
	header := int(b[0] >> 2)
	switch b[0] & 3 {
	case variantShortString:
		return appendVariantString(dst, b[1:], header)
	case variantObject:
		return v.appendObject(dst, b, depth, header)
	case variantArray:
		return v.appendArray(dst, b, depth, header)
	}
	return appendPrimitive(dst, b[1:], header)
}

func appendVariantString(dst, b []byte, n int) ([]byte, error) {
	if n < 0 || n > len(b) || !utf8.Valid(b[:n]) {
		return dst, errVariant
	}
	return AppendJSON(dst, b[:n]), nil
}

// count reads the number of elements, which is of 1 or 4 bytes.
func count(b []byte, large bool) (n, next int, ok bool) {
	size := 1
	if large {
		size = 4
	}
	n, ok = uintAt(b, 1, size)
	return n, 1 + size, ok && n <= len(b)
}

func (v *variant) appendObject(dst, b []byte, depth, header int) ([]byte, error) {
	offsetSize, idSize := header&3+1, header>>2&3+1
	n, ids, ok := count(b, header>>4&1 == 1)
	if !ok {
		return dst, errVariant
	}
	table := ids + n*idSize
	base := table + (n+1)*offsetSize
	dst = append(dst, '{')
	for i := range n {
		id, ok1 := uintAt(b, ids+i*idSize, idSize)
		// The values are in any order; each knows its end.
		from, ok2 := uintAt(b, table+i*offsetSize, offsetSize)
		if !ok1 || !ok2 || id >= len(v.keys) || base > len(b) || from > len(b)-base {
			return dst, errVariant
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendJSON(dst, v.keys[id]), ':')
		var err error
		if dst, err = v.append(dst, b[base+from:], depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (v *variant) appendArray(dst, b []byte, depth, header int) ([]byte, error) {
	offsetSize := header&3 + 1
	n, table, ok := count(b, header>>2&1 == 1)
	if !ok {
		return dst, errVariant
	}
	base := table + (n+1)*offsetSize
	dst = append(dst, '[')
	for i := range n {
		element, ok := span(b, table, i, offsetSize, base)
		if !ok {
			return dst, errVariant
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = v.append(dst, element, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// primitiveSizes are the bytes that primitives take, by type; 0 where it varies.
var primitiveSizes = [...]int{
	0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4, 15: 4, 16: 4,
	17: 8, 18: 8, 19: 8, 20: 16,
}

func appendPrimitive(dst, b []byte, kind int) ([]byte, error) {
	if kind >= len(primitiveSizes) {
		return dst, fmt.Errorf("%w: unknown type %d", errVariant, kind)
	}
	if len(b) < primitiveSizes[kind] {
		return dst, errVariant
	}
	le := binary.LittleEndian
	switch kind {
	case 0:
		return append(dst, "null"...), nil
	case 1, 2:
		return strconv.AppendBool(dst, kind == 1), nil
	case 3:
		return strconv.AppendInt(dst, int64(int8(b[0])), 10), nil
	case 4:
		return strconv.AppendInt(dst, int64(int16(le.Uint16(b))), 10), nil
	case 5:
		return strconv.AppendInt(dst, int64(int32(le.Uint32(b))), 10), nil
	case 6:
		return strconv.AppendInt(dst, int64(le.Uint64(b)), 10), nil
	case 7:
		return appendJSONFloat(dst, math.Float64frombits(le.Uint64(b)), 64), nil
	case 14:
		return appendJSONFloat(dst, float64(math.Float32frombits(le.Uint32(b))), 32), nil
	case 8, 9, 10:
		return appendVariantDecimal(dst, b, kind)
	case 15, 16:
		return appendVariantBytes(dst, b, kind == 16)
	}
	return appendVariantTime(dst, b, kind), nil
}

func appendVariantDecimal(dst, b []byte, kind int) ([]byte, error) {
	const most = 38
	le, scale, b := binary.LittleEndian, int(b[0]), b[1:]
	if scale > most {
		return dst, errVariant
	}
	switch kind {
	case 8:
		return AppendDecimal(dst, int64(int32(le.Uint32(b))), scale), nil
	case 9:
		return AppendDecimal(dst, int64(le.Uint64(b)), scale), nil
	}
	return AppendDecimal128(dst, int64(le.Uint64(b[8:])), le.Uint64(b), scale), nil
}

func appendVariantBytes(dst, b []byte, text bool) ([]byte, error) {
	n := uint64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; n > uint64(len(b)) {
		return dst, errVariant
	}
	if text {
		return appendVariantString(dst, b, int(n))
	}
	return append(AppendBase64(append(dst, '"'), b[:n]), '"'), nil
}

// appendVariantTime appends a date, a time or a UUID.
func appendVariantTime(dst, b []byte, kind int) []byte {
	const nanosPerMicro = 1000
	dst = append(dst, '"')
	switch kind {
	case 11:
		dst = AppendDate(dst, int64(int32(binary.LittleEndian.Uint32(b))))
	case 20:
		dst = fmt.Appendf(dst, "%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
	default:
		micros := int64(binary.LittleEndian.Uint64(b))
		if kind == 18 || kind == 19 { // nanoseconds
			rest := micros % nanosPerMicro
			micros /= nanosPerMicro
			if rest < 0 {
				micros--
			}
		}
		at := len(dst)
		dst = AppendTimestamp(dst, micros, kind == 12 || kind == 18)
		if kind == 17 { // a time of day
			dst = append(dst[:at], dst[at+len("1970-01-01T"):]...)
		}
	}
	return append(dst, '"')
}

// appendJSONFloat appends a float, in quotes if JSON has no number for it.
func appendJSONFloat(dst []byte, v float64, size int) []byte {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		return AppendFloat(dst, v, size)
	}
	return append(AppendFloat(append(dst, '"'), v, size), '"')
}
