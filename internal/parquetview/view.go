package parquetview

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/deltafs/deltafs/internal/parquetchunk"
)

// Sentinels of the package, wrapped in *fault.Error.
var (
	// ErrBroken: the footer does not decode or contradicts itself.
	ErrBroken = errors.New("broken Parquet file")
	// ErrMismatch: a column of the file cannot be shown as the wanted type.
	ErrMismatch = errors.New("column does not have the table's type")
	// ErrUnsupported: encryption, or something else that cannot be served.
	ErrUnsupported = errors.New("this Parquet file cannot be served")
)

// Kind is the kind of a type.
type Kind int

// The kinds of types.
const (
	Boolean Kind = iota + 1
	Int8
	Int16
	Int32
	Int64
	Float32
	Float64
	Decimal
	String
	Binary
	Date
	Timestamp    // microseconds, adjusted to UTC
	TimestampNTZ // microseconds, not adjusted
	Void         // always null, served as integers
	Variant
	Struct
	List
	Map
	// Other is a type that is served as the file has it, whatever that is.
	Other
)

// Type is a type that a column of the served file shall have.
type Type struct {
	Kind Kind
	// Precision and Scale are set for Decimal.
	Precision, Scale int
	// Fields are the members of a Struct, the element of a List, or the key and
	// the value of a Map; the names of the last three are not used.
	Fields []Field
}

// Field is a column of the served file, or a member of one.
type Field struct {
	// Name is the name served.
	Name string
	// Source says what to look for in the file, at the same level.
	Source Source
	Type   Type
	// Required says that nulls are not allowed; a column that the file lacks is
	// then an error, unless Constant is set.
	Required bool
	// Constant, when set, is the value in all rows, whatever the file holds.
	Constant *Constant
}

// Source identifies a column of the file by its name, or by its field id.
type Source struct {
	Name string
	// ByID says that ID decides and Name does not.
	ByID bool
	ID   int32
}

// Constant is the value of a column whose type is no group: bool, int32 (also
// Int8, Int16 and Date), int64 (also Timestamp and TimestampNTZ, in
// microseconds), float32, float64, string, []byte, or *big.Int (Decimal,
// unscaled). Nil is null.
type Constant struct{ Value any }

// Wanted is how the file shall look.
type Wanted struct {
	// Columns are all columns, in order; what else the file has is left out.
	Columns []Field
	// Deleted are the positions of deleted rows; nil is none.
	Deleted *roaring64.Bitmap
}

// View is a served file.
type View struct {
	// Raw says that the file is served as it is; there are no segments.
	Raw bool
	// Size is in bytes; NumRows is without deleted rows.
	Size, NumRows int64
	// Segments follow each other without a gap, in order.
	Segments []Segment
}

// Segment is a range of a served file: a range of the raw file, bytes, a chunk
// to be made, or else zeros.
type Segment struct {
	// Offset and Length are in bytes of the served file.
	Offset, Length int64
	// Raw says that the range is of the raw file, from RawOffset on.
	Raw       bool
	RawOffset int64
	Bytes     []byte
	Chunk     *parquetchunk.Job
}
