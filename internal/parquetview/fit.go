package parquetview

import (
	"math"
	"math/big"

	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// fitting is how a leaf of the file becomes one of the wanted type.
type fitting struct {
	stored
	convert parquetchunk.Conversion
	// same says that the file's schema says what is wanted.
	same bool
}

// fit shows how a leaf of the file becomes one of the wanted type; ok is false if
// it cannot.
func fit(n *parquetfile.Node, t Type) (f fitting, ok bool) {
	want := t.stored()
	asStored := func(ok bool) (fitting, bool) {
		return fitting{
			stored: stored{physical: n.Physical, length: n.Length, logical: want.logical},
			same:   n.Logical == want.logical || plainInt(n, want),
		}, ok
	}
	became := func(kind parquetchunk.ConversionKind, scale int) (fitting, bool) {
		return fitting{stored: want, convert: parquetchunk.Conversion{
			Kind: kind, Physical: want.physical, TypeLength: int(want.length), Scale: scale,
		}}, true
	}
	bare := n.Logical.Kind == parquetfile.None
	switch t.Kind {
	case Boolean, Float32:
		return asStored(n.Physical == want.physical && bare)
	case Int8, Int16, Int32:
		bits := intBits(n)
		return asStored(n.Physical == format.Int32 && bits > 0 && (bare || bits <= width(t)))
	case Int64:
		switch bits := intBits(n); {
		case bits == 0 || bits > 64:
		case n.Physical == format.Int64:
			return asStored(true)
		case bits <= 32:
			return became(parquetchunk.ToInt64, 0)
		}
	case Float64:
		switch bits := intBits(n); {
		case n.Physical == format.Double && bare:
			return asStored(true)
		case n.Physical == format.Float && bare, n.Physical == format.Int32 && bits > 0 && bits <= 32:
			return became(parquetchunk.ToDouble, 0)
		}
	case Decimal:
		return fitDecimal(n, t, asStored, became)
	case String:
		switch n.Logical.Kind {
		case parquetfile.None, parquetfile.String, parquetfile.Enum, parquetfile.JSON:
			return asStored(n.Physical == format.ByteArray)
		}
	case Binary:
		switch n.Logical.Kind {
		case parquetfile.Decimal, parquetfile.Interval, parquetfile.Float16:
		default:
			return asStored(n.Physical == format.ByteArray || n.Physical == format.FixedLenByteArray)
		}
	case Date:
		return asStored(n.Physical == format.Int32 && (bare || n.Logical.Kind == parquetfile.Date))
	case Timestamp, TimestampNTZ:
		switch {
		case n.Physical == format.Int96:
			return became(parquetchunk.Int96ToMicros, 0)
		case t.Kind == TimestampNTZ && n.Physical == format.Int32 && n.Logical.Kind == parquetfile.Date:
			return became(parquetchunk.DateToMicros, 0)
		case n.Physical != format.Int64 || n.Logical.Kind != parquetfile.Timestamp:
		case n.Logical.Unit == parquetfile.Micros:
			return asStored(true)
		case n.Logical.Unit == parquetfile.Millis:
			return became(parquetchunk.MillisToMicros, 0)
		case n.Logical.Unit == parquetfile.Nanos:
			return became(parquetchunk.NanosToMicros, 0)
		}
	}
	return fitting{}, false
}

// fitDecimal is fit for decimals: every value of the file must be one of the
// wanted type, exactly.
func fitDecimal(
	n *parquetfile.Node, t Type,
	asStored func(bool) (fitting, bool), became func(parquetchunk.ConversionKind, int) (fitting, bool),
) (fitting, bool) {
	var digits, scale int
	switch bits := intBits(n); {
	case n.Logical.Kind == parquetfile.Decimal && decimalType(n):
		digits, scale = int(n.Logical.Precision), int(n.Logical.Scale)
	case bits > 0 && bits <= 64:
		digits = len(new(big.Int).Lsh(big.NewInt(1), uint(bits-1)).String())
	default:
		return fitting{}, false
	}
	more := t.Scale - scale
	if more < 0 || digits-scale > t.Precision-t.Scale {
		return fitting{}, false
	}
	if n.Logical.Kind == parquetfile.Decimal && more == 0 && t.Precision <= maxPrecision(n) {
		return asStored(true)
	}
	return became(parquetchunk.ToDecimal, more)
}

// decimalType reports whether the decimal n is one that the format knows.
func decimalType(n *parquetfile.Node) bool {
	l := n.Logical
	return l.Precision > 0 && l.Scale >= 0 && l.Scale <= l.Precision && int(l.Precision) <= maxPrecision(n)
}

// maxPrecision is the number of digits that the physical type of n can hold.
func maxPrecision(n *parquetfile.Node) int {
	switch n.Physical {
	case format.Int32:
		return 9
	case format.Int64:
		return 18
	case format.ByteArray:
		return math.MaxInt
	case format.FixedLenByteArray:
		return int(math.Log10(2) * float64(8*int64(n.Length)-1))
	}
	return 0
}

// intBits is the width of the integers that a leaf holds, with their sign; 0 if
// it holds none.
func intBits(n *parquetfile.Node) int {
	var physical int
	switch n.Physical {
	case format.Int32:
		physical = 32
	case format.Int64:
		physical = 64
	default:
		return 0
	}
	switch l := n.Logical; {
	case l.Kind == parquetfile.None:
		return physical
	case l.Kind != parquetfile.Int || l.Width <= 0 || int(l.Width) > physical:
		return 0
	case l.Signed:
		return int(l.Width)
	default:
		return int(l.Width) + 1
	}
}

// width is the width of an integer type in bits.
func width(t Type) int {
	switch t.Kind {
	case Int8:
		return 8
	case Int16:
		return 16
	}
	return 32
}

// plainInt says that n is annotated as the integer that it is without.
func plainInt(n *parquetfile.Node, want stored) bool {
	l := n.Logical
	return want.logical.Kind == parquetfile.None && l.Kind == parquetfile.Int && l.Signed &&
		(l.Width == 32 && n.Physical == format.Int32 || l.Width == 64 && n.Physical == format.Int64)
}
