package parquetchunk

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

var (
	errValues   = errors.New("malformed values")
	errEncoding = errors.New("unknown encoding")
)

// values makes new values of a page's.
type values struct {
	physical format.Type
	// width is the length of a value in bytes; 0 for BOOLEAN and BYTE_ARRAY.
	width   int
	convert converter
	hybrid  hybridWriter
	// Scratch space.
	plain, kept    []byte
	lengths, heads []int32
}

func newValues(j *Job) (*values, error) {
	convert, err := j.Convert.converter(&j.Source)
	return &values{physical: j.Source.Physical, width: j.Source.width(), convert: convert}, err
}

// width is the length of a PLAIN value in bytes, or 0 if that is not fixed.
func (s *Source) width() int { return width(s.Physical, s.TypeLength) }

func width(physical format.Type, typeLength int) int {
	switch physical {
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	case format.Int96:
		return 12
	case format.FixedLenByteArray:
		return typeLength
	}
	return 0
}

// plainDictionary is what writers of old files call RLE_DICTIONARY, and the
// encoding of the dictionary itself.
const plainDictionary = format.Encoding(2)

func isDictionary(e format.Encoding) bool {
	return e == plainDictionary || e == format.RLEDictionary
}

// filter appends the spans of a page's n values to dst, converted, and returns
// their encoding.
func (v *values) filter(dst, src []byte, e format.Encoding, n int, spans []span) ([]byte, format.Encoding, error) {
	switch {
	case isDictionary(e):
		dst, err := v.indices(dst, src, n, spans)
		return dst, e, err
	case e == format.RLE && v.physical == format.Boolean:
		dst, err := v.booleans(dst, src, n, spans)
		return dst, e, err
	case v.convert == nil && e == format.DeltaByteArray:
		dst, err := v.deltaByteArray(dst, src, n, spans)
		return dst, e, err
	}
	if v.convert == nil {
		dst, err := v.filterPlain(dst, src, e, n, spans)
		return dst, format.Plain, err
	}
	kept, err := v.filterPlain(v.kept[:0], src, e, n, spans)
	if err != nil {
		return nil, 0, err
	}
	v.kept = kept
	dst, err = v.convert(dst, kept)
	return dst, format.Plain, err
}

// filterPlain appends the spans of values as PLAIN.
func (v *values) filterPlain(dst, src []byte, e format.Encoding, n int, spans []span) (_ []byte, err error) {
	switch {
	case e == format.Plain:
	case e == format.DeltaBinaryPacked && (v.width == 4 || v.width == 8) && n <= maxPage/8:
		v.plain, err = decodeDelta(grow(v.plain[:0], n*v.width), src, v.width, n)
		src = v.plain
	case e == format.DeltaLengthByteArray && v.physical == format.ByteArray:
		return v.deltaLength(dst, src, n, spans)
	case e == format.DeltaByteArray && (v.width > 0 || v.physical == format.ByteArray):
		v.plain, err = v.undelta(v.plain[:0], src, n)
		src = v.plain
	case e == format.ByteStreamSplit && v.width > 0:
		v.plain, err = v.unsplit(v.plain[:0], src, n)
		src = v.plain
	default:
		return nil, fmt.Errorf("%w: %v of %v", errEncoding, e, v.physical)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case v.width > 0:
		return copyFixed(dst, src, v.width, n, spans)
	case v.physical == format.Boolean:
		return copyBits(dst, src, n, spans)
	}
	return copyByteArrays(dst, src, n, spans)
}

func copyFixed(dst, src []byte, width, n int, spans []span) ([]byte, error) {
	if len(src)/width < n {
		return nil, fmt.Errorf("%w: %d bytes for %d values", errValues, len(src), n)
	}
	dst = grow(dst, length(spans)*width)
	for _, s := range spans {
		dst = append(dst, src[s.from*width:s.to*width]...)
	}
	return dst, nil
}

func copyBits(dst, src []byte, n int, spans []span) ([]byte, error) {
	if len(src) < (n+7)/8 {
		return nil, fmt.Errorf("%w: %d bytes for %d booleans", errValues, len(src), n)
	}
	w := bitWriter{b: dst}
	for _, s := range spans {
		w.copy(src, s.from, s.to-s.from)
	}
	w.flush()
	return w.b, nil
}

func copyByteArrays(dst, src []byte, n int, spans []span) ([]byte, error) {
	at, ok := 0, true
	pass := func(n int) {
		for ; n > 0; n-- {
			if at+4 > len(src) {
				ok = false
				return
			}
			length := binary.LittleEndian.Uint32(src[at:])
			if uint64(length) > uint64(len(src)-at-4) {
				ok = false
				return
			}
			at += 4 + int(length)
		}
	}
	value := 0
	for _, s := range spans {
		pass(s.from - value)
		from := at
		pass(s.to - s.from)
		if !ok {
			return nil, fmt.Errorf("%w: %d bytes do not hold %d byte arrays", errValues, len(src), n)
		}
		dst = append(dst, src[from:at]...)
		value = s.to
	}
	return dst, nil
}

// indices filters dictionary indices, whose width precedes them.
func (v *values) indices(dst, src []byte, n int, spans []span) ([]byte, error) {
	if len(src) == 0 {
		if n > 0 {
			return nil, fmt.Errorf("%w: no dictionary indices", errValues)
		}
		return dst, nil
	}
	if src[0] > 32 {
		return nil, fmt.Errorf("%w: dictionary indices of %d bits", errValues, src[0])
	}
	return v.hybrid.filter(append(dst, src[0]), src[1:], int(src[0]), n, spans)
}

// booleans filters booleans in a hybrid, whose length precedes it.
func (v *values) booleans(dst, src []byte, n int, spans []span) ([]byte, error) {
	hybrid, _, err := prefixed(src, format.RLE)
	if err != nil {
		return nil, fmt.Errorf("%w: booleans are cut off", errValues)
	}
	return appendPrefixed(&v.hybrid, dst, hybrid, 1, n, spans)
}

// appendPrefixed filters a hybrid and writes its length before it.
func appendPrefixed(w *hybridWriter, dst, hybrid []byte, width, n int, spans []span) ([]byte, error) {
	at := len(dst)
	dst, err := w.filter(append(dst, 0, 0, 0, 0), hybrid, width, n, spans)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst, nil
}

// unsplit makes PLAIN of BYTE_STREAM_SPLIT: the first bytes of all values, the
// second bytes, and so on.
func (v *values) unsplit(dst, src []byte, n int) ([]byte, error) {
	if len(src)/v.width < n {
		return nil, fmt.Errorf("%w: %d bytes for %d values", errValues, len(src), n)
	}
	dst = grow(dst, n*v.width)[:n*v.width]
	for b := range v.width {
		stream := src[b*n : b*n+n]
		for i, at := 0, b; i < n; i, at = i+1, at+v.width {
			dst[at] = stream[i]
		}
	}
	return dst, nil
}
