package parquetchunk

import "github.com/parquet-go/parquet-go/format"

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
