package parquetchunk

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/brotli"
	"github.com/parquet-go/parquet-go/compress/gzip"
	"github.com/parquet-go/parquet-go/compress/lz4"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/uncompressed"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/bytestreamsplit"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// This file writes column chunks with the encoders and codecs of the Parquet
// library, page by page, so that pages of every kind can be made.

// entry is an entry of a column: its levels, and the value's bytes if it has
// one.
type entry struct {
	rep, def byte
	value    string
}

// column is a column to be written.
type column struct {
	physical       format.Type
	typeLength     int
	maxDef, maxRep int
	entries        []entry
}

func (c *column) rows() (n int64) {
	for _, e := range c.entries {
		if e.rep == 0 {
			n++
		}
	}
	return n
}

// style is how a column is written.
type style struct {
	codec      format.CompressionCodec
	v2         bool
	encoding   format.Encoding
	dictionary bool
	// pageEntries is about how many entries a page has; pages V1 may end within
	// a row if split is set.
	pageEntries int
	split       bool
	// chopped writes levels and indices in runs of random length.
	chopped bool
}

var codecs = map[format.CompressionCodec]compress.Codec{
	format.Uncompressed: new(uncompressed.Codec), format.Snappy: new(snappy.Codec), format.Gzip: new(gzip.Codec),
	format.Brotli: new(brotli.Codec), format.Zstd: new(zstd.Codec), format.Lz4Raw: new(lz4.Codec), format.Lz4: new(hadoopCodec),
}

// hadoopCodec frames LZ4 as Hadoop does, or, as other writers, not at all.
type hadoopCodec struct{ lz4.Codec }

func (c *hadoopCodec) Encode(dst, src []byte) ([]byte, error) {
	if len(src)%5 == 0 {
		return c.Codec.Encode(dst, src)
	}
	for block := range slices.Chunk(src, 100) {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
		for part := range slices.Chunk(block, 70) {
			packed, err := c.Codec.Encode(nil, part)
			if err != nil {
				return nil, err
			}
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(packed)))
			dst = append(dst, packed...)
		}
	}
	return dst, nil
}

// chunkWriter makes the bytes of a chunk.
type chunkWriter struct {
	t            testing.TB
	rng          *rand.Rand
	c            *column
	s            style
	b            []byte
	uncompressed int64
	dictionary   map[string]int32
}

// write returns a file that holds the chunk at an offset, and the chunk as its
// footer would describe it.
func (s style) write(t testing.TB, rng *rand.Rand, c *column) ([]byte, Source) {
	w := &chunkWriter{t: t, rng: rng, c: c, s: s, b: []byte("junk before the chunk")}
	offset := int64(len(w.b))
	if s.dictionary {
		w.writeDictionary()
	}
	for entries := c.entries; len(entries) > 0; {
		n := min(len(entries), 1+rng.IntN(2*s.pageEntries))
		for n < len(entries) && entries[n].rep != 0 && (s.v2 || !s.split) {
			n++
		}
		w.writePage(entries[:n])
		entries = entries[n:]
	}
	source := Source{
		Column: "a.column", Offset: offset, Length: int64(len(w.b)) - offset, Uncompressed: w.uncompressed,
		Codec: s.codec, Encodings: []format.Encoding{format.RLE, s.encoding},
		Physical: c.physical, TypeLength: c.typeLength, MaxDefinition: c.maxDef, MaxRepetition: c.maxRep,
		NumValues: int64(len(c.entries)), FirstRow: 1000, NumRows: c.rows(),
	}
	return append(w.b, "junk after it"...), source
}

func (w *chunkWriter) writeDictionary() {
	w.dictionary = map[string]int32{}
	var list []string
	for _, e := range w.c.entries {
		if _, ok := w.dictionary[e.value]; !ok && int(e.def) == w.c.maxDef {
			w.dictionary[e.value] = int32(len(list))
			list = append(list, e.value)
		}
	}
	e := format.Plain
	if w.s.encoding == plainDictionary {
		e = plainDictionary
	}
	h := format.PageHeader{Type: format.DictionaryPage}
	h.DictionaryPageHeader.V.NumValues, h.DictionaryPageHeader.V.Encoding = int32(len(list)), e
	h.DictionaryPageHeader.Valid = true
	w.page(h, nil, encodeValues(w.t, w.c, format.Plain, list))
}

func (w *chunkWriter) writePage(entries []entry) {
	var def, rep []byte
	var values []string
	rows := 0
	for _, e := range entries {
		def, rep = append(def, e.def), append(rep, e.rep)
		if int(e.def) == w.c.maxDef {
			values = append(values, e.value)
		}
		if e.rep == 0 {
			rows++
		}
	}
	var body []byte
	if isDictionary(w.s.encoding) {
		var indices []int32
		width := bits.Len(uint(max(len(w.dictionary)-1, 0)))
		for _, v := range values {
			indices = append(indices, w.dictionary[v])
		}
		body = append([]byte{byte(width)}, w.hybrid(indices, width)...)
	} else {
		body = encodeValues(w.t, w.c, w.s.encoding, values)
	}
	defs, reps := w.levels(def, w.c.maxDef), w.levels(rep, w.c.maxRep)
	h := format.PageHeader{Type: format.DataPage}
	if w.s.v2 {
		h.Type = format.DataPageV2
		h.DataPageHeaderV2.Valid = true
		v := &h.DataPageHeaderV2.V
		v.NumValues, v.NumNulls, v.NumRows, v.Encoding = int32(len(entries)), int32(len(entries)-len(values)), int32(rows), w.s.encoding
		v.DefinitionLevelsByteLength, v.RepetitionLevelsByteLength = int32(len(defs)), int32(len(reps))
		packed := w.s.codec != format.Uncompressed && w.rng.IntN(4) > 0
		v.IsCompressed = thrift.Null[bool]{V: packed, Valid: !packed || w.rng.IntN(2) == 0}
		w.page(h, append(reps, defs...), body)
		return
	}
	h.DataPageHeader.Valid = true
	h.DataPageHeader.V = format.DataPageHeader{
		NumValues: int32(len(entries)), Encoding: w.s.encoding,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
	}
	var levels []byte
	for _, l := range []struct {
		b       []byte
		highest int
	}{{reps, w.c.maxRep}, {defs, w.c.maxDef}} {
		if l.highest > 0 {
			levels = binary.LittleEndian.AppendUint32(levels, uint32(len(l.b)))
			levels = append(levels, l.b...)
		}
	}
	w.page(h, nil, append(levels, body...))
}

// page writes a page; levels stay as they are.
func (w *chunkWriter) page(h format.PageHeader, levels, body []byte) {
	packed := body
	if v := h.DataPageHeaderV2; !v.Valid || !v.V.IsCompressed.Valid || v.V.IsCompressed.V {
		var err error
		packed, err = codecs[w.s.codec].Encode(nil, body)
		ok(w.t, err)
	}
	h.UncompressedPageSize = int32(len(levels) + len(body))
	h.CompressedPageSize = int32(len(levels) + len(packed))
	b, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	ok(w.t, err)
	w.uncompressed += int64(len(b) + len(levels) + len(body))
	w.b = append(append(append(w.b, b...), levels...), packed...)
}

func (w *chunkWriter) levels(levels []byte, highest int) []byte {
	if highest == 0 {
		return nil
	}
	var numbers []int32
	for _, l := range levels {
		numbers = append(numbers, int32(l))
	}
	return w.hybrid(numbers, bits.Len(uint(highest)))
}

func (w *chunkWriter) hybrid(numbers []int32, width int) []byte {
	if !w.s.chopped {
		if width == 0 {
			return binary.AppendUvarint(nil, uint64(len(numbers))<<1)
		}
		b, err := (&rle.Encoding{BitWidth: width}).EncodeInt32(nil, numbers)
		ok(w.t, err)
		return b
	}
	var b []byte
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[0] {
			n++
		}
		if w.rng.IntN(3) == 0 || n > 20 {
			n = 1 + w.rng.IntN(n)
			b = binary.AppendUvarint(b, uint64(n)<<1)
			for i := range (width + 7) / 8 {
				b = append(b, byte(numbers[0]>>(8*i)))
			}
		} else {
			groups := 1 + w.rng.IntN(3)
			n = min(8*groups, len(numbers))
			groups = (n + 7) / 8
			b = binary.AppendUvarint(b, uint64(groups)<<1|1)
			packed := make([]byte, groups*width)
			for i, v := range numbers[:n] {
				for bit := range width {
					at := i*width + bit
					packed[at/8] |= byte(v>>bit&1) << (at % 8)
				}
			}
			b = append(b, packed...)
		}
		numbers = numbers[n:]
	}
	return b
}

func ints32(values []string) (out []int32) {
	for _, v := range values {
		out = append(out, int32(binary.LittleEndian.Uint32([]byte(v))))
	}
	return out
}

func ints64(values []string) (out []int64) {
	for _, v := range values {
		out = append(out, int64(binary.LittleEndian.Uint64([]byte(v))))
	}
	return out
}

// encodeValues encodes values that are given as their PLAIN bytes, without the
// length of byte arrays.
func encodeValues(t testing.TB, c *column, e format.Encoding, values []string) (b []byte) {
	joined := []byte{}
	offsets := []uint32{0}
	for _, v := range values {
		joined = append(joined, v...)
		offsets = append(offsets, uint32(len(joined)))
	}
	var err error
	switch e {
	case format.Plain:
		for i, v := range values {
			switch c.physical {
			case format.ByteArray:
				b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
				b = append(b, v...)
			case format.Boolean:
				if i%8 == 0 {
					b = append(b, 0)
				}
				b[i/8] |= v[0] << (i % 8)
			default:
				b = append(b, v...)
			}
		}
	case format.RLE:
		var numbers []int32
		for _, v := range values {
			numbers = append(numbers, int32(v[0]))
		}
		b, err = (&rle.Encoding{BitWidth: 1}).EncodeInt32(nil, numbers)
		b = append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	case format.DeltaBinaryPacked:
		if c.physical == format.Int32 {
			b, err = new(delta.BinaryPackedEncoding).EncodeInt32(nil, ints32(values))
		} else {
			b, err = new(delta.BinaryPackedEncoding).EncodeInt64(nil, ints64(values))
		}
	case format.DeltaLengthByteArray:
		b, err = new(delta.LengthByteArrayEncoding).EncodeByteArray(nil, joined, offsets)
	case format.DeltaByteArray:
		if c.physical == format.FixedLenByteArray {
			b, err = new(delta.ByteArrayEncoding).EncodeFixedLenByteArray(nil, joined, c.typeLength)
		} else {
			b, err = new(delta.ByteArrayEncoding).EncodeByteArray(nil, joined, offsets)
		}
	case format.ByteStreamSplit:
		size := width(c.physical, c.typeLength)
		for i := range size {
			for _, v := range values {
				b = append(b, v[i])
			}
		}
	default:
		t.Fatalf("encoding %v", e)
	}
	ok(t, err)
	return b
}

func split(b []byte, size int) (values []string) {
	for ; len(b) >= size && size > 0; b = b[size:] {
		values = append(values, string(b[:size]))
	}
	return values
}

// decodeValues is the reverse of encodeValues.
func decodeValues(t testing.TB, c *column, e format.Encoding, b []byte, n int) (values []string) {
	size := width(c.physical, c.typeLength)
	switch {
	case n == 0:
		return nil
	case e == format.Plain && c.physical == format.ByteArray:
		for range n {
			length := binary.LittleEndian.Uint32(b)
			values = append(values, string(b[4:4+length]))
			b = b[4+length:]
		}
		if len(b) > 0 {
			t.Fatalf("%d bytes too many", len(b))
		}
	case e == format.RLE:
		for _, v := range decodeHybrid(t, b[4:], 1, n) {
			values = append(values, string([]byte{byte(v)}))
		}
	case c.physical == format.Boolean:
		for i := range n {
			values = append(values, string([]byte{b[i/8] >> (i % 8) & 1}))
		}
	case e == format.Plain:
		values = split(b, size)
	case e == format.DeltaBinaryPacked && c.physical == format.Int32:
		out, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, b)
		ok(t, err)
		for _, v := range out {
			values = append(values, string(binary.LittleEndian.AppendUint32(nil, uint32(v))))
		}
	case e == format.DeltaBinaryPacked:
		out, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, b)
		ok(t, err)
		for _, v := range out {
			values = append(values, string(binary.LittleEndian.AppendUint64(nil, uint64(v))))
		}
	case e == format.DeltaByteArray && c.physical == format.FixedLenByteArray:
		out, err := new(delta.ByteArrayEncoding).DecodeFixedLenByteArray(nil, b, c.typeLength)
		ok(t, err)
		values = split(out, size)
	case e == format.DeltaByteArray || e == format.DeltaLengthByteArray:
		var out []byte
		var offsets []uint32
		var err error
		if e == format.DeltaByteArray {
			out, offsets, err = new(delta.ByteArrayEncoding).DecodeByteArray(nil, b, nil)
		} else {
			out, offsets, err = new(delta.LengthByteArrayEncoding).DecodeByteArray(nil, b, nil)
		}
		ok(t, err)
		for i := range n {
			values = append(values, string(out[offsets[i]:offsets[i+1]]))
		}
	case e == format.ByteStreamSplit:
		out, err := new(bytestreamsplit.Encoding).DecodeFixedLenByteArray(nil, b, size)
		ok(t, err)
		values = split(out, size)
	default:
		t.Fatalf("encoding %v of %v", e, c.physical)
	}
	if len(values) != n {
		t.Fatalf("%v: %d values instead of %d", e, len(values), n)
	}
	return values
}

func decodeHybrid(t testing.TB, b []byte, width, n int) []int32 {
	if n == 0 || width == 0 {
		return make([]int32, n)
	}
	out, err := (&rle.Encoding{BitWidth: width}).DecodeInt32(nil, b)
	ok(t, err)
	if len(out) < n {
		t.Fatalf("%d levels or indices instead of %d", len(out), n)
	}
	return out[:n]
}

// readRegion reads a rendered chunk with the library's decoders. c describes the
// column; its entries are not used.
func readRegion(t testing.TB, b []byte, c *column, encodings []format.Encoding) (entries []entry) {
	var dictionary []string
	filled := false
	for len(b) > 0 {
		var h format.PageHeader
		r := new(thrift.CompactProtocol).NewReaderFromBytes(b)
		ok(t, thrift.NewDecoder(r).Decode(&h))
		if h.CompressedPageSize != h.UncompressedPageSize {
			t.Fatalf("sizes %d and %d", h.CompressedPageSize, h.UncompressedPageSize)
		}
		b = b[r.BytesRead():]
		body := b[:h.CompressedPageSize]
		b = b[h.CompressedPageSize:]
		e := h.DataPageHeader.V.Encoding
		var rep, def []byte
		n := int(h.DataPageHeader.V.NumValues)
		switch h.Type {
		case format.DictionaryPage:
			d := h.DictionaryPageHeader.V
			dictionary = decodeValues(t, c, format.Plain, body, int(d.NumValues))
			continue
		case format.DataPage:
			if c.maxRep > 0 {
				length := 4 + binary.LittleEndian.Uint32(body)
				rep, body = body[4:length], body[length:]
			}
			if c.maxDef > 0 {
				length := 4 + binary.LittleEndian.Uint32(body)
				def, body = body[4:length], body[length:]
			}
		case format.DataPageV2:
			v := h.DataPageHeaderV2.V
			if e, n = v.Encoding, int(v.NumValues); n == 0 {
				filled = true
				continue
			}
			rep, body = body[:v.RepetitionLevelsByteLength], body[v.RepetitionLevelsByteLength:]
			def, body = body[:v.DefinitionLevelsByteLength], body[v.DefinitionLevelsByteLength:]
		}
		if filled {
			t.Fatal("a page after the filler")
		}
		if !slices.Contains(encodings, e) {
			t.Fatalf("encoding %v is none of %v", e, encodings)
		}
		reps := decodeHybrid(t, rep, bits.Len(uint(c.maxRep)), n)
		defs := decodeHybrid(t, def, bits.Len(uint(c.maxDef)), n)
		values, rows := 0, 0
		for i, d := range defs {
			if int(d) == c.maxDef {
				values++
			}
			if reps[i] == 0 {
				rows++
			}
		}
		if v := h.DataPageHeaderV2.V; h.Type == format.DataPageV2 && (int(v.NumRows) != rows || int(v.NumNulls) != n-values) {
			t.Fatalf("the header says %d rows and %d nulls, there are %d and %d", v.NumRows, v.NumNulls, rows, n-values)
		}
		var decoded []string
		if isDictionary(e) {
			if len(body) > 0 {
				for _, i := range decodeHybrid(t, body[1:], int(body[0]), values) {
					decoded = append(decoded, dictionary[i])
				}
			}
		} else {
			decoded = decodeValues(t, c, e, body, values)
		}
		for i := range n {
			entry := entry{rep: byte(reps[i]), def: byte(defs[i])}
			if int(defs[i]) == c.maxDef {
				entry.value, decoded = decoded[0], decoded[1:]
			}
			entries = append(entries, entry)
		}
	}
	if !filled {
		t.Fatal("no filler")
	}
	return entries
}

// memory is a region of a file.
type memory struct{ b []byte }

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > int64(len(m.b)) {
		return 0, bytes.ErrTooLarge
	}
	return copy(m.b[off:], p), nil
}

// randomColumn makes a column of about n entries.
func randomColumn(rng *rand.Rand, physical format.Type, typeLength, maxDef, maxRep, n int) *column {
	c := &column{physical: physical, typeLength: typeLength, maxDef: maxDef, maxRep: maxRep}
	distinct := []int{1, 2, 7, 300, 100_000}[rng.IntN(5)]
	nulls := []int{0, 1, 30, 90, 100}[rng.IntN(5)]
	var last entry
	for len(c.entries) < n {
		e := entry{def: byte(maxDef)}
		if maxRep > 0 && len(c.entries) > 0 && rng.IntN(3) > 0 {
			e.rep = byte(1 + rng.IntN(maxRep))
		}
		if maxDef > 0 && rng.IntN(100) < nulls {
			e.def = byte(rng.IntN(maxDef))
		}
		if rng.IntN(4) > 0 && len(c.entries) > 0 {
			e.def = last.def
		}
		if int(e.def) == maxDef {
			e.value = randomValue(rng, physical, typeLength, rng.IntN(distinct))
		}
		last = e
		c.entries = append(c.entries, e)
	}
	return c
}

func randomValue(rng *rand.Rand, physical format.Type, typeLength, i int) string {
	if rng.IntN(5) == 0 {
		i = 0
	}
	v := uint64(i) * 0x9e3779b97f4a7c15
	switch physical {
	case format.Boolean:
		return string([]byte{byte(i & 1)})
	case format.ByteArray:
		long := bytes.Repeat([]byte("common prefix "), i%4)
		return string(append(long, make([]byte, i%9)...)) + string(binary.BigEndian.AppendUint16(nil, uint16(i)))
	case format.Float:
		return string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(i)/3)))
	}
	b := binary.LittleEndian.AppendUint64(nil, v)
	b = binary.LittleEndian.AppendUint64(b, ^v)
	return string(b[:width(physical, typeLength)])
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
