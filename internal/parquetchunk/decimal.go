package parquetchunk

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

// int128 is the unscaled value of a decimal, which has at most 38 digits.
type int128 struct {
	hi int64
	lo uint64
}

func fromInt64(v int64) int128 { return int128{v >> 63, uint64(v)} }

// fromBytes reads a big-endian number of any length, and says whether it has no
// more than 128 bits.
func fromBytes(b []byte) (int128, bool) {
	var v int128
	if len(b) > 0 {
		v = fromInt64(int64(int8(b[0])) >> 7)
	}
	sign := byte(v.lo)
	for len(b) > 16 {
		if b[0] != sign || (b[1]^sign)&0x80 != 0 {
			return v, false
		}
		b = b[1:]
	}
	for _, c := range b {
		v.hi = v.hi<<8 | int64(v.lo>>56)
		v.lo = v.lo<<8 | uint64(c)
	}
	return v, true
}

func (v int128) negative() int128 {
	lo, borrow := bits.Sub64(0, v.lo, 0)
	hi, _ := bits.Sub64(0, uint64(v.hi), borrow)
	return int128{int64(hi), lo}
}

// times10 returns v*10, and whether it has no more than 128 bits.
func (v int128) times10() (int128, bool) {
	minus := v.hi < 0
	if minus {
		v = v.negative()
	}
	carry, lo := bits.Mul64(v.lo, 10)
	over, hi := bits.Mul64(uint64(v.hi), 10)
	hi, more := bits.Add64(hi, carry, 0)
	// The least number of all has no magnitude here, and no multiple either.
	ok := v.hi >= 0 && over == 0 && more == 0 && int64(hi) >= 0
	v = int128{int64(hi), lo}
	if minus {
		v = v.negative()
	}
	return v, ok
}

// isInt64 says whether v has no more than 64 bits.
func (v int128) isInt64() bool { return v.hi == int64(v.lo)>>63 }

func (v int128) String() string {
	b := new(big.Int).Lsh(big.NewInt(v.hi), 64)
	return b.Add(b, new(big.Int).SetUint64(v.lo)).String()
}

// append encodes v as a decimal of this type, and says whether it fits.
func (v int128) append(dst []byte, physical format.Type, length int) ([]byte, bool) {
	switch physical {
	case format.Int32:
		return binary.LittleEndian.AppendUint32(dst, uint32(v.lo)), v.isInt64() && int64(v.lo) == int64(int32(v.lo))
	case format.Int64:
		return binary.LittleEndian.AppendUint64(dst, v.lo), v.isInt64()
	}
	for i := length - 1; i >= 0; i-- {
		switch {
		case i >= 16:
			dst = append(dst, byte(v.hi>>63))
		case i >= 8:
			dst = append(dst, byte(v.hi>>(8*(i-8))))
		default:
			dst = append(dst, byte(v.lo>>(8*i)))
		}
	}
	if length >= 16 {
		return dst, true
	}
	if length > 8 {
		top := uint(8*(length-8) - 1)
		return dst, v.hi>>top == v.hi>>63
	}
	top := uint(8*length - 1)
	return dst, v.isInt64() && int64(v.lo)>>top == int64(v.lo)>>63
}

// decimals is the converter of ToDecimal.
func (c Conversion) decimals(s *Source) (converter, error) {
	to := c.Physical
	if to != format.Int32 && to != format.Int64 && (to != format.FixedLenByteArray || c.TypeLength <= 0) {
		return nil, fmt.Errorf("%w: decimals as %v", errConversion, to)
	}
	if c.Scale < 0 || c.Scale > 38 {
		return nil, fmt.Errorf("%w: decimals with %d digits more", errConversion, c.Scale)
	}
	put := func(dst []byte, v int128, ok bool) ([]byte, error) {
		unscaled := v
		for i := 0; i < c.Scale && ok; i++ {
			v, ok = v.times10()
		}
		if ok {
			dst, ok = v.append(dst, to, c.TypeLength)
		}
		if !ok {
			return nil, fmt.Errorf("%w: the unscaled decimal %v, with %d more digits", errRange, unscaled, c.Scale)
		}
		return dst, nil
	}
	switch width := s.width(); s.Physical {
	case format.Int32, format.Int64:
		return func(dst, src []byte) (_ []byte, err error) {
			for ; len(src) >= width && err == nil; src = src[width:] {
				v := int64(int32(binary.LittleEndian.Uint32(src)))
				if width == 8 {
					v = int64(binary.LittleEndian.Uint64(src))
				}
				dst, err = put(dst, fromInt64(v), true)
			}
			return dst, err
		}, nil
	case format.FixedLenByteArray:
		return func(dst, src []byte) (_ []byte, err error) {
			for ; len(src) >= width && err == nil; src = src[width:] {
				v, ok := fromBytes(src[:width])
				dst, err = put(dst, v, ok)
			}
			return dst, err
		}, nil
	case format.ByteArray:
		return func(dst, src []byte) (_ []byte, err error) {
			for len(src) >= 4 && err == nil {
				n := uint64(binary.LittleEndian.Uint32(src))
				if src = src[4:]; n > uint64(len(src)) {
					return nil, fmt.Errorf("%w: a decimal is cut off", errValues)
				}
				v, ok := fromBytes(src[:n])
				dst, err = put(dst, v, ok)
				src = src[n:]
			}
			return dst, err
		}, nil
	}
	return nil, fmt.Errorf("%w: decimals of %v", errConversion, s.Physical)
}
