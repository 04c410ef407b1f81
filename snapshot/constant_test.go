package snapshot

import (
	"math"
	"math/big"
	"reflect"
	"testing"
	"time"
)

func TestPartitionConstants(t *testing.T) {
	when := time.Date(2024, 6, 15, 19, 30, 45, 123456000, time.UTC).UnixMicro()
	decimal := &Primitive{Name: "decimal", Precision: 10, Scale: 2}
	for _, c := range []struct {
		kind *Primitive
		text string
		want any
	}{
		{&Primitive{Name: "string"}, " a ", " a "}, {&Primitive{Name: "string"}, "", nil},
		{&Primitive{Name: "binary"}, "\x01\xff", []byte("\x01\xff")}, {&Primitive{Name: "long"}, "", nil},
		{&Primitive{Name: "byte"}, "-128", int32(-128)}, {&Primitive{Name: "short"}, "007", int32(7)},
		{&Primitive{Name: "integer"}, "+5", int32(5)}, {&Primitive{Name: "long"}, "9223372036854775807", int64(math.MaxInt64)},
		{&Primitive{Name: "float"}, "1.0E7", float32(1e7)}, {&Primitive{Name: "double"}, "-Infinity", math.Inf(-1)},
		{&Primitive{Name: "double"}, "1e-4", 1e-4},
		{&Primitive{Name: "boolean"}, "TRUE", true}, {&Primitive{Name: "boolean"}, "false", false},
		{decimal, "1.5", big.NewInt(150)}, {decimal, "-1.50", big.NewInt(-150)}, {decimal, "2E3", big.NewInt(200000)},
		{decimal, "0.05", big.NewInt(5)}, {decimal, "-0.05", big.NewInt(-5)},
		{&Primitive{Name: "date"}, "1970-01-02", int32(1)}, {&Primitive{Name: "date"}, "1582-10-04", int32(-141438)},
		{&Primitive{Name: "date"}, "0001-01-01", int32(-719162)},
		{&Primitive{Name: "timestamp"}, "2024-06-15T19:30:45.123456Z", when},
		{&Primitive{Name: "timestamp"}, "2024-06-15 19:30:45.123456", when},
		{&Primitive{Name: "timestamp"}, "2024-06-15T21:30:45.123456+02:00", when},
		{&Primitive{Name: "timestamp_ntz"}, "2024-06-15 19:30:45.123456", when},
		{&Primitive{Name: "timestamp_ntz"}, "1970-01-02", int64(24 * time.Hour / time.Microsecond)},
		{&Primitive{Name: "timestamp"}, "1969-12-31 23:59:59.999999", int64(-1)},
	} {
		got, err := partitionConstant(c.kind, &c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q is %v, %v, want %v", c.kind, c.text, got, err, c.want)
		}
	}
	if v, err := partitionConstant(&Primitive{Name: "long"}, nil); v != nil || err != nil {
		t.Errorf("null is %v, %v", v, err)
	}
	nan := "NaN"
	if v, err := partitionConstant(&Primitive{Name: "float"}, &nan); err != nil || !math.IsNaN(float64(v.(float32))) {
		t.Errorf("NaN is %v, %v", v, err)
	}
	for kind, text := range map[string]string{
		"byte": "128", "integer": "1.5", "boolean": "yes", "date": "2024-02-30", "timestamp": "noon", "variant": "1",
		"float": "x", "long": "9223372036854775808",
	} {
		if v, err := partitionConstant(&Primitive{Name: kind}, &text); err == nil {
			t.Errorf("%s %q is %v", kind, text, v)
		}
	}
	for _, text := range []string{"1.555", "123456789.00", "1e999999999"} {
		if v, err := partitionConstant(decimal, &text); err == nil {
			t.Errorf("decimal %q is %v", text, v)
		}
	}
	if v, err := partitionConstant(&Array{Element: &Primitive{Name: "long"}}, &nan); err == nil {
		t.Errorf("an array is %v", v)
	}
}
