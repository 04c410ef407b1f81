package parquetchunk

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/parquet-go/parquet-go/format"
)

// Sentinels of the package, wrapped in *fault.Error.
var (
	// ErrBroken: the pages contradict the footer or themselves.
	ErrBroken = errors.New("broken column chunk")
	// ErrUnsupported: an encoding or codec that cannot be read, or a value that
	// the conversion cannot represent.
	ErrUnsupported = errors.New("column chunk cannot be read")
)

// Source is a column chunk as the footer of its file describes it.
type Source struct {
	// Column names the column in messages.
	Column string
	// Offset and Length are the bytes of the chunk in the file: the dictionary
	// page, if there is one, and all that follows.
	Offset, Length int64
	// Uncompressed is total_uncompressed_size, page headers included; see
	// [Job.Measure].
	Uncompressed int64
	Codec        format.CompressionCodec
	Encodings    []format.Encoding
	// Physical is the type of the values; TypeLength is in bytes and set for
	// FIXED_LEN_BYTE_ARRAY.
	Physical   format.Type
	TypeLength int
	// MaxDefinition and MaxRepetition are the column's highest levels.
	MaxDefinition, MaxRepetition int
	NumValues                    int64
	// FirstRow is the position of the row group's first row in the file.
	FirstRow, NumRows int64
}

// Job says what becomes of a chunk.
type Job struct {
	Source Source
	// Deleted are positions of rows in the file; those of the chunk's rows that
	// it holds are left out. Nil keeps all.
	Deleted *roaring64.Bitmap
	// Convert is what is done to each value.
	Convert Conversion
	// Nulls, when set, keeps no values: the chunk becomes a column of nulls that
	// is a sibling of the source's column or of one of the groups around it.
	Nulls *Nulls
}

// Nulls describes a column of nulls made of the levels of another one: levels
// of the source above these are cut down to them. The new column's highest
// levels may be higher.
type Nulls struct {
	// Definition is that of the innermost group that both columns lie in.
	// Repetition is that of this group: entries of the source that repeat
	// deeper are no entries of the new column.
	Definition, Repetition int
	// MaxDefinition, MaxRepetition, Physical and TypeLength are the new
	// column's.
	MaxDefinition, MaxRepetition int
	Physical                     format.Type
	TypeLength                   int
}

// Layout is what the footer says of the new chunk. Its data_page_offset is the
// start of the region, where a dictionary page may come first.
type Layout struct {
	// Length is the size of the region in bytes.
	Length    int64
	Codec     format.CompressionCodec
	Encodings []format.Encoding
	NumValues int64
}
