package parquetfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// maxThriftDepth bounds the nesting of unknown fields.
const maxThriftDepth = 32

var errThrift = errors.New("malformed thrift")

// decoder reads thrift's compact protocol field by field. The first error
// sticks: later reads return zero values. Every list element takes at least
// one byte, so no loop outlives the input.
type decoder struct {
	r     thrift.BytesReader
	err   error
	depth int
}

func newDecoder(b []byte) *decoder {
	return &decoder{r: new(thrift.CompactProtocol).NewReaderFromBytes(b)}
}

// read is the number of bytes consumed.
func (d *decoder) read() int { return d.r.BytesRead() }

// truncated reports whether decoding failed for want of bytes.
func (d *decoder) truncated() bool {
	return errors.Is(d.err, io.EOF) || errors.Is(d.err, io.ErrUnexpectedEOF)
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{errThrift}, args...)...)
	}
}

func (d *decoder) keep(err error) {
	if d.err == nil && err != nil {
		d.err = err
	}
}

// structure calls field for every field of a struct; field must consume the
// value with one of the methods below.
func (d *decoder) structure(field func(id int16, t thrift.Type)) {
	if d.depth++; d.depth > maxThriftDepth {
		d.fail("nested deeper than %d", maxThriftDepth)
	}
	defer func() { d.depth-- }()
	var last int16
	for d.err == nil {
		f, err := d.r.ReadField()
		if err != nil {
			d.keep(err)
			return
		}
		if f.Type == thrift.STOP {
			return
		}
		if f.Delta {
			f.ID += last
		}
		last = f.ID
		field(f.ID, f.Type)
	}
}

// nested is structure for a field of type struct.
func (d *decoder) nested(t thrift.Type, field func(id int16, t thrift.Type)) {
	if d.want(t, thrift.STRUCT) {
		d.structure(field)
	}
}

// list calls element for every element of a list of the wanted type.
func (d *decoder) list(t, elem thrift.Type, element func()) {
	if !d.want(t, thrift.LIST) {
		return
	}
	l, err := d.r.ReadList()
	d.keep(err)
	if d.err != nil || l.Size == 0 || !d.want(l.Type, elem) {
		return
	}
	for i := int32(0); i < l.Size && d.err == nil; i++ {
		element()
	}
}

func (d *decoder) want(got, want thrift.Type) bool {
	if d.err == nil && got != want {
		d.fail("found %v, expected %v", got, want)
	}
	return d.err == nil
}

func (d *decoder) int32(t thrift.Type) (v int32) {
	if d.want(t, thrift.I32) {
		var err error
		v, err = d.r.ReadInt32()
		d.keep(err)
	}
	return v
}

func (d *decoder) int64(t thrift.Type) (v int64) {
	if d.want(t, thrift.I64) {
		var err error
		v, err = d.r.ReadInt64()
		d.keep(err)
	}
	return v
}

func (d *decoder) int8(t thrift.Type) (v int8) {
	if d.want(t, thrift.I8) {
		var err error
		v, err = d.r.ReadInt8()
		d.keep(err)
	}
	return v
}

// bool reads a boolean field, whose value is part of its type.
func (d *decoder) bool(t thrift.Type) bool {
	if t == thrift.TRUE {
		return true
	}
	d.want(t, thrift.FALSE)
	return false
}

// bytes returns a slice of the input.
func (d *decoder) bytes(t thrift.Type) (v []byte) {
	if d.want(t, thrift.BINARY) {
		var err error
		v, err = d.r.ReadBytes()
		d.keep(err)
	}
	return v
}

func (d *decoder) string(t thrift.Type) string { return string(d.bytes(t)) }

// skip consumes the value of a field that is not wanted.
func (d *decoder) skip(t thrift.Type) {
	if t != thrift.TRUE && t != thrift.FALSE {
		d.skipItem(t)
	}
}

// skipItem consumes a value; outside of a field a boolean takes a byte.
func (d *decoder) skipItem(t thrift.Type) {
	if d.err != nil {
		return
	}
	if d.depth++; d.depth > maxThriftDepth {
		d.fail("nested deeper than %d", maxThriftDepth)
		return
	}
	defer func() { d.depth-- }()
	var err error
	switch t {
	case thrift.TRUE, thrift.FALSE, thrift.I8:
		_, err = d.r.ReadInt8()
	case thrift.I16:
		_, err = d.r.ReadInt16()
	case thrift.I32:
		_, err = d.r.ReadInt32()
	case thrift.I64:
		_, err = d.r.ReadInt64()
	case thrift.DOUBLE:
		_, err = d.r.ReadFloat64()
	case thrift.BINARY:
		_, err = d.r.ReadBytes()
	case thrift.LIST, thrift.SET:
		var l thrift.List
		if l, err = d.r.ReadList(); err == nil {
			for i := int32(0); i < l.Size && d.err == nil; i++ {
				d.skipItem(l.Type)
			}
		}
	case thrift.MAP:
		var m thrift.Map
		if m, err = d.r.ReadMap(); err == nil {
			for i := int32(0); i < m.Size && d.err == nil; i++ {
				d.skipItem(m.Key)
				d.skipItem(m.Value)
			}
		}
	case thrift.STRUCT:
		d.structure(func(_ int16, t thrift.Type) { d.skip(t) })
	default:
		d.fail("unknown type %d", t)
	}
	d.keep(err)
}
