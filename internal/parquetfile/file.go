package parquetfile

import (
	"errors"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// Sentinels of the package, wrapped in *fault.Error.
var (
	// ErrNotYet: the tail does not decode; the file might still be growing.
	ErrNotYet = errors.New("not a complete Parquet file yet")
	// ErrBroken: the footer decodes and the rest contradicts it.
	ErrBroken = errors.New("broken Parquet file")
	// ErrUnreadable: the values of a column cannot be read.
	ErrUnreadable = errors.New("column cannot be read")
)

// File is a complete Parquet file as its footer describes it.
type File struct {
	// Size is in bytes.
	Size    int64
	NumRows int64
	// CreatedBy names the writer; it may be empty.
	CreatedBy string
	// KeyValues is the footer's key-value metadata.
	KeyValues map[string]string
	// Root is the schema; its children are the columns.
	Root      *Node
	RowGroups []RowGroup

	columns []*Node
}

// Columns returns the leaves of the schema in the order of the chunks.
func (f *File) Columns() []*Node { return f.columns }

// Codecs returns the compression codecs in use, in ascending order.
func (f *File) Codecs() []format.CompressionCodec {
	var codecs []format.CompressionCodec
	for _, g := range f.RowGroups {
		for _, c := range g.Chunks {
			if i, found := slices.BinarySearch(codecs, c.Codec); !found {
				codecs = slices.Insert(codecs, i, c.Codec)
			}
		}
	}
	return codecs
}

// RowGroup is one row group; Chunks are in the order of File.Columns.
type RowGroup struct {
	NumRows int64
	Chunks  []Chunk
}

// Chunk is one column of a row group.
type Chunk struct {
	Codec format.CompressionCodec
	// NumValues counts the values with nulls, and an entry for every empty or
	// null list.
	NumValues int64

	physical                 format.Type
	path                     string
	size                     int64
	dataPage, dictionaryPage int64
	fileOffset               int64
	offsetIndex, columnIndex span
	bloom                    span
	stats                    statistics
	seen                     fieldSet

	hasMetaData, external, encrypted bool
	// largest is the largest page, in bytes as they are claimed to unpack to
	// and in bytes as they lie; mostValues is the most values of a page.
	largest    int64
	mostValues int32
	// skipped says that the chunk holds index pages, which carry no values.
	skipped bool
}

// span is a range of the file, in bytes.
type span struct{ offset, length int64 }

// Node is an element of the schema: a group, or a leaf with values.
type Node struct {
	Name string
	// Path is the way from the root, without the root.
	Path       []string
	Repetition format.FieldRepetitionType
	Logical    Logical
	// Children is nil for a leaf.
	Children []*Node
	// Physical is the type of a leaf; Length is in bytes and set for
	// FIXED_LEN_BYTE_ARRAY.
	Physical format.Type
	Length   int32
	// Column is the index of a leaf in File.Columns, -1 for a group.
	Column int
	// ID is the field id, if the node is Identified.
	ID         int32
	Identified bool
	// Place is the node's place in the list that the schema is stored as.
	Place int
	// MaxDefinition is the definition level of an entry in which the node is
	// there and not null; MaxRepetition is 0 outside of lists and maps.
	MaxDefinition, MaxRepetition int

	typeDefinedOrder bool
}

// Leaf reports whether the node holds values.
func (n *Node) Leaf() bool { return n.Column >= 0 }

// Optional and Repeated report the node's repetition.
func (n *Node) Optional() bool { return n.Repetition == format.Optional }

// Repeated reports whether the node is repeated.
func (n *Node) Repeated() bool { return n.Repetition == format.Repeated }

// Leaves returns the leaves at or below the node.
func (n *Node) Leaves() []*Node {
	if n.Leaf() {
		return []*Node{n}
	}
	var leaves []*Node
	for _, c := range n.Children {
		leaves = append(leaves, c.Leaves()...)
	}
	return leaves
}

// String spells the node's type as the Parquet documentation does.
func (n *Node) String() string {
	name := "group"
	if n.Leaf() {
		name = n.Physical.String()
	}
	if l := n.Logical.String(); l != "" {
		name += " " + l
	}
	return name
}

// DataSize is the size of a leaf's data in the file, in bytes as stored.
func (f *File) DataSize(leaf *Node) (n int64) {
	for _, g := range f.RowGroups {
		n += g.Chunks[leaf.Column].size
	}
	return n
}

// Cheapest returns the leaf at or below n with the least data: every one of
// them tells where n is null.
func (f *File) Cheapest(n *Node) *Node {
	leaves := n.Leaves()
	best := leaves[0]
	for _, l := range leaves[1:] {
		if f.DataSize(l) < f.DataSize(best) {
			best = l
		}
	}
	return best
}
