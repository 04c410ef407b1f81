package parquetfile

import (
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// footer is what this package uses of FileMetaData (parquet.thrift). Byte
// slices point into the encoded footer.
type footer struct {
	schema    []element
	numRows   int64
	rowGroups []RowGroup
	keyValues map[string]string
	createdBy string
	// ordered says, by leaf, that min_value and max_value follow the order
	// that the type defines (column_orders).
	ordered   []bool
	encrypted bool
}

// element is one SchemaElement; physical is -1 for a group.
type element struct {
	name       string
	physical   format.Type
	length     int32
	repetition format.FieldRepetitionType
	children   int32
	converted  int32
	scale      int32
	precision  int32
	logical    Logical
	// id is the field id; identified says that there is one.
	id         int32
	identified bool
}

// fieldSet remembers which of the fields 1 to 31 were seen.
type fieldSet uint32

func (s *fieldSet) add(id int16) {
	if id > 0 && id < 32 {
		*s |= 1 << id
	}
}

func (s fieldSet) has(ids ...int16) bool {
	for _, id := range ids {
		if s&(1<<id) == 0 {
			return false
		}
	}
	return true
}

func (d *decoder) footer() (f footer) {
	var seen fieldSet
	d.structure(func(id int16, t thrift.Type) {
		seen.add(id)
		switch id {
		case 2:
			d.list(t, thrift.STRUCT, func() { f.schema = append(f.schema, d.element()) })
		case 3:
			f.numRows = d.int64(t)
		case 4:
			d.list(t, thrift.STRUCT, func() { f.rowGroups = append(f.rowGroups, d.rowGroup()) })
		case 5:
			f.keyValues = map[string]string{}
			d.list(t, thrift.STRUCT, func() { d.keyValue(f.keyValues) })
		case 6:
			f.createdBy = d.string(t)
		case 7:
			d.list(t, thrift.STRUCT, func() { f.ordered = append(f.ordered, d.columnOrder()) })
		case 8:
			f.encrypted = true
			d.skip(t)
		default:
			d.skip(t)
		}
	})
	if !seen.has(2, 3, 4) {
		d.fail("FileMetaData lacks a required field")
	}
	return f
}

func (d *decoder) element() element {
	e := element{physical: -1, converted: -1}
	var seen fieldSet
	d.structure(func(id int16, t thrift.Type) {
		seen.add(id)
		switch id {
		case 1:
			e.physical = format.Type(d.int32(t))
		case 2:
			e.length = d.int32(t)
		case 3:
			e.repetition = format.FieldRepetitionType(d.int32(t))
		case 4:
			e.name = d.string(t)
		case 5:
			e.children = d.int32(t)
		case 6:
			e.converted = d.int32(t)
		case 7:
			e.scale = d.int32(t)
		case 8:
			e.precision = d.int32(t)
		case 9:
			e.id, e.identified = d.int32(t), true
		case 10:
			e.logical = d.logicalType(t)
		default:
			d.skip(t)
		}
	})
	if !seen.has(4) {
		d.fail("SchemaElement lacks its name")
	}
	return e
}

func (d *decoder) keyValue(into map[string]string) {
	var key, value string
	d.structure(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			key = d.string(t)
		case 2:
			value = d.string(t)
		default:
			d.skip(t)
		}
	})
	if d.err == nil {
		into[key] = value
	}
}

func (d *decoder) columnOrder() (typeDefined bool) {
	d.structure(func(id int16, t thrift.Type) {
		typeDefined = typeDefined || id == 1
		d.skip(t)
	})
	return typeDefined
}

func (d *decoder) rowGroup() (g RowGroup) {
	var seen fieldSet
	d.structure(func(id int16, t thrift.Type) {
		seen.add(id)
		switch id {
		case 1:
			d.list(t, thrift.STRUCT, func() { g.Chunks = append(g.Chunks, d.columnChunk()) })
		case 3:
			g.NumRows = d.int64(t)
		default:
			d.skip(t)
		}
	})
	if !seen.has(1, 3) {
		d.fail("RowGroup lacks a required field")
	}
	return g
}

func (d *decoder) columnChunk() (c Chunk) {
	d.structure(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			c.external = len(d.bytes(t)) > 0
		case 2:
			c.fileOffset = d.int64(t)
		case 3:
			c.hasMetaData = true
			d.nested(t, d.columnMetaData(&c))
		case 4:
			c.offsetIndex.offset = d.int64(t)
		case 5:
			c.offsetIndex.length = int64(d.int32(t))
		case 6:
			c.columnIndex.offset = d.int64(t)
		case 7:
			c.columnIndex.length = int64(d.int32(t))
		case 8, 9:
			c.encrypted = true
			d.skip(t)
		default:
			d.skip(t)
		}
	})
	if c.hasMetaData && !c.seen.has(columnMetaDataRequired...) {
		d.fail("ColumnMetaData lacks a required field")
	}
	return c
}

// bareMetaData decodes a ColumnMetaData that is not in a ColumnChunk.
func (d *decoder) bareMetaData() (c Chunk) {
	d.structure(d.columnMetaData(&c))
	return c
}

// columnMetaDataRequired are the required fields that are looked at.
var columnMetaDataRequired = []int16{1, 3, 4, 5, 7, 9}

func (d *decoder) columnMetaData(c *Chunk) func(int16, thrift.Type) {
	return func(id int16, t thrift.Type) {
		c.seen.add(id)
		switch id {
		case 1:
			c.physical = format.Type(d.int32(t))
		case 3:
			var path []string
			d.list(t, thrift.BINARY, func() { path = append(path, d.string(thrift.BINARY)) })
			c.path = strings.Join(path, ".")
		case 4:
			c.Codec = format.CompressionCodec(d.int32(t))
		case 5:
			c.NumValues = d.int64(t)
		case 7:
			c.size = d.int64(t)
		case 9:
			c.dataPage = d.int64(t)
		case 11:
			c.dictionaryPage = d.int64(t)
		case 12:
			d.nested(t, d.statistics(&c.stats))
		case 14:
			c.bloom.offset = d.int64(t)
		case 15:
			c.bloom.length = int64(d.int32(t))
		default:
			d.skip(t)
		}
	}
}

// statistics are a chunk's Statistics; a nil bound is absent.
type statistics struct {
	// oldMin and oldMax are the deprecated bounds, compared as signed.
	oldMin, oldMax []byte
	min, max       []byte
	nulls          int64
	hasNulls       bool
}

func (d *decoder) statistics(s *statistics) func(int16, thrift.Type) {
	return func(id int16, t thrift.Type) {
		switch id {
		case 1:
			s.oldMax = d.bound(t)
		case 2:
			s.oldMin = d.bound(t)
		case 3:
			s.nulls, s.hasNulls = d.int64(t), true
		case 5:
			s.max = d.bound(t)
		case 6:
			s.min = d.bound(t)
		default:
			// is_max_value_exact and is_min_value_exact (7, 8) do not
			// matter: an inexact bound is a bound.
			d.skip(t)
		}
	}
}

// bound reads a value that is not nil even when empty.
func (d *decoder) bound(t thrift.Type) []byte {
	return append([]byte{}, d.bytes(t)...)
}

// pageHeader is what this package uses of PageHeader.
type pageHeader struct {
	kind                     format.PageType
	uncompressed, compressed int32
	// values is -1 if the header of the page's kind is missing.
	values int32
	// rows is -1 except for data pages v2.
	rows int32
	// levels is the length of the levels of a data page v2, in bytes.
	levels int64
	nulls  int32
	// plain says that the values are not compressed in spite of the codec.
	plain bool
}

func (d *decoder) pageHeader() pageHeader {
	h := pageHeader{values: -1, rows: -1}
	var seen fieldSet
	values := [4]int32{-1, -1, -1, -1}
	d.structure(func(id int16, t thrift.Type) {
		seen.add(id)
		switch id {
		case 1:
			h.kind = format.PageType(d.int32(t))
		case 2:
			h.uncompressed = d.int32(t)
		case 3:
			h.compressed = d.int32(t)
		case 5:
			d.nested(t, d.numValues(&values[format.DataPage]))
		case 6:
			values[format.IndexPage] = 0
			d.skip(t)
		case 7:
			d.nested(t, d.numValues(&values[format.DictionaryPage]))
		case 8:
			d.nested(t, d.dataPageV2(&h, &values[format.DataPageV2]))
		default:
			d.skip(t)
		}
	})
	if !seen.has(1, 2, 3) {
		d.fail("PageHeader lacks a required field")
	}
	if h.kind >= 0 && int(h.kind) < len(values) {
		h.values = values[h.kind]
	}
	return h
}

func (d *decoder) numValues(n *int32) func(int16, thrift.Type) {
	return func(id int16, t thrift.Type) {
		if id == 1 {
			*n = d.int32(t)
		} else {
			d.skip(t)
		}
	}
}

func (d *decoder) dataPageV2(h *pageHeader, n *int32) func(int16, thrift.Type) {
	return func(id int16, t thrift.Type) {
		switch id {
		case 1:
			*n = d.int32(t)
		case 2:
			h.nulls = d.int32(t)
		case 3:
			h.rows = d.int32(t)
		case 5, 6:
			n := d.int32(t)
			if n < 0 {
				d.fail("negative length of levels")
			}
			h.levels += int64(n)
		case 7:
			h.plain = !d.bool(t)
		default:
			d.skip(t)
		}
	}
}

// bloomHeader returns the size of the filter that follows, in bytes.
func (d *decoder) bloomHeader() (size int32) {
	size = -1
	d.structure(func(id int16, t thrift.Type) {
		if id == 1 {
			size = d.int32(t)
		} else {
			d.skip(t)
		}
	})
	if size < 0 {
		d.fail("BloomFilterHeader lacks its size")
	}
	return size
}
