package parquetfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/big"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ColumnStats are the statistics of a leaf outside of lists and maps.
type ColumnStats struct {
	// Nulls is the number of rows without a value, -1 if it is not known.
	Nulls int64
	// Min and Max bound the values, exactly or not; nil if no bound is known
	// or there is no value. They are an int64 (integers, DATE, TIMESTAMP in
	// its unit, INT96 in microseconds), a float64, a []byte (strings), or a
	// *big.Int (decimals, unscaled).
	Min, Max any
}

// Stats returns the statistics of a leaf outside of lists and maps; bounds
// only when asked for. What the footer does not say, or what writers are known
// to get wrong, is read from the values:
//
//   - bounds of floating point columns, because a footer does not tell whether
//     there are NaNs; with a NaN there are no bounds;
//   - bounds of strings that a footer has only in the deprecated fields, which
//     compared bytes as signed;
//   - bounds of decimals in byte arrays, which several writers compared as
//     unsigned, and of INT96, which have no order;
//   - null counts inside of structs, where writers do not agree whether a null
//     struct counts.
//
// A column that cannot be read has no bounds. The errors are ctx's and those
// of the reader.
func (s *Scanner) Stats(ctx context.Context, leaf *Node, bounds bool) (ColumnStats, error) {
	acc := accumulator{order: leaf.order()}
	if !bounds || acc.order == unordered {
		acc.unusable = true
	}
	var nulls int64
	for i := range s.f.RowGroups {
		n, err := s.chunkStats(ctx, i, leaf, &acc)
		if err != nil {
			return ColumnStats{Nulls: -1}, err
		}
		if n < 0 || nulls < 0 {
			nulls = -1
		} else {
			nulls += n
		}
	}
	stats := ColumnStats{Nulls: nulls}
	stats.Min, stats.Max = acc.bounds()
	return stats, nil
}

// chunkStats adds the bounds of one chunk to acc and returns its null count.
func (s *Scanner) chunkStats(ctx context.Context, group int, leaf *Node, acc *accumulator) (int64, error) {
	c := &s.f.RowGroups[group].Chunks[leaf.Column]
	nulls := c.footerNulls(leaf)
	switch {
	case c.NumValues == 0, nulls >= 0 && acc.unusable:
		return max(nulls, 0), nil
	case nulls == c.NumValues:
		return nulls, nil
	case nulls >= 0 && acc.footer(leaf, &c.stats):
		return nulls, nil
	}
	var visit func(Value) error
	if !acc.unusable && !acc.footer(leaf, &c.stats) {
		visit = func(v Value) error { acc.add(v); return nil }
	}
	l, err := s.chunk(ctx, group, leaf, visit)
	if errors.Is(err, ErrUnreadable) {
		if visit != nil {
			acc.unusable = true
		}
		return nulls, nil
	}
	if err != nil {
		return -1, err
	}
	return c.NumValues - l.All[leaf.MaxDefinition], nil
}

// footerNulls is the null count that the footer gives, or -1.
func (c *Chunk) footerNulls(leaf *Node) int64 {
	switch {
	case leaf.MaxDefinition == 0:
		return 0
	case leaf.MaxRepetition > 0 || leaf.MaxDefinition > 1 || !leaf.Optional():
		return -1
	case !c.stats.hasNulls || c.stats.nulls < 0 || c.stats.nulls > c.NumValues:
		return -1
	case c.stats.nulls == c.NumValues && (len(c.stats.min) > 0 || len(c.stats.oldMin) > 0):
		return -1
	}
	return c.stats.nulls
}

// order is how the values of a column compare.
type order int

const (
	unordered order = iota
	signedOrder
	floatOrder
	byteOrder
	decimalOrder
	int96Order
)

func (n *Node) order() order {
	bytesType := n.Physical == format.ByteArray || n.Physical == format.FixedLenByteArray
	switch n.Logical.Kind {
	case None, Date, Timestamp, Time:
	case Int:
		if !n.Logical.Signed {
			return unordered
		}
	case Decimal:
		if bytesType {
			return decimalOrder
		}
	case String:
		if n.Physical == format.ByteArray {
			return byteOrder
		}
		return unordered
	default:
		return unordered
	}
	switch n.Physical {
	case format.Int32, format.Int64:
		return signedOrder
	case format.Float, format.Double:
		return floatOrder
	case format.Int96:
		return int96Order
	}
	return unordered
}

// accumulator keeps the least and the greatest value.
type accumulator struct {
	order order
	// some says that there was a value, unusable that no bounds can be given.
	some, unusable bool
	minI, maxI     int64
	minF, maxF     float64
	minB, maxB     []byte
	minD, maxD     *big.Int
}

func (a *accumulator) bounds() (lo, hi any) {
	if a.unusable || !a.some {
		return nil, nil
	}
	switch a.order {
	case floatOrder:
		return lowestZero(a.minF), a.maxF + 0
	case byteOrder:
		return a.minB, a.maxB
	case decimalOrder:
		return a.minD, a.maxD
	}
	return a.minI, a.maxI
}

// lowestZero widens a minimum of zero to -0: to some readers -0 is less than
// +0, to others they are equal. Adding 0 does the same for a maximum.
func lowestZero(v float64) float64 {
	if v == 0 {
		return math.Copysign(0, -1)
	}
	return v
}

// footer adds the bounds of a footer and reports whether they can be trusted.
// min_value and max_value count if the file says that they follow the type's
// order; the deprecated fields compare as signed, which is right for integers.
func (a *accumulator) footer(leaf *Node, s *statistics) bool {
	switch a.order {
	case signedOrder:
		lo, ok1 := signed(leaf, s.min)
		hi, ok2 := signed(leaf, s.max)
		if !leaf.typeDefinedOrder || !ok1 || !ok2 {
			lo, ok1 = signed(leaf, s.oldMin)
			hi, ok2 = signed(leaf, s.oldMax)
		}
		if !ok1 || !ok2 || lo > hi {
			return false
		}
		a.addInt(lo)
		a.addInt(hi)
	case byteOrder:
		if !leaf.typeDefinedOrder || s.min == nil || s.max == nil || bytes.Compare(s.min, s.max) > 0 {
			return false
		}
		a.addBytes(s.min)
		a.addBytes(s.max)
	default:
		return false
	}
	return true
}

// signed decodes a plain-encoded integer.
func signed(leaf *Node, b []byte) (int64, bool) {
	switch {
	case leaf.Physical == format.Int32 && len(b) == 4:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	case leaf.Physical == format.Int64 && len(b) == 8:
		return int64(binary.LittleEndian.Uint64(b)), true
	}
	return 0, false
}

func (a *accumulator) add(v Value) {
	if v.IsNull() || a.unusable {
		return
	}
	switch v.Kind() {
	case parquet.Int32:
		a.addInt(int64(v.Int32()))
	case parquet.Int64:
		a.addInt(v.Int64())
	case parquet.Float:
		a.addFloat(float64(v.Float()))
	case parquet.Double:
		a.addFloat(v.Double())
	case parquet.Int96:
		micros, ok := Int96Micros(v)
		if !ok {
			a.unusable = true
			return
		}
		a.addInt(micros)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		if a.order == decimalOrder {
			a.addDecimal(BigEndian(v.ByteArray()))
		} else {
			a.addBytes(v.ByteArray())
		}
	default:
		a.unusable = true
	}
}

func (a *accumulator) addInt(v int64) {
	if !a.some || v < a.minI {
		a.minI = v
	}
	if !a.some || v > a.maxI {
		a.maxI = v
	}
	a.some = true
}

func (a *accumulator) addFloat(v float64) {
	if math.IsNaN(v) {
		a.unusable = true
		return
	}
	if !a.some || v < a.minF {
		a.minF = v
	}
	if !a.some || v > a.maxF {
		a.maxF = v
	}
	a.some = true
}

func (a *accumulator) addBytes(v []byte) {
	if !a.some || bytes.Compare(v, a.minB) < 0 {
		a.minB = append(a.minB[:0:0], v...)
	}
	if !a.some || bytes.Compare(v, a.maxB) > 0 {
		a.maxB = append(a.maxB[:0:0], v...)
	}
	a.some = true
}

func (a *accumulator) addDecimal(v *big.Int) {
	if !a.some || v.Cmp(a.minD) < 0 {
		a.minD = v
	}
	if !a.some || v.Cmp(a.maxD) > 0 {
		a.maxD = v
	}
	a.some = true
}

// BigEndian decodes the unscaled value of a decimal in a byte array: two's
// complement, big-endian.
func BigEndian(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

// Int96Micros converts an INT96 timestamp (Julian day, nanoseconds of the day)
// to microseconds since the epoch, rounding down; false if it is out of range.
func Int96Micros(v Value) (int64, bool) {
	const (
		julianEpoch = 2440588
		dayMicros   = 86400 * 1e6
		maxDays     = math.MaxInt64/(86400*1000000) - 1
	)
	i := v.Int96()
	nanos := uint64(i[1])<<32 | uint64(i[0])
	days := int64(int32(i[2])) - julianEpoch
	if nanos >= dayMicros*1000 || days > maxDays || days < -maxDays {
		return 0, false
	}
	return days*dayMicros + int64(nanos/1000), true
}
