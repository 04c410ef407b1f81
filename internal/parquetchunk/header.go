package parquetchunk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// maxHeader bounds a page header, which may hold a minimum and a maximum of
	// any length.
	maxHeader = 16 << 20
	// maxDepth bounds the nesting of unknown fields.
	maxDepth = 32
)

var errHeader = errors.New("malformed page header")

// header is what this package uses of PageHeader.
type header struct {
	kind                     format.PageType
	uncompressed, compressed int
	// count is how many entries a data page has, or values a dictionary.
	count    int
	encoding format.Encoding
	// defEncoding and repEncoding are those of the levels of a data page V1.
	defEncoding, repEncoding format.Encoding
	// nulls, rows and what follows are of a data page V2.
	nulls, rows        int
	defBytes, repBytes int
	// plain says that the values are not compressed in spite of the codec;
	// saysPlain that the header speaks of it.
	plain, saysPlain bool
}

// append encodes h. It never takes more bytes than the source's header did,
// except where a number is larger: nothing is written that need not be.
func (h *header) append(b []byte) []byte {
	w := thriftWriter{b: b}
	w.int(1, int(h.kind))
	w.int(2, h.uncompressed)
	w.int(3, h.compressed)
	switch h.kind {
	case format.DataPage:
		w.begin(5)
		w.int(1, h.count)
		w.int(2, int(h.encoding))
		w.int(3, int(format.RLE))
		w.int(4, int(format.RLE))
	case format.DictionaryPage:
		w.begin(7)
		w.int(1, h.count)
		w.int(2, int(h.encoding))
	case format.DataPageV2:
		w.begin(8)
		w.int(1, h.count)
		w.int(2, h.nulls)
		w.int(3, h.rows)
		w.int(4, int(h.encoding))
		w.int(5, h.defBytes)
		w.int(6, h.repBytes)
		if h.saysPlain {
			w.field(7, thrift.FALSE)
		}
	}
	return append(w.b, byte(thrift.STOP), byte(thrift.STOP))
}

// thriftWriter writes fields whose ids ascend by less than 16.
type thriftWriter struct {
	b    []byte
	last int16
}

func (w *thriftWriter) field(id int16, t thrift.Type) {
	w.b = append(w.b, byte(id-w.last)<<4|byte(t))
	w.last = id
}

func (w *thriftWriter) int(id int16, v int) {
	w.field(id, thrift.I32)
	w.b = binary.AppendVarint(w.b, int64(v))
}

// begin begins a struct that is the last field.
func (w *thriftWriter) begin(id int16) {
	w.field(id, thrift.STRUCT)
	w.last = 0
}

const (
	// fillerHeader is the length of the header of a page that takes the rest of a
	// region. Its sizes are written in five bytes whatever they are, so that a
	// rest of any size from minFiller on can be taken.
	fillerHeader = 34
	minFiller    = fillerHeader + 2*emptyLevels
	// emptyLevels is the length of a run of no levels.
	emptyLevels = 2
)

// appendFiller encodes the header of a page of this size that readers pass over
// whatever it holds: a data page V2 without entries, whose zeros are runs of no
// levels. Readers that go on to the end of a chunk take it for what it is. An
// index page would say more clearly what it is, but the Rust and Go libraries
// fail on one.
func appendFiller(b []byte, size int) []byte {
	w := thriftWriter{b: b}
	w.int(1, int(format.DataPageV2))
	w.wide(2, size)
	w.wide(3, size)
	w.begin(8)
	w.int(1, 0)
	w.int(2, 0)
	w.int(3, 0)
	w.int(4, int(format.Plain))
	w.wide(5, size-emptyLevels)
	w.int(6, emptyLevels)
	w.field(7, thrift.FALSE)
	return append(w.b, byte(thrift.STOP), byte(thrift.STOP))
}

// wide writes a number in five bytes.
func (w *thriftWriter) wide(id int16, v int) {
	w.field(id, thrift.I32)
	u := uint64(v) << 1
	w.b = append(w.b, byte(u)|0x80, byte(u>>7)|0x80, byte(u>>14)|0x80, byte(u>>21)|0x80, byte(u>>28))
}

// readHeader decodes a page header and returns its length.
func readHeader(r *bufio.Reader) (h header, n int, err error) {
	t := thriftReader{r: r}
	counts := [4]int{-1, 0, -1, -1}
	var seen [4]bool
	t.fields(func(id int16, typ thrift.Type) {
		switch id {
		case 1:
			h.kind = format.PageType(t.int32(typ))
		case 2:
			h.uncompressed = t.int32(typ)
		case 3:
			h.compressed = t.int32(typ)
		case 5:
			t.structure(typ, func(id int16, typ thrift.Type) { t.dataPage(&h, &counts[format.DataPage], id, typ) })
		case 7:
			t.structure(typ, func(id int16, typ thrift.Type) { t.dictionary(&h, &counts[format.DictionaryPage], id, typ) })
		case 8:
			t.structure(typ, func(id int16, typ thrift.Type) { t.dataPageV2(&h, &counts[format.DataPageV2], id, typ) })
		default:
			t.skip(typ, 0)
		}
		if id > 0 && int(id) < len(seen) {
			seen[id] = true
		}
	})
	if t.err != nil {
		return h, t.n, t.err
	}
	if !seen[1] || !seen[2] || !seen[3] {
		return h, t.n, fmt.Errorf("%w: a required field is missing", errHeader)
	}
	if h.kind >= 0 && int(h.kind) < len(counts) {
		h.count = counts[h.kind]
	}
	if h.uncompressed < 0 || h.compressed < 0 || h.count < 0 || h.nulls < 0 || h.rows < 0 || h.defBytes < 0 || h.repBytes < 0 {
		return h, t.n, fmt.Errorf("%w: a count is negative or missing", errHeader)
	}
	return h, t.n, nil
}

func (t *thriftReader) dataPage(h *header, count *int, id int16, typ thrift.Type) {
	switch id {
	case 1:
		*count = t.int32(typ)
	case 2:
		h.encoding = format.Encoding(t.int32(typ))
	case 3:
		h.defEncoding = format.Encoding(t.int32(typ))
	case 4:
		h.repEncoding = format.Encoding(t.int32(typ))
	default:
		t.skip(typ, 0)
	}
}

func (t *thriftReader) dictionary(h *header, count *int, id int16, typ thrift.Type) {
	switch id {
	case 1:
		*count = t.int32(typ)
	case 2:
		h.encoding = format.Encoding(t.int32(typ))
	default:
		t.skip(typ, 0)
	}
}

func (t *thriftReader) dataPageV2(h *header, count *int, id int16, typ thrift.Type) {
	switch id {
	case 1:
		*count = t.int32(typ)
	case 2:
		h.nulls = t.int32(typ)
	case 3:
		h.rows = t.int32(typ)
	case 4:
		h.encoding = format.Encoding(t.int32(typ))
	case 5:
		h.defBytes = t.int32(typ)
	case 6:
		h.repBytes = t.int32(typ)
	case 7:
		h.saysPlain, h.plain = true, typ == thrift.FALSE
	default:
		t.skip(typ, 0)
	}
}

// thriftReader reads the compact protocol. The first error sticks: later reads
// return zeros. Every element of a list takes a byte at least, so that no loop
// outlives maxHeader.
type thriftReader struct {
	r   *bufio.Reader
	n   int
	err error
}

func (t *thriftReader) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("%w: "+format, append([]any{errHeader}, args...)...)
	}
}

func (t *thriftReader) byte() byte {
	if t.err != nil {
		return 0
	}
	if t.n++; t.n > maxHeader {
		t.fail("longer than %d bytes", maxHeader)
		return 0
	}
	b, err := t.r.ReadByte()
	if err != nil {
		t.err = err
	}
	return b
}

func (t *thriftReader) uvarint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		b := t.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	t.fail("a number of more than 64 bits")
	return 0
}

func (t *thriftReader) varint() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (t *thriftReader) int32(typ thrift.Type) int {
	if typ != thrift.I32 {
		t.fail("found %v instead of a number", typ)
		return 0
	}
	return int(int32(t.varint()))
}

func (t *thriftReader) structure(typ thrift.Type, field func(int16, thrift.Type)) {
	if typ != thrift.STRUCT {
		t.fail("found %v instead of a struct", typ)
		return
	}
	t.fields(field)
}

func (t *thriftReader) fields(field func(int16, thrift.Type)) {
	var last int16
	for t.err == nil {
		b := t.byte()
		if b == byte(thrift.STOP) {
			return
		}
		if b>>4 != 0 {
			last += int16(b >> 4)
		} else {
			last = int16(t.varint())
		}
		field(last, thrift.Type(b&0xf))
	}
}

// skip reads the value of a field that is not wanted.
func (t *thriftReader) skip(typ thrift.Type, depth int) {
	if depth > maxDepth {
		t.fail("nested deeper than %d", maxDepth)
		return
	}
	switch typ {
	case thrift.TRUE, thrift.FALSE:
	case thrift.I8:
		t.byte()
	case thrift.I16, thrift.I32, thrift.I64:
		t.uvarint()
	case thrift.DOUBLE:
		t.discard(8)
	case thrift.BINARY:
		t.discard(t.uvarint())
	case thrift.LIST, thrift.SET:
		b := t.byte()
		n := uint64(b >> 4)
		if n == 15 {
			n = t.uvarint()
		}
		t.elements(n, depth, thrift.Type(b&0xf))
	case thrift.MAP:
		if n := t.uvarint(); n > 0 {
			b := t.byte()
			t.elements(n, depth, thrift.Type(b>>4), thrift.Type(b&0xf))
		}
	case thrift.STRUCT:
		t.fields(func(_ int16, typ thrift.Type) { t.skip(typ, depth+1) })
	default:
		t.fail("unknown type %d", typ)
	}
}

// elements skips the elements of a list or map, where a boolean takes a byte.
func (t *thriftReader) elements(n uint64, depth int, types ...thrift.Type) {
	for ; n > 0 && t.err == nil; n-- {
		for _, typ := range types {
			if typ == thrift.TRUE || typ == thrift.FALSE {
				typ = thrift.I8
			}
			t.skip(typ, depth+1)
		}
	}
}

func (t *thriftReader) discard(n uint64) {
	if n > uint64(maxHeader-min(t.n, maxHeader)) {
		t.fail("longer than %d bytes", maxHeader)
	}
	if t.err != nil {
		return
	}
	t.n += int(n)
	if _, err := t.r.Discard(int(n)); err != nil {
		t.err = err
	}
}
