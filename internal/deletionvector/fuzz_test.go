package deletionvector

import (
	"errors"
	"testing"
)

// FuzzDecode: bytes are refused as broken, or make a bitmap with exactly the
// rows that were counted.
func FuzzDecode(f *testing.F) {
	for _, v := range vectors {
		f.Add(encode(f, v.rows))
		f.Add(unhex(f, v.hex))
	}
	f.Add(unhex(f, "d0d33964 01000000 12000000 3a300000 01000000 00000000 10000000 0100"))
	f.Fuzz(func(t *testing.T, data []byte) {
		portable := data[min(len(data), 4):]
		rows, err := check(portable)
		if err != nil {
			rows = 1
		}
		got, err := decode(data, rows)
		switch {
		case err == nil && got.GetCardinality() != uint64(rows):
			t.Fatalf("%d rows, counted %d", got.GetCardinality(), rows)
		case err != nil && !errors.Is(err, ErrBroken):
			t.Fatal(err)
		}
		if err == nil && rows < 1<<20 && len(got.ToArray()) != int(rows) {
			t.Fatal("the rows are not those that were counted")
		}
	})
}
