package rowtext

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFloatsReadBackAndLookLikeFloats(t *testing.T) {
	for in, want := range map[float64]string{
		0: "0.0", 1: "1.0", -1.5: "-1.5", 0.1: "0.1", 1e-7: "1e-07", 1e20: "100000000000000000000.0", 1e21: "1e+21",
		math.Inf(1): "Infinity", math.Inf(-1): "-Infinity", math.MaxFloat64: "1.7976931348623157e+308",
	} {
		if got := string(AppendFloat(nil, in, 64)); got != want {
			t.Errorf("%v is %q, want %q", in, got, want)
		}
	}
	if got := string(AppendFloat(nil, math.NaN(), 64)); got != "NaN" {
		t.Errorf("NaN is %q", got)
	}
	if got := string(AppendFloat(nil, float64(float32(0.1)), 32)); got != "0.1" {
		t.Errorf("a float of 0.1 is %q", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		v := math.Float64frombits(r.Uint64())
		text := string(AppendFloat(nil, v, 64))
		back, err := strconv.ParseFloat(text, 64)
		if err != nil || back != v && !math.IsNaN(v) {
			t.Fatalf("%v is %q, which reads back as %v, %v", v, text, back, err)
		}
		if !math.IsNaN(v) && !strings.ContainsAny(text, ".e") {
			t.Fatalf("%v is %q, which looks like an integer", v, text)
		}
	}
}

// decimalText is the text of unscaled * 10^-scale, by big integers.
func decimalText(v *big.Int, scale int) string {
	text := new(big.Int).Abs(v).String()
	if len(text) <= scale {
		text = strings.Repeat("0", scale-len(text)+1) + text
	}
	if scale > 0 {
		text = text[:len(text)-scale] + "." + text[len(text)-scale:]
	}
	if v.Sign() < 0 {
		text = "-" + text
	}
	return text
}

func TestDecimalsHaveAllTheirDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	limit, _ := new(big.Int).SetString("99999999999999999999999999999999999999", 10)
	values := []*big.Int{new(big.Int), big.NewInt(1), big.NewInt(-1), limit, new(big.Int).Neg(limit),
		big.NewInt(math.MaxInt64), big.NewInt(math.MinInt64)}
	for i := range 2000 {
		v := new(big.Int).SetUint64(r.Uint64())
		v.Lsh(v, uint(i%63)).Add(v, new(big.Int).SetUint64(r.Uint64()))
		if i%2 == 0 {
			v.Neg(v)
		}
		values = append(values, v)
	}
	for _, v := range values {
		low := new(big.Int).And(v, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
		high := new(big.Int).Rsh(v, 64).Int64()
		for _, scale := range []int{0, 1, 2, 18, 38} {
			want := decimalText(v, scale)
			if got := string(AppendDecimal128(nil, high, low, scale)); got != want {
				t.Fatalf("%v with scale %d is %q, want %q", v, scale, got, want)
			}
			if !v.IsInt64() {
				continue
			}
			if got := string(AppendDecimal(nil, v.Int64(), scale)); got != want {
				t.Fatalf("%v with scale %d is %q in 64 bits, want %q", v, scale, got, want)
			}
		}
	}
}

func TestDatesOfAllTimes(t *testing.T) {
	for day, want := range map[int64]string{
		0: "1970-01-01", -1: "1969-12-31", -141_428: "1582-10-14", -719_162: "0001-01-01", -719_528: "0000-01-01",
		-719_529: "-0001-12-31", 2_932_896: "9999-12-31", 2_932_897: "+10000-01-01",
		-784_353_015_833: "-2147483648-01-01",
	} {
		if got := string(AppendDate(nil, day)); got != want {
			t.Errorf("day %d is %q, want %q", day, got, want)
		}
	}
	for day := int64(-800_000); day < 3_000_000; day += 17 {
		at := time.Unix(day*86_400, 0).UTC()
		if at.Year() < 0 || at.Year() > 9999 {
			continue
		}
		if got := string(AppendDate(nil, day)); got != at.Format(time.DateOnly) {
			t.Fatalf("day %d is %q, want %q", day, got, at.Format(time.DateOnly))
		}
	}
}

func TestTimestampsHaveMicroseconds(t *testing.T) {
	for micros, want := range map[int64]string{
		0: "1970-01-01T00:00:00.000000", 1: "1970-01-01T00:00:00.000001", -1: "1969-12-31T23:59:59.999999",
		1_714_558_272_123_456: "2024-05-01T10:11:12.123456",
	} {
		if got := string(AppendTimestamp(nil, micros, false)); got != want {
			t.Errorf("%d is %q, want %q", micros, got, want)
		}
		if got := string(AppendTimestamp(nil, micros, true)); got != want+"Z" {
			t.Errorf("%d is %q in UTC, want %qZ", micros, got, want)
		}
	}
}

func TestTextReadsBack(t *testing.T) {
	texts := []string{"", "a", `"`, `""`, "a,b", "a\nb", "a\r\nb", " a ", "\t", "\x00\x1f", `\`, "é😀\u2028", "NULL"}
	for _, text := range texts {
		line := append(AppendCSV(append(AppendCSV(nil, text), ','), []byte("end")), '\n')
		record, err := csv.NewReader(bytes.NewReader(line)).Read()
		// The reader of the standard library turns CRLF in a field into LF.
		if want := strings.ReplaceAll(text, "\r\n", "\n"); err != nil || len(record) != 2 || record[0] != want {
			t.Errorf("%q reads back as %q, %v", text, record, err)
		}
		var back string
		if err := json.Unmarshal(AppendJSON(nil, text), &back); err != nil || back != text {
			t.Errorf("%q reads back as %q, %v", text, back, err)
		}
	}
	if got := string(AppendCSV(nil, "")); got != `""` {
		t.Errorf("the empty text is %q, which reads as null", got)
	}
	if got := string(AppendBase64(nil, []byte{0, 255, 16})); got != "AP8Q" {
		t.Errorf("bytes are %q", got)
	}
}
