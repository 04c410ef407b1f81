//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"errors"
	"fmt"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/deltafs/deltafs/internal/rowtext"
	"github.com/deltafs/deltafs/internal/sql"
)

// reader writes the values of a column, or of a part of one, as text. It reads
// the engine's vectors where they lie.
type reader struct {
	// column is the place in the statement's result.
	column int
	src    shape
	want   sql.Type
	// parts are those of want; of a struct some may be missing in the file.
	parts []*reader
	// child is the place among the children of a struct, key what stands in
	// front of it in JSON.
	child int
	key   string

	data  unsafe.Pointer
	valid unsafe.Pointer // nil when nothing is null
}

// newReader makes the reader of a column that lies as src and is wanted as want.
func newReader(src shape, want sql.Type) (*reader, error) {
	r := &reader{src: src, want: want}
	switch want.Name {
	case "struct":
		if src.id != duckdb.TypeStruct {
			break
		}
		for i, field := range want.Parts {
			part, err := structPart(src, field, i)
			if err != nil {
				return nil, err
			}
			r.parts = append(r.parts, part)
		}
		return r, nil
	case "array", "map":
		if src.id != duckdb.TypeList && want.Name == "array" || src.id != duckdb.TypeMap && want.Name == "map" ||
			len(src.parts) != len(want.Parts) {
			break
		}
		for i, field := range want.Parts {
			part, err := newReader(src.parts[i].src, field.Type)
			if err != nil {
				return nil, err
			}
			r.parts = append(r.parts, part)
		}
		return r, nil
	case "variant":
		if len(src.parts) != len(variantParts) {
			break
		}
		for i, name := range variantParts {
			part, err := structPart(src, sql.Column{Name: name, Type: sql.Type{Name: "binary"}}, i)
			if err != nil || part.child < 0 {
				return nil, errors.Join(errors.New("the file has a struct that is no variant"), err)
			}
			r.parts = append(r.parts, part)
		}
		return r, nil
	default:
		if exact(src, want) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("the file has %s where the table has %s", src, typeName(want))
}

// variantParts are the members of the struct in which a variant lies.
var variantParts = []string{"metadata", "value"}

// structPart makes the reader of a member; one that the file lacks is null.
func structPart(src shape, field sql.Column, i int) (*reader, error) {
	prefix := []byte{"{,"[min(i, 1)]}
	key := string(append(rowtext.AppendJSON(prefix, field.Name), ':'))
	for child, part := range src.parts {
		if found, ok := find(src.parts, field.Name); ok && found.name == part.name {
			r, err := newReader(part.src, field.Type)
			if err != nil {
				return nil, fmt.Errorf("in %s: %w", field.Name, err)
			}
			r.child, r.key = child, key
			return r, nil
		}
	}
	return &reader{want: sql.Type{Name: "void"}, child: -1, key: key}, nil
}

func typeName(t sql.Type) string {
	if t.Name == "decimal" {
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	}
	return t.Name
}

// exact reports whether every value that lies as src is a value of want.
func exact(src shape, want sql.Type) bool {
	integer := isInteger(src.id)
	switch want.Name {
	case "boolean":
		return src.id == duckdb.TypeBoolean
	case "byte", "short", "integer", "long":
		return integer // the table's writers have checked the range
	case "float":
		return src.id == duckdb.TypeFloat
	case "double":
		return src.id == duckdb.TypeDouble || src.id == duckdb.TypeFloat || integer && src.id != duckdb.TypeBigInt && src.id != duckdb.TypeUBigInt
	case "decimal":
		return integer || src.id == duckdb.TypeDecimal && src.scale <= want.Scale
	case "string", "binary":
		return src.id == duckdb.TypeVarchar || src.id == duckdb.TypeBlob
	case "date":
		return src.id == duckdb.TypeDate
	case "timestamp", "timestamp_ntz":
		switch src.id {
		case duckdb.TypeDate:
			return want.Name == "timestamp_ntz"
		case duckdb.TypeTimestamp, duckdb.TypeTimestampTZ, duckdb.TypeTimestampS, duckdb.TypeTimestampMS, duckdb.TypeTimestampNS:
			return true
		}
	case "void":
		return true
	}
	return false
}

func isInteger(id duckdb.Type) bool {
	switch id {
	case duckdb.TypeTinyInt, duckdb.TypeSmallInt, duckdb.TypeInteger, duckdb.TypeBigInt,
		duckdb.TypeUTinyInt, duckdb.TypeUSmallInt, duckdb.TypeUInteger, duckdb.TypeUBigInt:
		return true
	}
	return false
}

// attach makes the reader read a vector, as long as its chunk lives.
func (r *reader) attach(v duckdb.Vector) {
	if r.want.Name == "void" {
		return
	}
	r.data, r.valid = duckdb.VectorGetData(v), duckdb.VectorGetValidity(v)
	switch r.want.Name {
	case "struct", "variant":
		for _, part := range r.parts {
			if part.child >= 0 {
				part.attach(duckdb.StructVectorGetChild(v, duckdb.IdxT(part.child)))
			}
		}
	case "array":
		r.parts[0].attach(duckdb.ListVectorGetChild(v))
	case "map":
		entries := duckdb.ListVectorGetChild(v)
		r.parts[0].attach(duckdb.StructVectorGetChild(entries, 0))
		r.parts[1].attach(duckdb.StructVectorGetChild(entries, 1))
	}
}

// null reports whether a value is null.
func (r *reader) null(row int) bool {
	const bits = 64
	if r.want.Name == "void" {
		return true
	}
	return r.valid != nil && at[uint64](r.valid, row/bits)>>(row%bits)&1 == 0
}

// at is an element of an array.
func at[T any](data unsafe.Pointer, i int) T {
	return *(*T)(unsafe.Add(data, i*int(unsafe.Sizeof(*new(T)))))
}
