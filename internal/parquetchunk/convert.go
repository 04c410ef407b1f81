package parquetchunk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// Conversion is what is done to each value of a chunk. The zero Conversion
// leaves values as they are.
type Conversion struct {
	Kind ConversionKind
	// Physical and TypeLength are the new type.
	Physical   format.Type
	TypeLength int
	// Scale is the power of ten that decimals and integers that become decimals
	// are multiplied with.
	Scale int
}

// ConversionKind is the kind of a conversion.
type ConversionKind int

// The kinds of conversions.
const (
	Keep ConversionKind = iota
	// ToInt64 widens INT32, with its sign.
	ToInt64
	// ToDouble widens INT32 and FLOAT.
	ToDouble
	// ToDecimal makes an INT32, INT64 or FIXED_LEN_BYTE_ARRAY decimal of INT32,
	// INT64, BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY, multiplied with 10^Scale.
	ToDecimal
	// DateToMicros makes microseconds of days.
	DateToMicros
	// Int96ToMicros, MillisToMicros and NanosToMicros make INT64 microseconds;
	// what is smaller is cut off towards the past.
	Int96ToMicros
	MillisToMicros
	NanosToMicros
)

var (
	errConversion = errors.New("no such conversion")
	errRange      = errors.New("a value does not fit into the column's type")
)

// converter appends converted PLAIN values to dst.
type converter func(dst, src []byte) ([]byte, error)

// converter is nil for Keep.
func (c Conversion) converter(s *Source) (converter, error) {
	from, to := s.Physical, c.Physical
	switch {
	case c.Kind == Keep:
		return nil, nil
	case c.Kind == ToInt64 && from == format.Int32 && to == format.Int64:
		return ints(func(v int64) (int64, bool) { return v, true }, 4), nil
	case c.Kind == ToDouble && from == format.Int32 && to == format.Double:
		return doubles(func(b uint32) float64 { return float64(int32(b)) }), nil
	case c.Kind == ToDouble && from == format.Float && to == format.Double:
		return doubles(func(b uint32) float64 { return float64(math.Float32frombits(b)) }), nil
	case c.Kind == DateToMicros && from == format.Int32 && to == format.Int64:
		return ints(func(v int64) (int64, bool) { return multiply(v, microsPerDay) }, 4), nil
	case c.Kind == MillisToMicros && from == format.Int64 && to == format.Int64:
		return ints(func(v int64) (int64, bool) { return multiply(v, 1000) }, 8), nil
	case c.Kind == NanosToMicros && from == format.Int64 && to == format.Int64:
		return ints(func(v int64) (int64, bool) { return floorDiv(v, 1000), true }, 8), nil
	case c.Kind == Int96ToMicros && from == format.Int96 && to == format.Int64:
		return int96Micros, nil
	case c.Kind == ToDecimal:
		return c.decimals(s)
	}
	return nil, fmt.Errorf("%w: kind %d of %v to %v", errConversion, c.Kind, from, to)
}

// ints converts integers of this width to INT64.
func ints(f func(int64) (int64, bool), width int) converter {
	return func(dst, src []byte) ([]byte, error) {
		dst = grow(dst, len(src)/width*8)
		for ; len(src) >= width; src = src[width:] {
			v := int64(int32(binary.LittleEndian.Uint32(src)))
			if width == 8 {
				v = int64(binary.LittleEndian.Uint64(src))
			}
			w, ok := f(v)
			if !ok {
				return nil, fmt.Errorf("%w: %d", errRange, v)
			}
			dst = binary.LittleEndian.AppendUint64(dst, uint64(w))
		}
		return dst, nil
	}
}

// doubles converts values of four bytes to DOUBLE.
func doubles(f func(uint32) float64) converter {
	return func(dst, src []byte) ([]byte, error) {
		dst = grow(dst, len(src)*2)
		for ; len(src) >= 4; src = src[4:] {
			v := f(binary.LittleEndian.Uint32(src))
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
		}
		return dst, nil
	}
}

const (
	microsPerDay = 24 * 60 * 60 * 1_000_000
	// julianEpoch is the Julian day number of 1970-01-01.
	julianEpoch = 2_440_588
)

// int96Micros converts nanoseconds of a day and a Julian day number. Writers put
// nanoseconds outside of a day there too, so they count as they are.
func int96Micros(dst, src []byte) ([]byte, error) {
	dst = grow(dst, len(src)/12*8)
	for ; len(src) >= 12; src = src[12:] {
		nanos := int64(binary.LittleEndian.Uint64(src))
		day := int64(int32(binary.LittleEndian.Uint32(src[8:]))) - julianEpoch
		v, ok := multiply(day, microsPerDay)
		micros := floorDiv(nanos, 1000)
		sum := v + micros
		if !ok || (sum < v) != (micros < 0) {
			return nil, fmt.Errorf("%w: %d nanoseconds of the Julian day %d", errRange, nanos, day+julianEpoch)
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(sum))
	}
	return dst, nil
}

// multiply returns v*by for by > 0, and whether it is an int64.
func multiply(v, by int64) (int64, bool) {
	return v * by, v >= math.MinInt64/by && v <= math.MaxInt64/by
}

// floorDiv is v/by for by > 0, rounded down.
func floorDiv(v, by int64) int64 {
	if v < 0 {
		return -((-v-1)/by + 1)
	}
	return v / by
}
