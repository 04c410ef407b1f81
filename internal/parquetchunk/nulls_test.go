package parquetchunk

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/format"
)

// cut is what the entries of a donor are as nulls.
func cut(entries []entry, n *Nulls) (out []entry) {
	for _, e := range entries {
		if int(e.rep) <= n.Repetition {
			out = append(out, entry{rep: e.rep, def: byte(min(int(e.def), n.Definition))})
		}
	}
	return out
}

// TestNulls makes columns of nulls of columns of every nesting.
func TestNulls(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for codec := range codecs {
		for _, nesting := range nestings {
			for range 8 {
				c := randomColumn(rng, format.Int64, 0, nesting.def, nesting.rep, 1+rng.IntN(3000))
				s := randomStyle(rng, codec, format.Plain)
				s.pageEntries = 1 + rng.IntN(1000)
				file, source := s.write(t, rng, c)
				n := &Nulls{
					Definition: rng.IntN(nesting.def + 1), Repetition: rng.IntN(nesting.rep + 1),
					Physical: format.ByteArray,
				}
				n.MaxDefinition, n.MaxRepetition = n.Definition+1+rng.IntN(9), n.Repetition+rng.IntN(3)
				j := &Job{Source: source, Nulls: n, Deleted: randomDeletions(rng, source.FirstRow, source.NumRows)}
				nulls := &column{physical: n.Physical, maxDef: n.MaxDefinition, maxRep: n.MaxRepetition}
				checkNulls(t, j, file, nulls, cut(without(c.entries, j.Deleted, source.FirstRow), n))
			}
		}
	}
}

// TestLongNulls makes several pages, of levels whose encoding takes the most.
func TestLongNulls(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, run := range []int{1, 2, longRun - 1, longRun, longRun + 7, 100_000} {
		c := &column{physical: format.Int32, maxDef: 3, maxRep: 1}
		for i := range 150_000 {
			e := entry{def: byte(i / run % 3)}
			// A row that is longer than a page, and some that are not.
			if i%100 != 0 && i < 20_000 || i > 40_000 {
				e.rep = 1
			}
			c.entries = append(c.entries, e)
		}
		file, source := style{encoding: format.Plain, pageEntries: 40_000, split: true}.write(t, rng, c)
		n := &Nulls{Definition: 2, Repetition: 1, MaxDefinition: 200, MaxRepetition: 200, Physical: format.Double}
		j := &Job{Source: source, Nulls: n}
		checkNulls(t, j, file, &column{physical: n.Physical, maxDef: 200, maxRep: 200}, cut(c.entries, n))
	}
}

func checkNulls(t *testing.T, j *Job, file []byte, c *column, want []entry) {
	t.Helper()
	region, l := render(t, j, file)
	got := readRegion(t, region, c, l.Encodings)
	if !slices.Equal(got, want) || l.NumValues != int64(len(want)) {
		t.Fatalf("%+v of %+v: %d entries, %d promised, %d wanted", *j.Nulls, j.Source, len(got), l.NumValues, len(want))
	}
}
