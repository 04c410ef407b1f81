package parquetview

import (
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// magicLength is the length of the magic that a file begins with.
const magicLength = 4

// span is a range of a file, in bytes.
type span struct{ offset, length int64 }

// inside reports whether the span lies in the data of a file, which ends where
// the footer starts.
func (s span) inside(footerStart int64) bool {
	return s.offset >= magicLength && s.length >= 0 && s.offset <= footerStart && s.length <= footerStart-s.offset
}

// chunk is a column chunk of the file: its encoded fields, and what of them is
// looked at.
type chunk struct {
	fields, meta            []parquetfile.Field
	data                    span
	uncompressed, numValues int64
	codec                   format.CompressionCodec
	encodings               []format.Encoding
	statistics              []parquetfile.Field
	// offsetIndex, columnIndex and bloom are without length if there is none.
	offsetIndex, columnIndex, bloom span
}

// chunks decodes the chunks of a row group. They are checked against the schema
// and the size of the file.
func chunks(foot *parquetfile.Footer, group int, list parquetfile.Field) ([]chunk, error) {
	encoded, err := list.Structs()
	if err != nil {
		return nil, broken(err, group)
	}
	if len(encoded) != len(foot.Columns()) {
		return nil, fault.New(ErrBroken, "row group %d has %d columns, the schema %d", group, len(encoded), len(foot.Columns()))
	}
	all := make([]chunk, len(encoded))
	for i, b := range encoded {
		if err := all[i].decode(b, foot, group, foot.Columns()[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func broken(err error, group int) error {
	return fault.Wrap(ErrBroken, err, "row group %d", group)
}

func (c *chunk) decode(b []byte, foot *parquetfile.Footer, group int, leaf *parquetfile.Node) (err error) {
	if c.fields, err = parquetfile.Fields(b); err != nil {
		return broken(err, group)
	}
	external, encrypted := false, false
	for _, f := range c.fields {
		switch f.ID {
		case 1:
			external = len(f.Bytes()) > 0
		case 3:
			if f.Type != thrift.STRUCT {
				return fault.New(ErrBroken, "row group %d: a ColumnMetaData that is no struct", group)
			}
			if c.meta, err = parquetfile.Fields(f.Value); err != nil {
				return broken(err, group)
			}
		case 4:
			c.offsetIndex.offset = f.Int()
		case 5:
			c.offsetIndex.length = f.Int()
		case 6:
			c.columnIndex.offset = f.Int()
		case 7:
			c.columnIndex.length = f.Int()
		case 8, 9:
			encrypted = true
		}
	}
	column := pathOf(leaf)
	switch {
	case external:
		return fault.New(ErrUnsupported, "its data is in another file").OnColumn(column)
	case encrypted:
		return fault.New(ErrUnsupported, "the column is encrypted").OnColumn(column)
	}
	if err := c.metaData(group, leaf); err != nil {
		return err
	}
	for _, s := range []*span{&c.offsetIndex, &c.columnIndex, &c.bloom} {
		if !s.inside(foot.Start) {
			*s = span{}
		}
	}
	rows := foot.RowGroups[group].NumRows
	switch {
	case !c.data.inside(foot.Start) && (c.data.length != 0 || c.numValues != 0):
		return fault.New(ErrBroken, "row group %d lies at bytes %d to %d, outside of the data (bytes %d to %d)",
			group, c.data.offset, c.data.offset+c.data.length, magicLength, foot.Start).OnColumn(column)
	case c.numValues < rows || leaf.MaxRepetition == 0 && c.numValues != rows:
		return fault.New(ErrBroken, "row group %d has %d rows and %d values", group, rows, c.numValues).OnColumn(column)
	}
	return nil
}

func (c *chunk) metaData(group int, leaf *parquetfile.Node) (err error) {
	physical := format.Type(-1)
	dictionary := int64(0)
	for _, f := range c.meta {
		switch f.ID {
		case 1:
			physical = format.Type(f.Int())
		case 2:
			for _, e := range f.Ints() {
				c.encodings = append(c.encodings, format.Encoding(e))
			}
		case 4:
			c.codec = format.CompressionCodec(f.Int())
		case 5:
			c.numValues = f.Int()
		case 6:
			c.uncompressed = f.Int()
		case 7:
			c.data.length = f.Int()
		case 9:
			c.data.offset = f.Int()
		case 11:
			dictionary = f.Int()
		case 12:
			if f.Type == thrift.STRUCT {
				if c.statistics, err = parquetfile.Fields(f.Value); err != nil {
					return broken(err, group)
				}
			}
		case 14:
			c.bloom.offset = f.Int()
		case 15:
			c.bloom.length = f.Int()
		}
	}
	switch {
	case c.meta == nil:
		return fault.New(ErrBroken, "row group %d does not say where its data is", group).OnColumn(pathOf(leaf))
	case physical != leaf.Physical:
		return fault.New(ErrBroken, "row group %d holds %v, the schema says %v", group, physical, leaf.Physical).OnColumn(pathOf(leaf))
	case dictionary < 0 || dictionary > 0 && dictionary > c.data.offset && c.numValues > 0:
		return fault.New(ErrBroken, "row group %d has its dictionary at byte %d and its data at byte %d",
			group, dictionary, c.data.offset).OnColumn(pathOf(leaf))
	case dictionary > 0:
		c.data.offset = dictionary
	}
	return nil
}

// source describes the chunk to those who read it.
func (c *chunk) source(leaf *parquetfile.Node, firstRow, rows int64) parquetchunk.Source {
	return parquetchunk.Source{
		Column: pathOf(leaf), Offset: c.data.offset, Length: c.data.length, Uncompressed: c.uncompressed,
		Codec: c.codec, Encodings: c.encodings, Physical: leaf.Physical, TypeLength: int(leaf.Length),
		MaxDefinition: leaf.MaxDefinition, MaxRepetition: leaf.MaxRepetition, NumValues: c.numValues,
		FirstRow: firstRow, NumRows: rows,
	}
}

// renamed encodes the chunk, which stays where it is, under another path; with
// its bounds or without.
func (c *chunk) renamed(path []string, bounds bool) []byte {
	var w structWriter
	for _, f := range c.fields {
		switch {
		case f.ID == 3:
			w.raw(3, f.Type, c.renamedMeta(path, bounds))
		case f.ID == 4 || f.ID == 5:
			if c.offsetIndex.length > 0 {
				w.raw(f.ID, f.Type, f.Value)
			}
		case f.ID == 6 || f.ID == 7:
			if bounds && c.columnIndex.length > 0 && c.offsetIndex.length > 0 {
				w.raw(f.ID, f.Type, f.Value)
			}
		case f.ID != 1:
			w.raw(f.ID, f.Type, f.Value)
		}
	}
	return w.end()
}

func (c *chunk) renamedMeta(path []string, bounds bool) []byte {
	var w structWriter
	for _, f := range c.meta {
		switch {
		case f.ID == 3:
			w.list(3, thrift.BINARY, encodedStrings(path))
		case f.ID != metaStatistics || bounds:
			w.raw(f.ID, f.Type, f.Value)
		}
	}
	return w.end()
}
