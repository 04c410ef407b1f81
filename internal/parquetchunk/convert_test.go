package parquetchunk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go/format"
)

func le32(v int32) string     { return string(binary.LittleEndian.AppendUint32(nil, uint32(v))) }
func le64(v int64) string     { return string(binary.LittleEndian.AppendUint64(nil, uint64(v))) }
func float(v float32) string  { return le32(int32(math.Float32bits(v))) }
func double(v float64) string { return le64(int64(math.Float64bits(v))) }

func int96(nanos int64, day int32) string { return le64(nanos) + le32(day) }

// big-endian bytes of an unscaled decimal, in n bytes or as few as it takes.
func unscaled(text string, n int) string {
	v, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic(text)
	}
	if n == 0 {
		n = (v.BitLen() + 8) / 8
		if v.Sign() < 0 {
			n = (new(big.Int).Not(v).BitLen() + 8) / 8
		}
	}
	out := make([]byte, n)
	if v.Sign() < 0 {
		v.Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return string(v.FillBytes(out))
}

func micros(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return le64(at.UnixMicro())
}

var (
	toInt64  = Conversion{Kind: ToInt64, Physical: format.Int64}
	toDouble = Conversion{Kind: ToDouble, Physical: format.Double}
	dates    = Conversion{Kind: DateToMicros, Physical: format.Int64}
	int96s   = Conversion{Kind: Int96ToMicros, Physical: format.Int64}
	millis   = Conversion{Kind: MillisToMicros, Physical: format.Int64}
	nanos    = Conversion{Kind: NanosToMicros, Physical: format.Int64}
)

func decimal(physical format.Type, length, scale int) Conversion {
	return Conversion{Kind: ToDecimal, Physical: physical, TypeLength: length, Scale: scale}
}

// conversions are values before and after; without one after, the value does
// not fit.
var conversions = []struct {
	name       string
	convert    Conversion
	physical   format.Type
	typeLength int
	values     [][2]string
}{
	{"int to long", toInt64, format.Int32, 0, [][2]string{
		{le32(0), le64(0)}, {le32(-1), le64(-1)}, {le32(math.MinInt32), le64(math.MinInt32)}, {le32(math.MaxInt32), le64(math.MaxInt32)}}},
	{"int to double", toDouble, format.Int32, 0, [][2]string{
		{le32(-7), double(-7)}, {le32(math.MinInt32), double(math.MinInt32)}, {le32(math.MaxInt32), double(math.MaxInt32)}}},
	{"float to double", toDouble, format.Float, 0, [][2]string{
		{float(0.1), double(float64(float32(0.1)))}, {float(float32(math.Inf(-1))), double(math.Inf(-1))}, {le32(math.MinInt32), double(math.Copysign(0, -1))}}},
	{"date", dates, format.Int32, 0, [][2]string{
		{le32(0), le64(0)}, {le32(-1), micros("1969-12-31T00:00:00Z")}, {le32(-719162), micros("0001-01-01T00:00:00Z")},
		{le32(2932896), micros("9999-12-31T00:00:00Z")}, {le32(math.MaxInt32), ""}, {le32(math.MinInt32), ""}}},
	{"int96", int96s, format.Int96, 0, [][2]string{
		{int96(0, 2440588), le64(0)}, {int96(999, 2440588), le64(0)}, {int96(1000, 2440588), le64(1)},
		{int96(86399999999999, 2440587), le64(-1)}, {int96(-1, 2440588), le64(-1)},
		{int96(3600e9, 2440587), micros("1969-12-31T01:00:00Z")}, {int96(0, 2299160), micros("1582-10-14T00:00:00Z")},
		{int96(1, 1721426), micros("0001-01-01T00:00:00Z")}, {int96(86399999999999, 5373484), micros("9999-12-31T23:59:59.999999Z")},
		{int96(0, math.MaxInt32), ""}, {int96(0, math.MinInt32), ""}}},
	{"millis", millis, format.Int64, 0, [][2]string{
		{le64(-1), le64(-1000)}, {le64(1), le64(1000)}, {le64(math.MaxInt64), ""}, {le64(math.MinInt64), ""}}},
	{"nanos", nanos, format.Int64, 0, [][2]string{
		{le64(-1), le64(-1)}, {le64(-1000), le64(-1)}, {le64(-1001), le64(-2)}, {le64(999), le64(0)},
		{le64(math.MinInt64), le64(-9223372036854776)}, {le64(math.MaxInt64), le64(9223372036854775)}}},
	{"int to decimal in int", decimal(format.Int32, 0, 2), format.Int32, 0, [][2]string{
		{le32(-12), le32(-1200)}, {le32(21474836), le32(2147483600)}, {le32(21474837), ""}, {le32(-21474837), ""}}},
	{"int to decimal in long", decimal(format.Int64, 0, 9), format.Int32, 0, [][2]string{
		{le32(-2147483648), le64(-2147483648000000000)}, {le32(3), le64(3000000000)}}},
	{"long to decimal in bytes", decimal(format.FixedLenByteArray, 9, 1), format.Int64, 0, [][2]string{
		{le64(math.MaxInt64), unscaled("92233720368547758070", 9)}, {le64(math.MinInt64), unscaled("-92233720368547758080", 9)}}},
	{"bytes to decimal", decimal(format.FixedLenByteArray, 16, 20), format.ByteArray, 0, [][2]string{
		{unscaled("0", 0), unscaled("0", 16)}, {unscaled("-1", 0), unscaled("-100000000000000000000", 16)},
		{unscaled("-1", 20), unscaled("-100000000000000000000", 16)}, {"", unscaled("0", 16)},
		{unscaled("999999999999999999", 0), unscaled("99999999999999999900000000000000000000", 16)},
		{unscaled("9999999999999999999", 0), ""}, {unscaled("-9999999999999999999", 0), ""},
		{unscaled("170141183460469231731687303715884105728", 0), ""}}},
	{"fixed bytes to narrower ones", decimal(format.FixedLenByteArray, 3, 0), format.FixedLenByteArray, 7, [][2]string{
		{unscaled("8388607", 7), unscaled("8388607", 3)}, {unscaled("-8388608", 7), unscaled("-8388608", 3)},
		{unscaled("8388608", 7), ""}, {unscaled("-8388609", 7), ""}}},
	{"fixed bytes to long", decimal(format.Int64, 0, 3), format.FixedLenByteArray, 9, [][2]string{
		{unscaled("-123", 9), le64(-123000)}, {unscaled("9223372036854776", 9), ""}, {unscaled("18446744073709551616", 9), ""}}},
	{"fixed bytes to wider ones", decimal(format.FixedLenByteArray, 20, 0), format.FixedLenByteArray, 16, [][2]string{
		{unscaled("-170141183460469231731687303715884105728", 16), unscaled("-170141183460469231731687303715884105728", 20)},
		{unscaled("5", 16), unscaled("5", 20)}}},
}

func encodingsOf(physical format.Type) []format.Encoding {
	for _, k := range kinds {
		if k.physical == physical {
			return k.encodings
		}
	}
	return nil
}

// TestConversions converts every value in every encoding, with nulls and
// deletions around it.
func TestConversions(t *testing.T) {
	for _, test := range conversions {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(2, 2))
			for _, e := range encodingsOf(test.physical) {
				for codec := range codecs {
					c := &column{physical: test.physical, typeLength: test.typeLength, maxDef: rng.IntN(2)}
					converted := &column{physical: test.convert.Physical, typeLength: test.convert.TypeLength, maxDef: c.maxDef}
					for range 1 + rng.IntN(200) {
						v := test.values[rng.IntN(len(test.values))]
						def := byte(c.maxDef)
						if rng.IntN(4) == 0 {
							def = 0
						}
						switch {
						case int(def) < c.maxDef:
							v = [2]string{}
						case v[1] == "":
							continue
						}
						c.entries = append(c.entries, entry{def: def, value: v[0]})
						converted.entries = append(converted.entries, entry{def: def, value: v[1]})
					}
					file, source := randomStyle(rng, codec, e).write(t, rng, c)
					j := &Job{Source: source, Convert: test.convert, Deleted: randomDeletions(rng, source.FirstRow, source.NumRows)}
					region, l := render(t, j, file)
					got, want := readRegion(t, region, converted, l.Encodings), without(converted.entries, j.Deleted, source.FirstRow)
					if !slices.Equal(got, want) {
						t.Fatalf("%v, %v: got %q, want %q", e, codec, got, want)
					}
				}
			}
		})
	}
}

// TestConversionRange wants a value that does not fit to be an error that names
// the value.
func TestConversionRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, test := range conversions {
		for _, v := range test.values {
			if v[1] != "" {
				continue
			}
			c := &column{physical: test.physical, typeLength: test.typeLength, entries: []entry{{value: v[0]}}}
			for _, e := range []format.Encoding{format.Plain, plainDictionary} {
				file, source := style{encoding: e, dictionary: isDictionary(e), pageEntries: 1}.write(t, rng, c)
				j := &Job{Source: source, Convert: test.convert}
				err := j.Render(context.Background(), bytes.NewReader(file), &memory{make([]byte, 1000)})
				if !errors.Is(err, ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "a.column") {
					t.Errorf("%s of %x: %v", test.name, v[0], err)
				}
			}
		}
	}
	file, source := style{encoding: format.Plain, pageEntries: 1}.write(t, rng, &column{physical: format.Int32, entries: []entry{{value: le32(-2000000000)}}})
	j := &Job{Source: source, Convert: decimal(format.Int32, 0, 1)}
	err := j.Render(context.Background(), bytes.NewReader(file), &memory{make([]byte, 1000)})
	if err == nil || !strings.Contains(err.Error(), "-2000000000") {
		t.Errorf("the value is not named: %v", err)
	}
}

// TestDecimalArithmetic compares numbers of 128 bits with the library's.
func TestDecimalArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	least := new(big.Int).Lsh(big.NewInt(-1), 127)
	most := new(big.Int).Not(least)
	for range 20_000 {
		n := 1 + rng.IntN(18)
		b := make([]byte, n)
		for i := range b {
			b[i] = byte([]uint32{0, 0xff, 0x7f, 0x80, rng.Uint32()}[rng.IntN(5)])
		}
		want := new(big.Int).SetBytes(b)
		if b[0] >= 0x80 {
			want.Sub(want, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
		}
		v, ok := fromBytes(b)
		if fits := want.Cmp(least) >= 0 && want.Cmp(most) <= 0; ok != fits {
			t.Fatalf("%v: %v", want, ok)
		} else if !fits {
			continue
		}
		for range 3 {
			if v.String() != want.String() {
				t.Fatalf("%v is not %v", v, want)
			}
			length := 1 + rng.IntN(20)
			bound := new(big.Int).Lsh(big.NewInt(1), uint(8*length-1))
			fits := want.Cmp(bound) < 0 && want.Cmp(new(big.Int).Neg(bound)) >= 0
			out, ok := v.append(nil, format.FixedLenByteArray, length)
			if ok != fits || fits && string(out) != unscaled(want.String(), length) {
				t.Fatalf("%v in %d bytes: %x, %v", want, length, out, ok)
			}
			want.Mul(want, big.NewInt(10))
			if v, ok = v.times10(); ok != (want.Cmp(least) >= 0 && want.Cmp(most) <= 0) {
				t.Fatalf("%v: %v", want, ok)
			} else if !ok {
				break
			}
		}
	}
}
