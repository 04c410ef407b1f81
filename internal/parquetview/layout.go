package parquetview

import (
	"cmp"
	"slices"

	"github.com/deltafs/deltafs/internal/parquetchunk"
)

// layout is a served file as it grows.
type layout struct {
	segments []Segment
	end      int64
}

func (l *layout) add(s Segment) {
	if s.Length == 0 {
		return
	}
	s.Offset = l.end
	l.end += s.Length
	l.segments = append(l.segments, s)
}

func (l *layout) raw(length int64) {
	l.add(Segment{Length: length, Raw: true, RawOffset: l.end})
}

func (l *layout) bytes(b []byte) {
	if n := len(l.segments); n > 0 && l.segments[n-1].Bytes != nil {
		last := &l.segments[n-1]
		last.Bytes = append(last.Bytes, b...)
		last.Length += int64(len(b))
		l.end += int64(len(b))
		return
	}
	l.add(Segment{Length: int64(len(b)), Bytes: b})
}

func (l *layout) chunk(job *parquetchunk.Job, length int64) {
	l.add(Segment{Length: length, Chunk: job})
}

// original is the layout of the first size bytes of the file, at their places.
// What the new footer does not refer to reads as zeros: a copy of the file keeps
// no row that was deleted, and is a file in which every byte has a meaning.
func original(size int64, live []span) layout {
	var l layout
	for _, s := range merged(append(live, span{0, magicLength})) {
		end := min(s.offset+s.length, size)
		if end <= l.end {
			continue
		}
		l.add(Segment{Length: max(s.offset-l.end, 0)})
		l.raw(end - l.end)
	}
	l.add(Segment{Length: size - l.end})
	return l
}

// merged sorts spans and joins those that touch.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.offset, b.offset) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.offset <= out[n-1].offset+out[n-1].length {
			last := &out[n-1]
			last.length = max(last.length, s.offset+s.length-last.offset)
		} else if s.length > 0 {
			out = append(out, s)
		}
	}
	return out
}
