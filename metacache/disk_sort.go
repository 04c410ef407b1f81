package metacache

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"iter"
	"os"
	"slices"
)

// sortedInMemory is how many pairs a pairSorter holds on the heap.
const sortedInMemory = 1 << 19

// pairSorter sorts pairs by key in bounded memory: what does not fit goes to a
// file in sorted stretches, which are merged in the end.
type pairSorter struct {
	dir   string
	limit int

	buf   []pair
	spill *os.File
	// ends are the ends of the stretches in the file.
	ends []int64
}

// newPairSorter returns one for about so many pairs.
func newPairSorter(dir string, pairs int) *pairSorter {
	return &pairSorter{dir: dir, limit: sortedInMemory, buf: make([]pair, 0, min(pairs, sortedInMemory))}
}

func (s *pairSorter) add(p pair) error {
	s.buf = append(s.buf, p)
	if len(s.buf) < s.limit {
		return nil
	}
	return s.flush()
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.rank, b.rank))
}

// flush writes the pairs at hand as one stretch.
func (s *pairSorter) flush() error {
	if s.spill == nil {
		f, err := os.CreateTemp(s.dir, "sort")
		if err != nil {
			return err
		}
		s.spill = f
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
	}
	slices.SortFunc(s.buf, comparePairs)
	w := bufio.NewWriterSize(s.spill, 1<<16)
	var row [pairSize]byte
	for _, p := range s.buf {
		encodePair(row[:], p)
		if _, err := w.Write(row[:]); err != nil {
			return err
		}
	}
	var before int64
	if n := len(s.ends); n > 0 {
		before = s.ends[n-1]
	}
	s.ends = append(s.ends, before+int64(len(s.buf))*pairSize)
	s.buf = s.buf[:0]
	return w.Flush()
}

func encodePair(row []byte, p pair) {
	binary.BigEndian.PutUint64(row, p.key)
	binary.BigEndian.PutUint32(row[8:], p.rank)
}

func decodePair(row []byte) pair {
	return pair{binary.BigEndian.Uint64(row), binary.BigEndian.Uint32(row[8:])}
}

// sorted yields all pairs in order.
func (s *pairSorter) sorted() iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		stretches := s.stretches()
		for i := len(stretches) - 1; i >= 0; i-- {
			if err := s.advance(&stretches, i); err != nil {
				yield(pair{}, err)
				return
			}
		}
		for len(stretches) > 0 {
			least := 0
			for i := range stretches {
				if comparePairs(stretches[i].next, stretches[least].next) < 0 {
					least = i
				}
			}
			if !yield(stretches[least].next, nil) {
				return
			}
			if err := s.advance(&stretches, least); err != nil {
				yield(pair{}, err)
				return
			}
		}
	}
}

// stretch is a source of sorted pairs; next is the one it stands at.
type stretch struct {
	next pair
	from io.Reader
}

// stretches are all sources, each before its first pair.
func (s *pairSorter) stretches() []stretch {
	slices.SortFunc(s.buf, comparePairs)
	out := []stretch{{from: &pairReader{s.buf}}}
	var start int64
	for _, end := range s.ends {
		out = append(out, stretch{from: bufio.NewReaderSize(io.NewSectionReader(s.spill, start, end-start), 1<<15)})
		start = end
	}
	return out
}

// advance steps a stretch, and drops it at its end.
func (s *pairSorter) advance(all *[]stretch, i int) error {
	st := &(*all)[i]
	var row [pairSize]byte
	_, err := io.ReadFull(st.from, row[:])
	if err == io.EOF {
		*all = slices.Delete(*all, i, i+1)
		return nil
	}
	st.next = decodePair(row[:])
	return err
}

// pairReader reads pairs that are in memory, one at a time.
type pairReader struct{ pairs []pair }

func (r *pairReader) Read(row []byte) (int, error) {
	if len(r.pairs) == 0 {
		return 0, io.EOF
	}
	encodePair(row, r.pairs[0])
	r.pairs = r.pairs[1:]
	return pairSize, nil
}

func (s *pairSorter) close() {
	s.buf = nil
	if s.spill != nil {
		s.spill.Close()
	}
}
