package writer

import "slices"

// span is a range of bytes [from, to).
type span struct{ from, to int64 }

// intervals are the bytes of a file that were really written, as disjoint
// ascending ranges. Holes that truncate or fallocate made are not in it: a
// size alone proves nothing.
type intervals struct{ spans []span }

// add puts [from, to) in.
func (iv *intervals) add(from, to int64) {
	if from >= to {
		return
	}
	// Ranges that end before from stay in front, those that begin after to
	// stay behind; whatever touches [from, to) is merged into it.
	first, _ := slices.BinarySearchFunc(iv.spans, from, func(s span, at int64) int {
		if s.to < at {
			return -1
		}
		return 1
	})
	last := first
	for last < len(iv.spans) && iv.spans[last].from <= to {
		from, to = min(from, iv.spans[last].from), max(to, iv.spans[last].to)
		last++
	}
	iv.spans = slices.Replace(iv.spans, first, last, span{from, to})
}

// cut drops everything from size on.
func (iv *intervals) cut(size int64) {
	for n := len(iv.spans); n > 0; n-- {
		last := &iv.spans[n-1]
		if last.to <= size {
			return
		}
		if last.from < size {
			last.to = size
			return
		}
		iv.spans = iv.spans[:n-1]
	}
}

// covers reports whether every byte of [0, size) was written.
func (iv *intervals) covers(size int64) bool {
	return size == 0 || len(iv.spans) > 0 && iv.spans[0].from == 0 && iv.spans[0].to >= size
}

// gap returns the first range of [0, size) that was not written.
func (iv *intervals) gap(size int64) span {
	at := int64(0)
	for _, s := range iv.spans {
		if s.from > at {
			return span{at, min(s.from, size)}
		}
		at = s.to
	}
	return span{at, size}
}
