package parquetview

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/parquetfile"
)

var kindNames = [...]string{
	Boolean: "boolean", Int8: "byte", Int16: "short", Int32: "integer", Int64: "long", Float32: "float", Float64: "double",
	Decimal: "decimal", String: "string", Binary: "binary", Date: "date", Timestamp: "timestamp", TimestampNTZ: "timestamp_ntz",
	Void: "void", Variant: "variant", Struct: "struct", List: "array", Map: "map", Other: "a type of its own",
}

// String names the type as tables do.
func (t Type) String() string {
	if t.Kind < 0 || int(t.Kind) >= len(kindNames) {
		return fmt.Sprintf("type %d", int(t.Kind))
	}
	name := kindNames[t.Kind]
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("%s(%d,%d)", name, t.Precision, t.Scale)
	case Struct, List, Map:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = f.Type.String()
			if t.Kind == Struct {
				parts[i] = f.Name + ":" + parts[i]
			}
		}
		return name + "<" + strings.Join(parts, ",") + ">"
	}
	return name
}

// stored is how the values of a leaf are stored, and what they mean.
type stored struct {
	physical format.Type
	// length is set for FIXED_LEN_BYTE_ARRAY.
	length  int32
	logical parquetfile.Logical
}

// stored is how a file of our own stores the type, which must be no group.
func (t Type) stored() stored {
	switch t.Kind {
	case Boolean:
		return stored{physical: format.Boolean}
	case Int8:
		return stored{physical: format.Int32, logical: parquetfile.Logical{Kind: parquetfile.Int, Width: 8, Signed: true}}
	case Int16:
		return stored{physical: format.Int32, logical: parquetfile.Logical{Kind: parquetfile.Int, Width: 16, Signed: true}}
	case Int32:
		return stored{physical: format.Int32}
	case Int64:
		return stored{physical: format.Int64}
	case Float32:
		return stored{physical: format.Float}
	case Float64:
		return stored{physical: format.Double}
	case Decimal:
		s := stored{logical: parquetfile.Logical{
			Kind: parquetfile.Decimal, Precision: int32(t.Precision), Scale: int32(t.Scale),
		}}
		switch {
		case t.Precision <= 9:
			s.physical = format.Int32
		case t.Precision <= 18:
			s.physical = format.Int64
		default:
			s.physical, s.length = format.FixedLenByteArray, 16
		}
		return s
	case String:
		return stored{physical: format.ByteArray, logical: parquetfile.Logical{Kind: parquetfile.String}}
	case Binary:
		return stored{physical: format.ByteArray}
	case Date:
		return stored{physical: format.Int32, logical: parquetfile.Logical{Kind: parquetfile.Date}}
	case Timestamp, TimestampNTZ:
		return stored{physical: format.Int64, logical: parquetfile.Logical{
			Kind: parquetfile.Timestamp, Unit: parquetfile.Micros, UTC: t.Kind == Timestamp,
		}}
	}
	// What is always null is no Null, the logical type: DuckDB cannot pass over
	// values of such a column.
	return stored{physical: format.Int32}
}

// converted is the deprecated spelling of a logical type, or -1.
func converted(l parquetfile.Logical) int32 {
	switch l.Kind {
	case parquetfile.String:
		return 0
	case parquetfile.Map:
		return 1
	case parquetfile.List:
		return 3
	case parquetfile.Decimal:
		return 5
	case parquetfile.Date:
		return 6
	case parquetfile.Timestamp:
		if l.UTC {
			return 10
		}
	case parquetfile.Int:
		switch l.Width {
		case 8:
			return 15
		case 16:
			return 16
		}
	}
	return -1
}

// annotate appends the fields of a schema element that say what it means.
func annotate(w *structWriter, l parquetfile.Logical) {
	if l.Kind == parquetfile.None {
		return
	}
	if c := converted(l); c >= 0 {
		w.i32(6, c)
	}
	if l.Kind == parquetfile.Decimal {
		w.i32(7, l.Scale)
		w.i32(8, l.Precision)
	}
	empty := func(*structWriter) {}
	w.structure(10, func(w *structWriter) {
		switch l.Kind {
		case parquetfile.String:
			w.structure(1, empty)
		case parquetfile.Map:
			w.structure(2, empty)
		case parquetfile.List:
			w.structure(3, empty)
		case parquetfile.Decimal:
			w.structure(5, func(w *structWriter) {
				w.i32(1, l.Scale)
				w.i32(2, l.Precision)
			})
		case parquetfile.Date:
			w.structure(6, empty)
		case parquetfile.Timestamp:
			w.structure(8, func(w *structWriter) {
				w.bool(1, l.UTC)
				w.structure(2, func(w *structWriter) { w.structure(int16(l.Unit), empty) })
			})
		case parquetfile.Int:
			w.structure(10, func(w *structWriter) {
				w.i8(1, l.Width)
				w.bool(2, l.Signed)
			})
		}
	})
}
