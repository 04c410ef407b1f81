//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"fmt"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// shape is the type that a column of a file, or a part of it, has in the engine.
type shape struct {
	id duckdb.Type
	// store is how the values of a decimal lie in memory; else it is id.
	store        duckdb.Type
	width, scale int
	parts        []columnOf
}

// describe takes a type apart.
func describe(t duckdb.LogicalType) shape {
	s := shape{id: duckdb.GetTypeId(t)}
	s.store = s.id
	part := func(name string, inner duckdb.LogicalType) {
		s.parts = append(s.parts, columnOf{name, describe(inner)})
		duckdb.DestroyLogicalType(&inner)
	}
	switch s.id {
	case duckdb.TypeDecimal:
		s.store = duckdb.DecimalInternalType(t)
		s.width, s.scale = int(duckdb.DecimalWidth(t)), int(duckdb.DecimalScale(t))
	case duckdb.TypeList:
		part("", duckdb.ListTypeChildType(t))
	case duckdb.TypeMap:
		part("key", duckdb.MapTypeKeyType(t))
		part("value", duckdb.MapTypeValueType(t))
	case duckdb.TypeStruct:
		for i := range duckdb.StructTypeChildCount(t) {
			part(duckdb.StructTypeChildName(t, i), duckdb.StructTypeChildType(t, i))
		}
	}
	return s
}

// String names the type in messages.
func (s shape) String() string {
	names := map[duckdb.Type]string{
		duckdb.TypeBoolean: "boolean", duckdb.TypeTinyInt: "int8", duckdb.TypeSmallInt: "int16",
		duckdb.TypeInteger: "int32", duckdb.TypeBigInt: "int64", duckdb.TypeUTinyInt: "uint8",
		duckdb.TypeUSmallInt: "uint16", duckdb.TypeUInteger: "uint32", duckdb.TypeUBigInt: "uint64",
		duckdb.TypeFloat: "float", duckdb.TypeDouble: "double", duckdb.TypeVarchar: "string",
		duckdb.TypeBlob: "binary", duckdb.TypeDate: "date", duckdb.TypeTimestamp: "timestamp without time zone",
		duckdb.TypeTimestampS: "timestamp of seconds", duckdb.TypeTimestampMS: "timestamp of milliseconds",
		duckdb.TypeTimestampNS: "timestamp of nanoseconds", duckdb.TypeTimestampTZ: "timestamp",
		duckdb.TypeTime: "time", duckdb.TypeInterval: "interval", duckdb.TypeUUID: "UUID",
		duckdb.TypeVariant: "an annotated variant",
		duckdb.TypeList:    "list", duckdb.TypeMap: "map", duckdb.TypeStruct: "struct",
	}
	if s.id == duckdb.TypeDecimal {
		return fmt.Sprintf("decimal(%d,%d)", s.width, s.scale)
	}
	if name, ok := names[s.id]; ok {
		return name
	}
	return fmt.Sprintf("type %d of the engine", s.id)
}
