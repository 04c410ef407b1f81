package parquetchunk

import (
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

const (
	// fullNulls is how many entries a page of nulls has before it ends with a
	// row, mostNulls how many before it ends within one.
	fullNulls = 32 << 10
	mostNulls = 64 << 10
	// longRun is how many equal levels are worth a run of their own. A run costs
	// seven bytes at most, with the header of the packed values that follow it;
	// as packed values these levels would take eight or more.
	longRun = 64 + 8
)

// nullsBound bounds pages of nulls. Levels take no more bytes than if all were
// packed, and a header of three bytes; see longRun.
func (j *Job) nullsBound() int64 {
	n := j.Nulls
	width := int64(bits.Len(uint(n.MaxDefinition)) + bits.Len(uint(n.MaxRepetition)))
	pages := j.Source.NumValues/fullNulls + 1
	// A page's header, its two lengths of levels with their headers, and groups
	// of eight that are not full.
	const page = 32 + 2*(4+3+8)
	return pages*page + j.Source.NumValues/8*width + width
}

// nulls collects the entries of a column of nulls and writes them as pages.
type nulls struct {
	*Nulls
	to       *region
	def, rep levelWriter
	entries  int
	out      []byte
}

func newNulls(n *Nulls, to *region) *nulls {
	w := &nulls{Nulls: n, to: to}
	w.begin()
	return w
}

func (w *nulls) begin() {
	w.entries = 0
	w.def.reset(w.MaxDefinition)
	w.rep.reset(w.MaxRepetition)
}

// add appends the spans of entries with these levels; def or rep are nil where
// all levels are 0.
func (w *nulls) add(def, rep []byte, spans []span) error {
	for _, s := range spans {
		for i := s.from; i < s.to; i++ {
			var d, r byte
			if rep != nil {
				if r = rep[i]; int(r) > w.Repetition {
					continue
				}
			}
			if def != nil {
				d = byte(min(int(def[i]), w.Definition))
			}
			if w.entries >= fullNulls && (r == 0 || w.entries >= mostNulls) {
				if err := w.flush(); err != nil {
					return err
				}
			}
			w.def.add(d)
			w.rep.add(r)
			w.entries++
		}
	}
	return nil
}

// flush writes a page of the entries that have been added.
func (w *nulls) flush() error {
	if w.entries == 0 {
		return nil
	}
	out := w.out[:0]
	if w.MaxRepetition > 0 {
		out = w.rep.append(out)
	}
	if w.MaxDefinition > 0 {
		out = w.def.append(out)
	}
	w.out = out
	h := header{kind: format.DataPage, count: w.entries, encoding: format.Plain}
	w.begin()
	return w.to.page(h, out)
}

// levelWriter collects levels, as runs where these are long.
type levelWriter struct {
	hybrid hybridWriter
	value  byte
	n      int
	packed []byte
}

func (w *levelWriter) reset(highest int) {
	w.hybrid.reset(w.packed[:0], bits.Len(uint(highest)))
	w.n = 0
}

func (w *levelWriter) add(level byte) {
	if w.n > 0 && w.value != level {
		w.flush()
	}
	w.value = level
	w.n++
}

func (w *levelWriter) flush() {
	if w.n >= longRun {
		w.hybrid.run(uint32(w.value), w.n)
	} else {
		w.hybrid.repeat(uint32(w.value), w.n)
	}
	w.n = 0
}

// append appends the levels to dst, with their length before them.
func (w *levelWriter) append(dst []byte) []byte {
	w.flush()
	w.packed = w.hybrid.finish()
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(w.packed)))
	return append(dst, w.packed...)
}
