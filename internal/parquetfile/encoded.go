package parquetfile

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/parquet-go/parquet-go/encoding/thrift"
)

const (
	// tailRead is what is read of a file at first; most footers lie in it.
	tailRead = 64 << 10
	// maxElements bounds a schema, whose tree takes far more memory than the
	// bytes that it is made of.
	maxElements = 1 << 17
)

// Footer is a footer for those who make another one of it: it is decoded as
// far as the schema and kept as it is encoded beyond. Its slices must not be
// changed.
type Footer struct {
	// Start is where the footer begins in the file.
	Start   int64
	NumRows int64
	// Root is the schema; its children are the columns.
	Root *Node
	// Elements are the encoded elements of the schema; a [Node] says its Place.
	Elements  [][]byte
	RowGroups []EncodedGroup
	KeyValues []KeyValue
	// Orders are the encoded column orders of the leaves, or nil.
	Orders [][]byte
	// Version and CreatedBy are what the footer says of its writer.
	Version   int32
	CreatedBy string
	// Encrypted says that columns are encrypted.
	Encrypted bool

	columns []*Node
}

// Columns returns the leaves of the schema in the order of the chunks.
func (f *Footer) Columns() []*Node { return f.columns }

// EncodedGroup is a row group as it is encoded; see [Fields].
type EncodedGroup struct {
	NumRows int64
	Encoded []byte
}

// KeyValue is an entry of the footer's key-value metadata.
type KeyValue struct {
	Key, Value []byte
	Encoded    []byte
}

// Field is a field of an encoded struct. A boolean has no value besides its
// type.
type Field struct {
	ID    int16
	Type  thrift.Type
	Value []byte
}

// ReadFooter reads the footer of the size bytes of r, and nothing else. The
// errors are [ErrNotYet], [ErrBroken], or what r returned; a footer that is
// encrypted itself gives a Footer with nothing but Encrypted set.
func ReadFooter(r io.ReaderAt, size int64) (*Footer, error) {
	if size < minSize {
		return nil, fault.New(ErrNotYet, "%d bytes are too few for a Parquet file", size)
	}
	tail := make([]byte, min(size, tailRead))
	if err := readFull(r, tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	end := len(tail) - 8
	switch string(tail[end+4:]) {
	case magic:
	case encryptedMagic:
		return &Footer{Encrypted: true}, nil
	default:
		return nil, fault.New(ErrNotYet, "the file does not end like a Parquet file: the end is missing")
	}
	length := int64(binary.LittleEndian.Uint32(tail[end:]))
	if length == 0 || length > size-minSize {
		return nil, fault.New(ErrNotYet, "a footer of %d bytes does not fit into %d bytes", length, size)
	}
	if length > maxFooter {
		return nil, fault.New(ErrBroken, "a footer of %d bytes is larger than %d", length, int64(maxFooter))
	}
	start := size - 8 - length
	var b []byte
	if length <= int64(end) {
		b = tail[end-int(length) : end]
	} else {
		b = make([]byte, length)
		if err := readFull(r, b, start); err != nil {
			return nil, err
		}
	}
	f, err := decodeEncoded(b)
	if err != nil {
		return nil, err
	}
	f.Start = start
	return f, nil
}

func decodeEncoded(b []byte) (*Footer, error) {
	d := newDecoder(b)
	f, schema, ordered := d.encodedFooter(b)
	if d.err != nil {
		return nil, fault.Wrap(ErrBroken, d.err, "the footer does not decode")
	}
	var err error
	if f.Root, f.columns, err = tree(schema, ordered); err != nil {
		return nil, err
	}
	rows := int64(0)
	for i, g := range f.RowGroups {
		if g.NumRows < 0 || g.NumRows > math.MaxInt64-rows {
			return nil, fault.New(ErrBroken, "row group %d has %d rows", i, g.NumRows)
		}
		rows += g.NumRows
	}
	if rows != f.NumRows {
		return nil, fault.New(ErrBroken, "the row groups have %d rows, the file %d", rows, f.NumRows)
	}
	return f, nil
}

func (d *decoder) encodedFooter(b []byte) (f *Footer, schema []element, ordered []bool) {
	f = new(Footer)
	var seen fieldSet
	// encoded calls decode and returns the bytes that it consumed.
	encoded := func(decode func()) []byte {
		start := d.read()
		decode()
		return b[start:d.read():d.read()]
	}
	d.structure(func(id int16, t thrift.Type) {
		seen.add(id)
		switch id {
		case 1:
			f.Version = d.int32(t)
		case 2:
			d.list(t, thrift.STRUCT, func() {
				f.Elements = append(f.Elements, encoded(func() { schema = append(schema, d.element()) }))
				if len(schema) > maxElements {
					d.fail("a schema of more than %d elements", maxElements)
				}
			})
		case 3:
			f.NumRows = d.int64(t)
		case 4:
			d.list(t, thrift.STRUCT, func() {
				var rows int64
				b := encoded(func() { rows = d.groupRows() })
				f.RowGroups = append(f.RowGroups, EncodedGroup{NumRows: rows, Encoded: b})
			})
		case 5:
			d.list(t, thrift.STRUCT, func() {
				var kv KeyValue
				kv.Encoded = encoded(func() { kv.Key, kv.Value = d.keyValueBytes() })
				f.KeyValues = append(f.KeyValues, kv)
			})
		case 6:
			f.CreatedBy = d.string(t)
		case 7:
			d.list(t, thrift.STRUCT, func() {
				f.Orders = append(f.Orders, encoded(func() { ordered = append(ordered, d.columnOrder()) }))
			})
		case 8:
			f.Encrypted = true
			d.skip(t)
		default:
			d.skip(t)
		}
	})
	if !seen.has(2, 3, 4) {
		d.fail("FileMetaData lacks a required field")
	}
	// A plain footer of an encrypted file is followed by its signature.
	if d.read() != len(b) && !f.Encrypted {
		d.fail("%d bytes are left over", len(b)-d.read())
	}
	return f, schema, ordered
}

// groupRows passes over a RowGroup and returns its number of rows.
func (d *decoder) groupRows() (rows int64) {
	var seen fieldSet
	d.structure(func(id int16, t thrift.Type) {
		seen.add(id)
		if id == 3 {
			rows = d.int64(t)
		} else {
			d.skip(t)
		}
	})
	if !seen.has(1, 3) {
		d.fail("RowGroup lacks a required field")
	}
	return rows
}

func (d *decoder) keyValueBytes() (key, value []byte) {
	d.structure(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			key = d.bytes(t)
		case 2:
			value = d.bytes(t)
		default:
			d.skip(t)
		}
	})
	return key, value
}

// Fields splits an encoded struct into its fields, in their order.
func Fields(b []byte) ([]Field, error) {
	d := newDecoder(b)
	fields := make([]Field, 0, 16)
	d.structure(func(id int16, t thrift.Type) {
		start := d.read()
		d.skip(t)
		fields = append(fields, Field{ID: id, Type: t, Value: b[start:d.read():d.read()]})
	})
	if d.err == nil && d.read() != len(b) {
		d.fail("%d bytes are left over", len(b)-d.read())
	}
	if d.err != nil {
		return nil, fault.Wrap(ErrBroken, d.err, "the footer does not decode")
	}
	return fields, nil
}

// Structs splits a field that is a list of structs.
func (f Field) Structs() ([][]byte, error) {
	d := newDecoder(f.Value)
	var all [][]byte
	d.list(f.Type, thrift.STRUCT, func() {
		start := d.read()
		d.skipItem(thrift.STRUCT)
		all = append(all, f.Value[start:d.read():d.read()])
	})
	if d.err != nil {
		return nil, fault.Wrap(ErrBroken, d.err, "the footer does not decode")
	}
	return all, nil
}

// Int returns the value of an integer of 16 to 64 bits, and 0 of other fields.
func (f Field) Int() int64 {
	if f.Type != thrift.I16 && f.Type != thrift.I32 && f.Type != thrift.I64 {
		return 0
	}
	v, _ := binary.Varint(f.Value)
	return v
}

// Bytes returns the value of a string, and nil of other fields.
func (f Field) Bytes() []byte {
	d := newDecoder(f.Value)
	return d.bytes(f.Type)
}

// Ints returns the values of a list of 32-bit integers, and nil of other
// fields.
func (f Field) Ints() (all []int32) {
	d := newDecoder(f.Value)
	d.list(f.Type, thrift.I32, func() { all = append(all, d.int32(thrift.I32)) })
	return all
}
