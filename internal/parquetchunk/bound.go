package parquetchunk

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// maxClaim bounds sizes and counts of a footer, so that bounds made of them do
// not overflow.
const maxClaim = 1 << 44

// maxLength bounds the length of FIXED_LEN_BYTE_ARRAY.
const maxLength = 1 << 15

// Layout is made of the job alone; numValues is what CountValues returned.
func (j *Job) Layout(numValues int64) (Layout, error) {
	l := Layout{Codec: format.Uncompressed, NumValues: numValues}
	if err := j.check(); err != nil {
		return l, j.failed(err)
	}
	l.Length = j.bound()
	if j.Nulls == nil {
		l.Encodings = append(l.Encodings, j.Source.Encodings...)
	}
	for _, e := range []format.Encoding{format.Plain, format.RLE} {
		if !slices.Contains(l.Encodings, e) {
			l.Encodings = append(l.Encodings, e)
		}
	}
	return l, nil
}

// check finds what is wrong with a job before anything is read.
func (j *Job) check() error {
	s := &j.Source
	for _, n := range []int64{s.Offset, s.Length, s.Uncompressed, s.NumValues, s.FirstRow, s.NumRows} {
		if n < 0 || n > maxClaim {
			return fmt.Errorf("%w: the footer claims a size or count of %d", errPage, n)
		}
	}
	if length := s.TypeLength; s.Physical == format.FixedLenByteArray && (length <= 0 || length > maxLength) {
		return fmt.Errorf("%w: byte arrays of the fixed length %d", errPage, length)
	}
	if length := j.Convert.TypeLength; length < 0 || length > maxLength {
		return fmt.Errorf("%w: byte arrays of the fixed length %d", errConversion, length)
	}
	highest := []int{s.MaxDefinition, s.MaxRepetition}
	if n := j.Nulls; n != nil {
		highest = append(highest, n.Definition, n.Repetition, n.MaxDefinition, n.MaxRepetition)
	}
	if n := j.Nulls; n != nil && n.Definition >= n.MaxDefinition {
		return fmt.Errorf("%w: a column without nulls cannot be made of nulls", errConversion)
	}
	if slices.Min(highest) < 0 || slices.Max(highest) > maxLevel {
		return fmt.Errorf("%w: columns nested deeper than %d", errLarge, maxLevel)
	}
	if err := (&unpacker{codec: s.Codec}).supported(); err != nil {
		return err
	}
	_, err := newValues(j)
	return err
}

// bound is the length of the region.
//
// A page is written for each page of the source, with a header that is longer
// than the source's, if at all, by what its two sizes take: a size of n bytes is
// written in at most 1+n/64 bytes, so headers together grow by no more than a
// 32nd of the pages. The rest is for the header of the filler.
func (j *Job) bound() int64 {
	var n int64
	if j.Nulls != nil {
		n = j.nullsBound()
	} else {
		n = j.pagesBound()
	}
	return n + n/32 + 64
}

// pagesBound bounds the headers and contents of pages: total_uncompressed_size,
// and what they may grow by. Levels never grow, see hybridWriter.
func (j *Job) pagesBound() int64 {
	s := &j.Source
	n := max(s.Uncompressed, s.Length)
	has := func(e format.Encoding) bool { return slices.Contains(s.Encodings, e) }
	old := int64(s.width())
	if j.Convert.Kind != Keep {
		return j.convertedBound(n, old, has)
	}
	if has(format.DeltaBinaryPacked) {
		// Becomes PLAIN.
		n += s.NumValues * old
	}
	if has(format.DeltaLengthByteArray) {
		// Becomes PLAIN: a length before each value.
		n += s.NumValues * 4
	}
	if has(format.DeltaByteArray) {
		// Stays, and its suffixes do not grow. The lengths of prefixes and of
		// suffixes are encoded anew, each in at most 22+4b+v*(10/128+b/8) bytes
		// for v values, where b <= 32 are the bits of the widest difference.
		// Twice what does not depend on v is at most twice the page: b is at most
		// two more than the bits of the longest value, which is no longer than
		// all suffixes, 22 is 11 while that is below 64, and a page with a
		// difference takes 29 bytes beside its suffixes.
		n += 2*n + s.NumValues*9
	}
	return n
}

// convertedBound is pagesBound of values that become PLAIN values, or a
// dictionary, of another length. They grow by the quotient of the lengths, where
// a byte array's is the four bytes that say its length. Deltas take any room, so
// what is made of them is counted.
func (j *Job) convertedBound(n, old int64, has func(format.Encoding) bool) int64 {
	length := int64(width(j.Convert.Physical, j.Convert.TypeLength))
	if old == 0 {
		old = 4
	}
	if length > old {
		n = (n*length + old - 1) / old
	}
	if has(format.DeltaBinaryPacked) || has(format.DeltaLengthByteArray) || has(format.DeltaByteArray) {
		n += j.Source.NumValues * length
	}
	return n
}
