package parquetchunk

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The hybrid of run lengths and bit-packed groups of eight values in which
// levels, dictionary indices and some booleans are written.

var errHybrid = errors.New("malformed run")

// run is one run of a hybrid: n times value, or n packed values.
type run struct {
	n      int
	packed []byte
	value  uint32
	isRun  bool
}

// nextRun reads a run and returns what follows it. A run of no values is an
// error, and so is one that lacks bytes; bit-packed values at the end may lack
// those of the last group, which old writers cut off.
func nextRun(src []byte, width, most int) (r run, rest []byte, err error) {
	v, n := binary.Uvarint(src)
	if n <= 0 {
		return run{}, nil, fmt.Errorf("%w: no header", errHybrid)
	}
	src = src[n:]
	count := v >> 1
	if count == 0 {
		return run{}, nil, fmt.Errorf("%w: no values", errHybrid)
	}
	if v&1 == 0 {
		bytes := (width + 7) / 8
		if len(src) < bytes {
			return run{}, nil, fmt.Errorf("%w: cut off", errHybrid)
		}
		for i := range bytes {
			r.value |= uint32(src[i]) << (8 * i)
		}
		// There are writers that set all bits of a boolean's byte.
		r.value &= uint32(1<<width - 1)
		r.isRun, r.n = true, int(min(count, uint64(most)))
		return r, src[bytes:], nil
	}
	groups := min(count, uint64(most)/8+1)
	r.n = min(int(groups)*8, most)
	size := int(groups) * width
	if len(src) < size {
		if (r.n*width+7)/8 > len(src) {
			return run{}, nil, fmt.Errorf("%w: cut off", errHybrid)
		}
		size = len(src)
	}
	r.packed = src[:size]
	return r, src[size:], nil
}

// decodeLevels decodes as many levels as dst holds.
func decodeLevels(dst, src []byte, width int) error {
	for len(dst) > 0 {
		r, rest, err := nextRun(src, width, len(dst))
		if err != nil {
			return err
		}
		src = rest
		if r.isRun {
			fill(dst[:r.n], byte(r.value))
		} else {
			unpackBytes(dst[:r.n], r.packed, width)
		}
		dst = dst[r.n:]
	}
	return nil
}

func fill(dst []byte, v byte) {
	if len(dst) == 0 {
		return
	}
	dst[0] = v
	for n := 1; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// unpackBytes unpacks values of at most eight bits.
func unpackBytes(dst, src []byte, width int) {
	mask := byte(1<<width - 1)
	for bit := 0; len(dst) > 0; bit += 8 * width {
		var v uint64
		if at := bit / 8; at+8 <= len(src) {
			v = binary.LittleEndian.Uint64(src[at:])
		} else {
			for i := at; i < len(src); i++ {
				v |= uint64(src[i]) << (8 * (i - at))
			}
		}
		if len(dst) < 8 {
			for i := range dst {
				dst[i] = byte(v>>(i*width)) & mask
			}
			return
		}
		w := uint(width)
		group := dst[:8]
		group[0] = byte(v) & mask
		group[1] = byte(v>>w) & mask
		group[2] = byte(v>>(2*w)) & mask
		group[3] = byte(v>>(3*w)) & mask
		group[4] = byte(v>>(4*w)) & mask
		group[5] = byte(v>>(5*w)) & mask
		group[6] = byte(v>>(6*w)) & mask
		group[7] = byte(v>>(7*w)) & mask
		dst = dst[8:]
	}
}

// hybridWriter writes a hybrid to b.
//
// Where its runs are parts of a source's runs, each at most once and in their
// order, it takes no more bytes than the source: a group of eight that is not
// full is filled from the runs that follow, so every group that is written was
// begun by a packed run of the source whose groups are not more; a run takes
// what it took, or less; and a header is written for no more packed values than
// a source's header stood for.
type hybridWriter struct {
	b     []byte
	width int
	// packed are groups whose header is not written yet, of count values.
	packed bitWriter
	count  int
	// value is to be written n times, after packed.
	value uint32
	n     int
}

func (w *hybridWriter) reset(b []byte, width int) {
	w.b, w.width = b, width
	w.packed = bitWriter{b: w.packed.b[:0]}
	w.count, w.n = 0, 0
}

// pack appends n values that are packed in src, the first of them at index from.
func (w *hybridWriter) pack(src []byte, from, n int) {
	if n == 0 {
		return
	}
	w.closeRun()
	w.packed.copy(src, from*w.width, n*w.width)
	w.count += n
}

// repeat appends n times v as packed values.
func (w *hybridWriter) repeat(v uint32, n int) {
	if n == 0 {
		return
	}
	w.closeRun()
	for range n {
		w.packed.write(uint64(v), uint(w.width))
	}
	w.count += n
}

// run appends n times v.
func (w *hybridWriter) run(v uint32, n int) {
	if w.n > 0 && w.value == v {
		w.n += n
		return
	}
	w.closeRun()
	for ; w.count%8 != 0 && n > 0; n-- {
		w.packed.write(uint64(v), uint(w.width))
		w.count++
	}
	w.value, w.n = v, n
}

func (w *hybridWriter) closeRun() {
	if w.n == 0 {
		return
	}
	w.closePacked()
	w.b = binary.AppendUvarint(w.b, uint64(w.n)<<1)
	for i := range (w.width + 7) / 8 {
		w.b = append(w.b, byte(w.value>>(8*i)))
	}
	w.n = 0
}

func (w *hybridWriter) closePacked() {
	if w.count == 0 {
		return
	}
	groups := (w.count + 7) / 8
	w.packed.flush()
	w.b = binary.AppendUvarint(w.b, uint64(groups)<<1|1)
	w.b = append(w.b, w.packed.b...)
	for i := len(w.packed.b); i < groups*w.width; i++ {
		w.b = append(w.b, 0)
	}
	w.packed = bitWriter{b: w.packed.b[:0]}
	w.count = 0
}

// finish returns b with everything written.
func (w *hybridWriter) finish() []byte {
	w.closeRun()
	w.closePacked()
	return w.b
}

// filter appends the spans of the n values of a hybrid to b, as a hybrid.
func (w *hybridWriter) filter(b, src []byte, width, n int, spans []span) ([]byte, error) {
	w.reset(b, width)
	for at := 0; at < n && len(spans) > 0; {
		r, rest, err := nextRun(src, width, n-at)
		if err != nil {
			return nil, err
		}
		src = rest
		end := at + r.n
		for len(spans) > 0 && spans[0].from < end {
			from, to := max(spans[0].from, at), min(spans[0].to, end)
			if r.isRun {
				w.run(r.value, to-from)
			} else {
				w.pack(r.packed, from-at, to-from)
			}
			if spans[0].to > end {
				break
			}
			spans = spans[1:]
		}
		at = end
	}
	return w.finish(), nil
}
