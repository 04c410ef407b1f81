package parquetview

import (
	"cmp"
	"slices"

	"github.com/deltafs/deltafs/internal/parquetchunk"
)

// deadRange is how long a range of the file that nothing refers to has to be to
// be served as zeros, which are read from nowhere.
const deadRange = 1 << 20

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

// original is the layout of the first size bytes of the file, at their places,
// without long ranges that are dead; a dead range that touches a live one is
// kept.
func original(size int64, live, dead []span) layout {
	var l layout
	live, dead = merged(live), merged(dead)
	for _, d := range dead {
		for len(live) > 0 && live[0].offset+live[0].length <= d.offset {
			live = live[1:]
		}
		overlap := len(live) > 0 && live[0].offset < d.offset+d.length
		if d.length < deadRange || overlap || d.offset < l.end {
			continue
		}
		l.raw(d.offset - l.end)
		l.add(Segment{Length: d.length})
	}
	l.raw(size - l.end)
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
