package parquetview

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// Field ids of Statistics, and of the Statistics in ColumnMetaData.
const (
	statNulls    = 3
	statMax      = 5
	statMin      = 6
	statMaxExact = 7
	statMinExact = 8

	metaStatistics = 12
)

// constantStatistics appends the statistics of rows equal values, or of nulls.
// What has more than one order, or is long, has no bounds.
func constantStatistics(w *structWriter, c *column, rows int64) {
	const long = 64
	w.structure(metaStatistics, func(w *structWriter) {
		if c.constant == nil {
			w.i64(statNulls, rows)
			return
		}
		w.i64(statNulls, 0)
		if len(c.constant) > long || c.kind == Float32 || c.kind == Float64 {
			return
		}
		w.bytes(statMax, c.constant)
		w.bytes(statMin, c.constant)
		w.bool(statMaxExact, true)
		w.bool(statMinExact, true)
	})
}

// renderedStatistics appends the statistics of a chunk that was converted, or
// lost rows. Where rows were lost the bounds are marked as no values, and nothing
// is counted. It returns nil if there are none.
func renderedStatistics(g *part, c *column) func(w *structWriter) {
	lost := g.left < g.rows
	var nulls, lower, upper, lowerExact, upperExact *parquetfile.Field
	source := g.chunks[c.source.Column].statistics
	for i, f := range source {
		switch f.ID {
		case statNulls:
			nulls = &source[i]
		case statMax:
			upper = &source[i]
		case statMin:
			lower = &source[i]
		case statMaxExact:
			upperExact = &source[i]
		case statMinExact:
			lowerExact = &source[i]
		}
	}
	var low, high []byte
	if lower != nil && upper != nil {
		low, high = convertBound(c, lower.Bytes()), convertBound(c, upper.Bytes())
	}
	bounds := low != nil && high != nil
	if !bounds && (nulls == nil || lost) {
		return nil
	}
	return func(w *structWriter) {
		w.structure(metaStatistics, func(w *structWriter) {
			if nulls != nil && !lost {
				w.raw(statNulls, nulls.Type, nulls.Value)
			}
			if !bounds {
				return
			}
			w.bytes(statMax, high)
			w.bytes(statMin, low)
			exact(w, statMaxExact, upperExact, lost)
			exact(w, statMinExact, lowerExact, lost)
		})
	}
}

func exact(w *structWriter, id int16, source *parquetfile.Field, lost bool) {
	if lost {
		w.bool(id, false)
	} else if source != nil {
		w.raw(id, source.Type, source.Value)
	}
}

// convertBound converts a bound of a column as its values are; nil means that
// there is none. Decimals that are bytes have none: writers get their order
// wrong.
func convertBound(c *column, b []byte) []byte {
	n := c.source
	width := map[format.Type]int{format.Int32: 4, format.Int64: 8, format.Float: 4, format.Double: 8, format.Boolean: 1}[n.Physical]
	if width != len(b) && width > 0 || n.Physical == format.Int96 ||
		width == 0 && n.Logical.Kind == parquetfile.Decimal {
		return nil
	}
	if c.convert.Kind == parquetchunk.Keep {
		return append([]byte{}, b...)
	}
	if n.Physical == format.Float && c.convert.Kind == parquetchunk.ToDouble {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		if math.IsNaN(v) {
			return nil
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	}
	var v int64
	switch n.Physical {
	case format.Int32:
		v = int64(int32(binary.LittleEndian.Uint32(b)))
	case format.Int64:
		v = int64(binary.LittleEndian.Uint64(b))
	default:
		return nil
	}
	switch c.convert.Kind {
	case parquetchunk.ToInt64:
		return scaled(v, 1)
	case parquetchunk.ToDouble:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(v)))
	case parquetchunk.DateToMicros:
		return scaled(v, 24*60*60*1_000_000)
	case parquetchunk.MillisToMicros:
		return scaled(v, 1000)
	case parquetchunk.NanosToMicros:
		floor := v / 1000
		if v%1000 < 0 {
			floor--
		}
		return scaled(floor, 1)
	case parquetchunk.ToDecimal:
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.convert.Scale)), nil)
		b, err := decimalBytes(c.stored, power.Mul(power, big.NewInt(v)))
		if err != nil {
			return nil
		}
		return b
	}
	return nil
}

// scaled encodes v times factor, or returns nil if that is no int64.
func scaled(v, factor int64) []byte {
	if v > math.MaxInt64/factor || v < math.MinInt64/factor {
		return nil
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(v*factor))
}
