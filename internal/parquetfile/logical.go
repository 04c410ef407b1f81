package parquetfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Kind is the kind of a logical type.
type Kind int

// The kinds of logical types. Unknown is one that this package does not know.
const (
	None Kind = iota
	String
	Enum
	JSON
	BSON
	UUID
	Decimal
	Date
	Time
	Timestamp
	Int
	Null
	Float16
	Interval
	List
	Map
	Variant
	Geometry
	Geography
	Unknown
)

// Unit is the unit of a Time or Timestamp.
type Unit int

// The units of Time and Timestamp.
const (
	Millis Unit = iota + 1
	Micros
	Nanos
)

// Logical is a logical type, whether the file spells it as a logical or as a
// converted type.
type Logical struct {
	Kind Kind
	// Precision and Scale are set for Decimal.
	Precision, Scale int32
	// Unit and UTC are set for Time and Timestamp; UTC means adjusted to UTC.
	Unit Unit
	UTC  bool
	// Width in bits and Signed are set for Int.
	Width  int8
	Signed bool
}

var kindNames = [...]string{
	"", "STRING", "ENUM", "JSON", "BSON", "UUID", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "INT", "NULL",
	"FLOAT16", "INTERVAL", "LIST", "MAP", "VARIANT", "GEOMETRY", "GEOGRAPHY", "UNKNOWN",
}

// String spells the type as the Parquet documentation does.
func (l Logical) String() string {
	name := kindNames[l.Kind]
	switch l.Kind {
	case Decimal:
		return fmt.Sprintf("%s(%d,%d)", name, l.Precision, l.Scale)
	case Time, Timestamp:
		unit := [...]string{"?", "MILLIS", "MICROS", "NANOS"}[l.Unit]
		return fmt.Sprintf("%s(%s,utc=%t)", name, unit, l.UTC)
	case Int:
		return fmt.Sprintf("%s(%d,signed=%t)", name, l.Width, l.Signed)
	}
	return name
}

// logicalKinds are the members of the union LogicalType by field id.
var logicalKinds = [...]Kind{
	1: String, 2: Map, 3: List, 4: Enum, 5: Decimal, 6: Date, 7: Time, 8: Timestamp, 10: Int, 11: Null,
	12: JSON, 13: BSON, 14: UUID, 15: Float16, 16: Variant, 17: Geometry, 18: Geography,
}

func (d *decoder) logicalType(t thrift.Type) (l Logical) {
	d.nested(t, func(id int16, t thrift.Type) {
		l = Logical{Kind: Unknown}
		if id > 0 && int(id) < len(logicalKinds) && logicalKinds[id] != None {
			l.Kind = logicalKinds[id]
		}
		switch l.Kind {
		case Decimal:
			d.nested(t, func(id int16, t thrift.Type) {
				switch id {
				case 1:
					l.Scale = d.int32(t)
				case 2:
					l.Precision = d.int32(t)
				default:
					d.skip(t)
				}
			})
		case Time, Timestamp:
			d.nested(t, func(id int16, t thrift.Type) {
				switch id {
				case 1:
					l.UTC = d.bool(t)
				case 2:
					d.nested(t, func(id int16, t thrift.Type) {
						if id >= 1 && id <= 3 {
							l.Unit = Unit(id)
						}
						d.skip(t)
					})
				default:
					d.skip(t)
				}
			})
		case Int:
			d.nested(t, func(id int16, t thrift.Type) {
				switch id {
				case 1:
					l.Width = d.int8(t)
				case 2:
					l.Signed = d.bool(t)
				default:
					d.skip(t)
				}
			})
		default:
			d.skip(t)
		}
	})
	return l
}

// fromConverted is the logical type that a converted type stands for (the
// compatibility rules of LogicalTypes.md).
func fromConverted(e element) Logical {
	switch deprecated.ConvertedType(e.converted) {
	case deprecated.UTF8:
		return Logical{Kind: String}
	case deprecated.Map, deprecated.MapKeyValue:
		return Logical{Kind: Map}
	case deprecated.List:
		return Logical{Kind: List}
	case deprecated.Enum:
		return Logical{Kind: Enum}
	case deprecated.Decimal:
		return Logical{Kind: Decimal, Precision: e.precision, Scale: e.scale}
	case deprecated.Date:
		return Logical{Kind: Date}
	case deprecated.TimeMillis:
		return Logical{Kind: Time, Unit: Millis, UTC: true}
	case deprecated.TimeMicros:
		return Logical{Kind: Time, Unit: Micros, UTC: true}
	case deprecated.TimestampMillis:
		return Logical{Kind: Timestamp, Unit: Millis, UTC: true}
	case deprecated.TimestampMicros:
		return Logical{Kind: Timestamp, Unit: Micros, UTC: true}
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return Logical{Kind: Int, Width: 8 << (e.converted - int32(deprecated.Uint8))}
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return Logical{Kind: Int, Width: 8 << (e.converted - int32(deprecated.Int8)), Signed: true}
	case deprecated.Json:
		return Logical{Kind: JSON}
	case deprecated.Bson:
		return Logical{Kind: BSON}
	case deprecated.Interval:
		return Logical{Kind: Interval}
	}
	return Logical{Kind: Unknown}
}

// known reports whether t is a physical type of the format.
func known(t format.Type) bool { return t >= format.Boolean && t <= format.FixedLenByteArray }
