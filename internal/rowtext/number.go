package rowtext

import (
	"bytes"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// AppendFloat appends a number of 32 or 64 bits, NaN and the infinities
// included.
func AppendFloat(dst []byte, v float64, size int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	start := len(dst)
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, v, 'e', -1, size)
	}
	dst = strconv.AppendFloat(dst, v, 'f', -1, size)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, '.', '0')
	}
	return dst
}

// AppendDecimal appends an unscaled value with its point before the last scale
// digits.
func AppendDecimal(dst []byte, unscaled int64, scale int) []byte {
	if unscaled < 0 {
		dst = append(dst, '-')
	}
	var digits [20]byte
	return appendPoint(dst, strconv.AppendUint(digits[:0], magnitude(unscaled), 10), scale)
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// AppendDecimal128 is AppendDecimal for a value of 128 bits, in two's
// complement.
func AppendDecimal128(dst []byte, hi int64, lo uint64, scale int) []byte {
	high := uint64(hi)
	if hi < 0 {
		dst = append(dst, '-')
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	var buf [40]byte
	// 39 digits at most: two divisions leave pieces of 19 digits.
	const piece = 1e19
	if high == 0 {
		return appendPoint(dst, strconv.AppendUint(buf[:0], lo, 10), scale)
	}
	top, rest := high/piece, high%piece
	middle, low := bits.Div64(rest, lo, piece)
	digits := buf[:0]
	if top > 0 {
		// The quotient has more than 64 bits.
		v := new(big.Int).SetUint64(high)
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(lo))
		digits = v.Append(digits, 10)
	} else {
		digits = strconv.AppendUint(digits, middle, 10)
		digits = appendPadded(digits, low, 19)
	}
	return appendPoint(dst, digits, scale)
}

// appendPoint appends digits with the point before the last scale of them.
func appendPoint(dst, digits []byte, scale int) []byte {
	if scale <= 0 {
		return append(dst, digits...)
	}
	whole := len(digits) - scale
	if whole > 0 {
		dst = append(dst, digits[:whole]...)
		dst = append(dst, '.')
		return append(dst, digits[whole:]...)
	}
	dst = append(dst, '0', '.')
	for range -whole {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// appendPadded appends v with zeros in front of it up to the width.
func appendPadded(dst []byte, v uint64, width int) []byte {
	var buf [20]byte
	digits := strconv.AppendUint(buf[:0], v, 10)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// AppendDecimalBig is AppendDecimal for a value of any size.
func AppendDecimalBig(dst []byte, unscaled *big.Int, scale int) []byte {
	if unscaled.Sign() < 0 {
		dst = append(dst, '-')
	}
	return appendPoint(dst, new(big.Int).Abs(unscaled).Append(nil, 10), scale)
}
