package parquetview

import (
	"encoding/binary"
	"math"
	"math/big"
	"strings"

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

// convertedStatistics appends the statistics of a chunk whose values are
// converted, or returns nil if there are none.
//
// A chunk that lost rows has none: readers take bounds for the extreme values
// even where they are marked as no values, and an absent count of nulls for 0.
func convertedStatistics(g *part, c *column) func(w *structWriter) {
	if g.left < g.rows {
		return nil
	}
	var fields [statMinExact + 1]*parquetfile.Field
	source := g.chunks[c.source.Column].statistics
	for i, f := range source {
		if f.ID > 0 && int(f.ID) < len(fields) {
			fields[f.ID] = &source[i]
		}
	}
	var lower, upper []byte
	if fields[statMin] != nil && fields[statMax] != nil {
		lower, upper = convertBound(c, fields[statMin].Bytes()), convertBound(c, fields[statMax].Bytes())
	}
	if lower == nil || upper == nil {
		lower, upper = nil, nil
		fields[statMinExact], fields[statMaxExact] = nil, nil
	}
	if lower == nil && fields[statNulls] == nil {
		return nil
	}
	return func(w *structWriter) {
		w.structure(metaStatistics, func(w *structWriter) {
			for id, f := range fields {
				switch {
				case id == statMax && upper != nil:
					w.bytes(statMax, upper)
				case id == statMin && lower != nil:
					w.bytes(statMin, lower)
				case f != nil && (id == statNulls || id == statMaxExact || id == statMinExact):
					w.raw(int16(id), f.Type, f.Value)
				}
			}
		})
	}
}

// wrongBounds says that the bounds of a column are not to be trusted: parquet-go
// compares decimals that are bytes as if they had no sign.
func wrongBounds(foot *parquetfile.Footer, leaf *parquetfile.Node) bool {
	return leaf.Logical.Kind == parquetfile.Decimal &&
		(leaf.Physical == format.FixedLenByteArray || leaf.Physical == format.ByteArray) &&
		strings.Contains(foot.CreatedBy, "parquet-go")
}

// convertBound converts a bound of a column as its values are, which keeps their
// order; nil means that it has none. Values that are bytes have none: writers get
// the order of such decimals wrong.
func convertBound(c *column, b []byte) []byte {
	n := c.source
	if len(b) != map[format.Type]int{format.Int32: 4, format.Int64: 8, format.Float: 4}[n.Physical] {
		return nil
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
