package parquetchunk

import (
	"bytes"
	"math"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// span is a range of entries or values of a page that are kept.
type span struct{ from, to int }

func length(spans []span) (n int) {
	for _, s := range spans {
		n += s.to - s.from
	}
	return n
}

// deletions walks through the deleted rows of a chunk. Rows are counted from the
// chunk's first.
type deletions struct {
	first uint64
	rows  roaring64.IntPeekable64
	// next is the next deleted row, or math.MaxInt64; passed counts those before.
	next, passed int64
}

// newDeletions is nil if the source loses no row.
func newDeletions(deleted *roaring64.Bitmap, s *Source) *deletions {
	if countDeleted(deleted, s) == 0 {
		return nil
	}
	d := &deletions{first: uint64(s.FirstRow), rows: deleted.Iterator()}
	d.rows.AdvanceIfNeeded(d.first)
	d.seek()
	return d
}

func (d *deletions) advance() {
	d.passed++
	d.seek()
}

func (d *deletions) seek() {
	d.next = math.MaxInt64
	if d.rows.HasNext() {
		if row := d.rows.Next(); row-d.first < math.MaxInt64 {
			d.next = int64(row - d.first)
		}
	}
}

// countDeleted is the number of rows that the source loses.
func countDeleted(deleted *roaring64.Bitmap, s *Source) int64 {
	if deleted == nil || s.NumRows <= 0 {
		return 0
	}
	n := deleted.Rank(uint64(s.FirstRow + s.NumRows - 1))
	if s.FirstRow > 0 {
		n -= deleted.Rank(uint64(s.FirstRow - 1))
	}
	return int64(n)
}

// keep appends the spans of n rows from row on that are kept.
func (d *deletions) keep(spans []span, row int64, n int) []span {
	from := 0
	for d.next < row+int64(n) {
		at := int(d.next - row)
		if at > from {
			spans = append(spans, span{from, at})
		}
		from = at + 1
		d.advance()
	}
	if from < n {
		spans = append(spans, span{from, n})
	}
	return spans
}

// keepRepeated is keep for entries: rows have begun before, the last of which
// may go on in rep, and is kept if kept says so. It returns whether the last row
// of rep is kept.
func (d *deletions) keepRepeated(spans []span, rows int64, kept bool, rep []byte) ([]span, bool) {
	from := 0
	for i, level := range rep {
		if level != 0 {
			continue
		}
		keep := rows != d.next
		if !keep {
			d.advance()
		}
		rows++
		switch {
		case keep && !kept:
			from = i
		case !keep && kept && i > from:
			spans = append(spans, span{from, i})
		}
		kept = keep
	}
	if kept && len(rep) > from {
		spans = append(spans, span{from, len(rep)})
	}
	return spans, kept
}

func countLevel(levels []byte, level byte) int { return bytes.Count(levels, []byte{level}) }

// valueSpans appends the spans of values that spans of entries have: those with
// the highest definition level.
func valueSpans(dst, entries []span, def []byte, highest byte) []span {
	at, value := 0, 0
	for _, s := range entries {
		value += countLevel(def[at:s.from], highest)
		n := countLevel(def[s.from:s.to], highest)
		at = s.to
		if last := len(dst) - 1; last >= 0 && dst[last].to == value {
			dst[last].to += n
		} else if n > 0 {
			dst = append(dst, span{value, value + n})
		}
		value += n
	}
	return dst
}
