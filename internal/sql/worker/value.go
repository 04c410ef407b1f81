//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/rowtext"
	"github.com/deltafs/deltafs/internal/sql"
)

// stringT is how the engine keeps a string: short ones lie in the value.
type stringT struct {
	length uint32
	prefix [4]byte
	// rest goes on with the prefix, or points to the string.
	rest unsafe.Pointer
}

const inlined = 12

// bytesAt is a string or binary value where it lies.
func (r *reader) bytesAt(row int) []byte {
	s := (*stringT)(unsafe.Add(r.data, row*int(unsafe.Sizeof(stringT{}))))
	if s.length <= inlined {
		return unsafe.Slice(&s.prefix[0], s.length)
	}
	return unsafe.Slice((*byte)(s.rest), s.length)
}

// listEntry is where the elements of a list lie among those of its column.
type listEntry struct{ offset, length uint64 }

// int128 is how the engine keeps wide decimals.
type int128 struct {
	low  uint64
	high int64
}

// intAt is an integer of any width; false if it has more than 63 bits.
func (r *reader) intAt(row int) (int64, bool) {
	switch r.src.store {
	case duckdb.TypeTinyInt:
		return int64(at[int8](r.data, row)), true
	case duckdb.TypeSmallInt:
		return int64(at[int16](r.data, row)), true
	case duckdb.TypeInteger, duckdb.TypeDate:
		return int64(at[int32](r.data, row)), true
	case duckdb.TypeUTinyInt:
		return int64(at[uint8](r.data, row)), true
	case duckdb.TypeUSmallInt:
		return int64(at[uint16](r.data, row)), true
	case duckdb.TypeUInteger:
		return int64(at[uint32](r.data, row)), true
	case duckdb.TypeUBigInt:
		v := at[uint64](r.data, row)
		return int64(v), v <= math.MaxInt64
	}
	return at[int64](r.data, row), true
}

// appendCSV appends a value as a field; null is how null looks.
func (r *reader) appendCSV(dst []byte, row int, null string) ([]byte, error) {
	if r.null(row) {
		return append(dst, null...), nil
	}
	switch r.want.Name {
	case "string":
		b := r.bytesAt(row)
		if err := r.check(b); err != nil {
			return dst, err
		}
		return appendField(dst, b, null), nil
	case "struct", "array", "map", "variant":
		value, err := r.appendJSON(nil, row)
		return rowtext.AppendCSV(dst, value), err
	case "binary":
		return appendField(dst, rowtext.AppendBase64(nil, r.bytesAt(row)), null), nil
	}
	return r.appendPlain(dst, row)
}

// appendField appends a field that must not be taken for null.
func appendField(dst, b []byte, null string) []byte {
	if null != "" && string(b) == null {
		return append(append(append(dst, '"'), b...), '"')
	}
	return rowtext.AppendCSV(dst, b)
}

// check refuses a string that is not UTF-8; the engine has checked those that
// the file declares as strings.
func (r *reader) check(b []byte) error {
	if r.src.id == duckdb.TypeBlob && !utf8.Valid(b) {
		return errors.New("a string is not valid UTF-8")
	}
	return nil
}

// appendJSON appends a value as JSON.
func (r *reader) appendJSON(dst []byte, row int) ([]byte, error) {
	if r.null(row) {
		return append(dst, "null"...), nil
	}
	switch r.want.Name {
	case "string":
		b := r.bytesAt(row)
		if err := r.check(b); err != nil {
			return dst, err
		}
		return rowtext.AppendJSON(dst, b), nil
	case "binary":
		return append(rowtext.AppendBase64(append(dst, '"'), r.bytesAt(row)), '"'), nil
	case "struct":
		return r.appendStruct(dst, row)
	case "variant":
		return r.appendVariant(dst, row)
	case "array":
		return r.appendArray(dst, row)
	case "map":
		return r.appendMap(dst, row)
	case "date", "timestamp", "timestamp_ntz":
		dst, err := r.appendPlain(append(dst, '"'), row)
		return append(dst, '"'), err
	case "float", "double":
		start := len(dst)
		dst, err := r.appendPlain(dst, row)
		// NaN and the infinities are no numbers of JSON.
		if last := dst[len(dst)-1]; last == 'N' || last == 'y' {
			dst = append(slices.Insert(dst, start, '"'), '"')
		}
		return dst, err
	}
	return r.appendPlain(dst, row)
}

// appendPlain appends a value that looks the same in CSV and in JSON, quotes
// aside.
func (r *reader) appendPlain(dst []byte, row int) ([]byte, error) {
	switch r.want.Name {
	case "boolean":
		return strconv.AppendBool(dst, at[bool](r.data, row)), nil
	case "byte", "short", "integer", "long":
		return r.appendInteger(dst, row)
	case "float", "double":
		return r.appendFloat(dst, row), nil
	case "decimal":
		return r.appendDecimal(dst, row)
	case "date":
		v, _ := r.intAt(row)
		return rowtext.AppendDate(dst, v), nil
	case "timestamp", "timestamp_ntz":
		micros, err := r.microsAt(row)
		return rowtext.AppendTimestamp(dst, micros, r.want.Name == "timestamp"), err
	}
	return dst, fault.New(sql.ErrFailed, "type %s cannot be written as text", r.want.Name)
}

func (r *reader) appendInteger(dst []byte, row int) ([]byte, error) {
	v, ok := r.intAt(row)
	if least := integerRange(r.want.Name); !ok || v < least || v > -1-least {
		return dst, fault.New(sql.ErrFailed, "%d is no %s", v, r.want.Name)
	}
	return strconv.AppendInt(dst, v, 10), nil
}

// integerRange is the least value of a type; the largest is -1 less that.
func integerRange(name string) int64 {
	switch name {
	case "byte":
		return math.MinInt8
	case "short":
		return math.MinInt16
	case "integer":
		return math.MinInt32
	}
	return math.MinInt64
}

func (r *reader) appendFloat(dst []byte, row int) []byte {
	const single, double = 32, 64
	switch {
	case r.src.id == duckdb.TypeDouble:
		return rowtext.AppendFloat(dst, at[float64](r.data, row), double)
	case r.src.id != duckdb.TypeFloat:
		v, _ := r.intAt(row)
		return rowtext.AppendFloat(dst, float64(v), double)
	case r.want.Name == "double":
		return rowtext.AppendFloat(dst, float64(at[float32](r.data, row)), double)
	}
	return rowtext.AppendFloat(dst, float64(at[float32](r.data, row)), single)
}

func (r *reader) appendDecimal(dst []byte, row int) ([]byte, error) {
	start := len(dst)
	switch {
	case r.src.store == duckdb.TypeHugeInt:
		v := at[int128](r.data, row)
		dst = rowtext.AppendDecimal128(dst, v.high, v.low, r.src.scale)
	default:
		v, ok := r.intAt(row)
		if !ok {
			return dst, fault.New(sql.ErrFailed, "a value is no %s", typeName(r.want))
		}
		dst = rowtext.AppendDecimal(dst, v, r.src.scale)
	}
	// A column that was widened has more digits than the file.
	missing := r.want.Scale - r.src.scale
	if missing > 0 && bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, '.')
	}
	for range missing {
		dst = append(dst, '0')
	}
	return dst, nil
}

// microsAt is a time in microseconds.
func (r *reader) microsAt(row int) (int64, error) {
	v, _ := r.intAt(row)
	const perDay, perSecond, perMilli = 86_400_000_000, 1_000_000, 1_000
	factor := int64(1)
	switch r.src.id {
	case duckdb.TypeDate:
		factor = perDay
	case duckdb.TypeTimestampS:
		factor = perSecond
	case duckdb.TypeTimestampMS:
		factor = perMilli
	case duckdb.TypeTimestampNS:
		return floorDiv(v, 1000), nil
	}
	if v > math.MaxInt64/factor || v < math.MinInt64/factor {
		return 0, fault.New(sql.ErrFailed, "a time is out of range")
	}
	return v * factor, nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func (r *reader) appendStruct(dst []byte, row int) (_ []byte, err error) {
	if len(r.parts) == 0 {
		return append(dst, "{}"...), nil
	}
	for _, part := range r.parts {
		if dst, err = part.appendJSON(append(dst, part.key...), row); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (r *reader) appendVariant(dst []byte, row int) ([]byte, error) {
	metadata, value := r.parts[0], r.parts[1]
	if metadata.null(row) || value.null(row) {
		return dst, fault.New(sql.ErrFailed, "a variant has no value")
	}
	return rowtext.AppendVariant(dst, metadata.bytesAt(row), value.bytesAt(row))
}

func (r *reader) appendArray(dst []byte, row int) (_ []byte, err error) {
	entry := at[listEntry](r.data, row)
	dst = append(dst, '[')
	for i := range int(entry.length) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = r.parts[0].appendJSON(dst, int(entry.offset)+i); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// appendMap appends a map as an object, as Spark does: a key that is no string
// is spelled as its value would be.
func (r *reader) appendMap(dst []byte, row int) (_ []byte, err error) {
	entry := at[listEntry](r.data, row)
	dst = append(dst, '{')
	for i := range int(entry.length) {
		if i > 0 {
			dst = append(dst, ',')
		}
		element := int(entry.offset) + i
		key, err := r.parts[0].appendJSON(nil, element)
		if err != nil {
			return dst, err
		}
		if key[0] != '"' {
			key = rowtext.AppendJSON(nil, key)
		}
		dst = append(append(dst, key...), ':')
		if dst, err = r.parts[1].appendJSON(dst, element); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}
