package snapshot

import "sync/atomic"

// series is an immutable sequence that is extended without being copied: the
// longer one goes on in the memory of the shorter, which does not look behind
// its own end. Of several extensions of one series the first goes on in place.
type series[E any] struct {
	all []E
	// end is where the longest series in this memory ends. Series with the same
	// end have one beginning.
	end *atomic.Int64
}

// newSeries takes the elements over.
func newSeries[E any](all []E) series[E] {
	end := &atomic.Int64{}
	end.Store(int64(len(all)))
	return series[E]{all, end}
}

// with is the series with more elements behind it.
func (s series[E]) with(more ...E) series[E] {
	n := int64(len(s.all))
	if s.end == nil || !s.end.CompareAndSwap(n, n+int64(len(more))) {
		return newSeries(append(s.all[:n:n], more...))
	}
	return series[E]{append(s.all, more...), s.end}
}

// beginsWith reports whether the series is an extension of before.
func (s series[E]) beginsWith(before series[E]) bool {
	return s.end != nil && s.end == before.end && len(s.all) >= len(before.all)
}
