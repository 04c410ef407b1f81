package parquetchunk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/encoding/delta"
)

var errDelta = errors.New("malformed deltas")

// deltas reads DELTA_BINARY_PACKED. The library's decoder does not return where
// it ended, and allocates what a header claims.
type deltas struct {
	src         []byte
	miniblocks  int
	values      int // in a miniblock
	left        int
	last, least uint64
	widths      []byte // of the miniblocks that follow in the block
}

// newDeltas reads the header of n numbers.
func newDeltas(src []byte, n int) (d deltas, err error) {
	d.src = src
	block, miniblocks, count := d.uvarint(), d.uvarint(), d.uvarint()
	first := d.uvarint()
	switch {
	case d.src == nil:
		return d, fmt.Errorf("%w: the header is cut off", errDelta)
	case count != uint64(n):
		return d, fmt.Errorf("%w: %d numbers instead of %d", errDelta, count, n)
	case miniblocks == 0 || miniblocks > 1<<16 || block > 1<<24 || block/miniblocks == 0 || block%miniblocks != 0 || block/miniblocks%8 != 0:
		return d, fmt.Errorf("%w: blocks of %d numbers in %d parts", errDelta, block, miniblocks)
	}
	d.miniblocks, d.values, d.left = int(miniblocks), int(block/miniblocks), n
	d.last = first>>1 ^ -(first & 1)
	return d, nil
}

// uvarint sets src to nil if there is no number.
func (d *deltas) uvarint() uint64 {
	v, n := binary.Uvarint(d.src)
	if n <= 0 {
		d.src = nil
		return 0
	}
	d.src = d.src[n:]
	return v
}

// read calls yield for every number.
func (d *deltas) read(yield func(uint64)) error {
	if d.left == 0 {
		return nil
	}
	yield(d.last)
	d.left--
	for d.left > 0 {
		if len(d.widths) == 0 {
			least := d.uvarint()
			if len(d.src) < d.miniblocks {
				return fmt.Errorf("%w: a block is cut off", errDelta)
			}
			d.least = least>>1 ^ -(least & 1)
			d.widths, d.src = d.src[:d.miniblocks], d.src[d.miniblocks:]
		}
		width := int(d.widths[0])
		d.widths = d.widths[1:]
		n := min(d.left, d.values)
		size := d.values / 8 * width
		if width > 64 || len(d.src) < (n*width+7)/8 {
			return fmt.Errorf("%w: %d numbers of %d bits are cut off", errDelta, n, width)
		}
		d.miniblock(n, width, yield)
		// Old writers cut off what pads the last miniblock.
		d.src = d.src[min(size, len(d.src)):]
		d.left -= n
	}
	return nil
}

func (d *deltas) miniblock(n, width int, yield func(uint64)) {
	last, least := d.last, d.least
	for i := range n {
		var v uint64
		if width <= 32 {
			v = bitsAt(d.src, i*width, width)
		} else {
			v = bitsAt(d.src, i*width, 32) | bitsAt(d.src, i*width+32, width-32)<<32
		}
		last += least + v
		yield(last)
	}
	d.last = last
}

// decodeDelta appends n integers of this width as PLAIN.
func decodeDelta(dst, src []byte, width, n int) ([]byte, error) {
	d, err := newDeltas(src, n)
	if err != nil {
		return nil, err
	}
	if width == 4 {
		err = d.read(func(v uint64) { dst = binary.LittleEndian.AppendUint32(dst, uint32(v)) })
	} else {
		err = d.read(func(v uint64) { dst = binary.LittleEndian.AppendUint64(dst, v) })
	}
	return dst, err
}

// decodeLengths decodes n lengths into dst and returns what follows them, and
// their sum.
func decodeLengths(dst []int32, src []byte, n int) (lengths []int32, rest []byte, sum int64, err error) {
	if n > maxEntries {
		return nil, nil, 0, fmt.Errorf("%w: a page of %d values", errLarge, n)
	}
	d, err := newDeltas(src, n)
	if err != nil {
		return nil, nil, 0, err
	}
	if cap(dst) < n {
		dst = make([]int32, 0, n)
	}
	dst = dst[:0]
	wrong := false
	err = d.read(func(v uint64) {
		wrong = wrong || v > math.MaxInt32
		sum += int64(v & math.MaxInt32)
		dst = append(dst, int32(v))
	})
	if err == nil && wrong {
		err = fmt.Errorf("%w: a length below 0", errDelta)
	}
	return dst, d.src, sum, err
}

// deltaLength appends the spans of DELTA_LENGTH_BYTE_ARRAY as PLAIN.
func (v *values) deltaLength(dst, src []byte, n int, spans []span) (_ []byte, err error) {
	var sum int64
	if v.lengths, src, sum, err = decodeLengths(v.lengths, src, n); err != nil {
		return nil, err
	}
	if sum > int64(len(src)) {
		return nil, fmt.Errorf("%w: byte arrays of %d bytes in %d", errValues, sum, len(src))
	}
	at, value := 0, 0
	for _, s := range spans {
		for _, n := range v.lengths[value:s.from] {
			at += int(n)
		}
		for _, n := range v.lengths[s.from:s.to] {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
			dst = append(dst, src[at:at+int(n)]...)
			at += int(n)
		}
		value = s.to
	}
	return dst, nil
}

// prefixes reads DELTA_BYTE_ARRAY: the lengths of prefixes, which a value has in
// common with the one before, the lengths of suffixes, and the suffixes. It
// calls yield with every value, valid until the next, and its prefix.
func (v *values) prefixes(src []byte, n int, yield func(value []byte, prefix int) error) (err error) {
	var sum int64
	if v.heads, src, _, err = decodeLengths(v.heads, src, n); err != nil {
		return err
	}
	if v.lengths, src, sum, err = decodeLengths(v.lengths, src, n); err != nil {
		return err
	}
	if sum > int64(len(src)) {
		return fmt.Errorf("%w: suffixes of %d bytes in %d", errValues, sum, len(src))
	}
	var value []byte
	for i, prefix := range v.heads {
		if int(prefix) > len(value) {
			return fmt.Errorf("%w: a prefix of %d bytes of a value of %d", errValues, prefix, len(value))
		}
		value = append(value[:prefix], src[:v.lengths[i]]...)
		src = src[v.lengths[i]:]
		if err := yield(value, int(prefix)); err != nil {
			return err
		}
	}
	return nil
}

// deltaByteArray filters DELTA_BYTE_ARRAY. A value has in common with the last
// one that is kept what all values since then have in common; so its suffix is
// no longer than theirs and its own together.
func (v *values) deltaByteArray(dst, src []byte, n int, spans []span) ([]byte, error) {
	var heads, lengths []int32
	suffixes := v.kept[:0]
	at, common := 0, 0
	err := v.prefixes(src, n, func(value []byte, prefix int) error {
		common = min(common, prefix)
		if len(spans) > 0 && at >= spans[0].from {
			heads = append(heads, int32(common))
			lengths = append(lengths, int32(len(value)-common))
			suffixes = append(suffixes, value[common:]...)
			common = math.MaxInt32
			if at+1 == spans[0].to {
				spans = spans[1:]
			}
		}
		at++
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.kept = suffixes
	for _, numbers := range [][]int32{heads, lengths} {
		b, err := new(delta.BinaryPackedEncoding).EncodeInt32(nil, numbers)
		if err != nil {
			return nil, err
		}
		dst = append(dst, b...)
	}
	return append(dst, suffixes...), nil
}

// undelta makes PLAIN of DELTA_BYTE_ARRAY.
func (v *values) undelta(dst, src []byte, n int) ([]byte, error) {
	err := v.prefixes(src, n, func(value []byte, _ int) error {
		if len(dst)+len(value) > maxPage {
			return fmt.Errorf("%w: values of more than %d bytes", errLarge, maxPage)
		}
		if v.width == 0 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
		} else if len(value) != v.width {
			return fmt.Errorf("%w: a value of %d bytes", errValues, len(value))
		}
		dst = append(dst, value...)
		return nil
	})
	return dst, err
}
