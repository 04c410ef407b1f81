package rowtext

import (
	"encoding/json"
	"testing"
)

// variantKeys is the metadata of the keys a and b.
var variantKeys = []byte{1, 2, 0, 1, 2, 'a', 'b'}

func TestVariantsAsJSON(t *testing.T) {
	for want, value := range map[string][]byte{
		"null":                                   {0},
		"true":                                   {1 << 2},
		"false":                                  {2 << 2},
		"-5":                                     {3 << 2, 0xfb},
		"-2":                                     {4 << 2, 0xfe, 0xff},
		"256":                                    {5 << 2, 0, 1, 0, 0},
		"1.50":                                   {8 << 2, 2, 150, 0, 0, 0},
		"-0.1":                                   {9 << 2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"1.5":                                    {7 << 2, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f},
		`"NaN"`:                                  {14 << 2, 0, 0, 0xc0, 0x7f},
		`"hi"`:                                   {2<<2 | 1, 'h', 'i'},
		`"long"`:                                 {16 << 2, 4, 0, 0, 0, 'l', 'o', 'n', 'g'},
		`"AP8="`:                                 {15 << 2, 2, 0, 0, 0, 0, 255},
		`"1970-01-02"`:                           {11 << 2, 1, 0, 0, 0},
		`"1970-01-01T00:00:00.000001Z"`:          {12 << 2, 1, 0, 0, 0, 0, 0, 0, 0},
		`"1970-01-01T00:00:00.000001"`:           {13 << 2, 1, 0, 0, 0, 0, 0, 0, 0},
		`"00:00:00.000001"`:                      {17 << 2, 1, 0, 0, 0, 0, 0, 0, 0},
		`"1969-12-31T23:59:59.999999"`:           {19 << 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		`"00010203-0405-0607-0809-0a0b0c0d0e0f"`: {20 << 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		`[null,true]`:                            {3, 2, 0, 1, 2, 0, 1 << 2},
		`{"a":true,"b":[]}`:                      {2, 2, 0, 1, 3, 0, 4, 3, 0, 0, 1 << 2},
	} {
		got, err := AppendVariant(nil, variantKeys, value)
		if err != nil || string(got) != want {
			t.Errorf("%v is %s, %v, want %s", value, got, err, want)
		}
	}
}

func TestVariantThatStandsForMoreThanItHolds(t *testing.T) {
	// Both members are the next object, again and again.
	var value []byte
	for range 200 {
		value = append(value, 2, 2, 0, 1, 0, 0, 0)
	}
	if got, err := AppendVariant(nil, variantKeys, append(value, 0)); err == nil {
		t.Errorf("%d bytes of text", len(got))
	}
}

func FuzzVariant(f *testing.F) {
	f.Add(variantKeys, []byte{2, 2, 0, 1, 3, 0, 4, 3, 0, 0, 1 << 2})
	f.Add(variantKeys, []byte{3, 2, 0, 1, 2, 0, 1 << 2})
	f.Add([]byte{1, 0, 0}, []byte{16 << 2, 4, 0, 0, 0, 'l', 'o', 'n', 'g'})
	f.Add([]byte{1, 0, 0}, []byte{10 << 2, 38, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Fuzz(func(t *testing.T, metadata, value []byte) {
		text, err := AppendVariant(nil, metadata, value)
		if err == nil && !json.Valid(text) {
			t.Errorf("not JSON: %s", text)
		}
	})
}
