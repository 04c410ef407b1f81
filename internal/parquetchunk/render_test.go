package parquetchunk

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/parquet-go/parquet-go/format"
)

// render renders a job of a file and returns its region and layout.
func render(t testing.TB, j *Job, file []byte) ([]byte, Layout) {
	t.Helper()
	ctx := context.Background()
	n, err := j.CountValues(ctx, bytes.NewReader(file))
	ok(t, err)
	l, err := j.Layout(n)
	ok(t, err)
	region := &memory{make([]byte, l.Length)}
	ok(t, j.Render(ctx, bytes.NewReader(file), region))
	return region.b, l
}

// without returns the entries of the rows that are kept; the first row is row
// first of the file.
func without(entries []entry, deleted *roaring64.Bitmap, first int64) (kept []entry) {
	row := first - 1
	for _, e := range entries {
		if e.rep == 0 {
			row++
		}
		if deleted == nil || !deleted.Contains(uint64(row)) {
			kept = append(kept, e)
		}
	}
	return kept
}

// deletions returns which of n rows from first on to delete: some at random, a
// range, all, or none, and rows of other row groups.
func randomDeletions(rng *rand.Rand, first, n int64) *roaring64.Bitmap {
	b := roaring64.New()
	b.Add(uint64(first - 1))
	b.Add(uint64(first + n))
	percent := []int{0, 1, 1, 10, 50, 99, 100}[rng.IntN(7)]
	for i := range n {
		if rng.IntN(100) < percent {
			b.Add(uint64(first + i))
		}
	}
	if n > 1 && rng.IntN(3) == 0 {
		from := rng.Int64N(n)
		b.AddRange(uint64(first+from), uint64(first+from+rng.Int64N(n-from)+1))
	}
	return b
}

// kinds are the physical types with the encodings that they can have.
var kinds = []struct {
	physical   format.Type
	typeLength int
	encodings  []format.Encoding
}{
	{format.Boolean, 0, []format.Encoding{format.Plain, format.RLE}},
	{format.Int32, 0, []format.Encoding{format.Plain, plainDictionary, format.RLEDictionary, format.DeltaBinaryPacked, format.ByteStreamSplit}},
	{format.Int64, 0, []format.Encoding{format.Plain, plainDictionary, format.RLEDictionary, format.DeltaBinaryPacked, format.ByteStreamSplit}},
	{format.Int96, 0, []format.Encoding{format.Plain, plainDictionary}},
	{format.Float, 0, []format.Encoding{format.Plain, format.RLEDictionary, format.ByteStreamSplit}},
	{format.Double, 0, []format.Encoding{format.Plain, format.RLEDictionary, format.ByteStreamSplit}},
	{format.ByteArray, 0, []format.Encoding{format.Plain, plainDictionary, format.RLEDictionary, format.DeltaLengthByteArray, format.DeltaByteArray}},
	{format.FixedLenByteArray, 5, []format.Encoding{format.Plain, format.RLEDictionary, format.DeltaByteArray, format.ByteStreamSplit}},
}

var nestings = []struct{ def, rep int }{{0, 0}, {1, 0}, {3, 0}, {1, 1}, {3, 1}, {5, 2}, {9, 3}}

// TestDeletions holds the promise for every type, encoding, codec, page version
// and nesting: what is rendered fits into its region and has the right rows.
func TestDeletions(t *testing.T) {
	for _, k := range kinds {
		for _, e := range k.encodings {
			t.Run(fmt.Sprintf("%v/%v", k.physical, e), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(1, uint64(k.physical)<<8|uint64(e)))
				for codec := range codecs {
					for _, nesting := range nestings {
						for range 6 {
							s := randomStyle(rng, codec, e)
							c := randomColumn(rng, k.physical, k.typeLength, nesting.def, nesting.rep, 1+rng.IntN(10*s.pageEntries))
							file, source := s.write(t, rng, c)
							j := &Job{Source: source, Deleted: randomDeletions(rng, source.FirstRow, source.NumRows)}
							region, l := render(t, j, file)
							want := without(c.entries, j.Deleted, source.FirstRow)
							got := readRegion(t, region, c, l.Encodings)
							if !slices.Equal(got, want) || l.NumValues != int64(len(want)) {
								t.Fatalf("%+v, %+v: rows differ: %d entries, %d promised, %d wanted", s, source, len(got), l.NumValues, len(want))
							}
						}
					}
				}
			})
		}
	}
}

func randomStyle(rng *rand.Rand, codec format.CompressionCodec, e format.Encoding) style {
	return style{
		codec: codec, encoding: e, dictionary: isDictionary(e), v2: rng.IntN(2) == 0,
		pageEntries: []int{1, 2, 5, 30, 500}[rng.IntN(5)],
		split:       rng.IntN(2) == 0, chopped: rng.IntN(2) == 0,
	}
}
