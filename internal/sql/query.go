package sql

import (
	"errors"
	"iter"
	"os"
)

// Sentinels of the package, wrapped in *fault.Error.
var (
	// ErrUnavailable: this program was built without the engine, or the child
	// process cannot be started.
	ErrUnavailable = errors.New("the SQL engine is not available")
	// ErrCrashed: the child process ended in the middle of the query.
	ErrCrashed = errors.New("the SQL engine has crashed")
	// ErrFailed: the engine could not do it; a file may be damaged.
	ErrFailed = errors.New("the SQL engine failed")
)

// Format is how rows are written.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

// Query asks for the rows of files, in the order of the files and of the rows in
// them.
type Query struct {
	Format Format `json:"format"`
	// Columns are the columns of the result, in order.
	Columns []Column `json:"columns"`
	// Header puts the names in front of CSV.
	Header bool `json:"header,omitempty"`
	// Null is how null looks in CSV.
	Null string `json:"null,omitempty"`
	// Limit is the largest number of rows; negative is no limit.
	Limit int64 `json:"limit"`
}

// Column is a column of the result, or a part of a nested one.
type Column struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
}

// Type is a type by its name in a Delta schema: "long", "decimal", "struct",
// "array", "map" and so on.
type Type struct {
	Name string `json:"name"`
	// Precision and Scale belong to "decimal".
	Precision int `json:"precision,omitempty"`
	Scale     int `json:"scale,omitempty"`
	// Parts are the members of a struct, the element of an array, or key and
	// value of a map; the names of the last three are not used.
	Parts []Column `json:"parts,omitempty"`
}

// File is a Parquet file of a query.
type File struct {
	// File is open for reading. Who takes the File closes it.
	File *os.File `json:"-"`
	// Name is how messages call it.
	Name string `json:"name"`
	// Constants are the columns that have one value in all rows, whatever the
	// file holds, by their place in Query.Columns.
	Constants map[int]Constant `json:"constants,omitempty"`
}

// Constant is one value for all rows, spelled as package rowtext does.
type Constant struct {
	Null bool   `json:"null,omitempty"`
	Text string `json:"text,omitempty"`
}

// Files yields the files of a query. It is asked for the next one when that is
// about to be read.
type Files = iter.Seq2[File, error]
