package snapshot

import (
	"math/big"
	"strconv"

	"github.com/deltafs/deltafs/internal/rowtext"
	"github.com/deltafs/deltafs/internal/sql"
)

// constantText spells a partition value, as partitionConstant returns it, like a
// value of a data file.
func constantText(t Type, value any) sql.Constant {
	const single, double = 32, 64
	var text []byte
	switch v := value.(type) {
	case nil:
		return sql.Constant{Null: true}
	case bool:
		text = strconv.AppendBool(nil, v)
	case int32:
		text = strconv.AppendInt(nil, int64(v), 10)
		if t.String() == "date" {
			text = rowtext.AppendDate(nil, int64(v))
		}
	case int64:
		switch t.String() {
		case "timestamp", "timestamp_ntz":
			text = rowtext.AppendTimestamp(nil, v, t.String() == "timestamp")
		default:
			text = strconv.AppendInt(nil, v, 10)
		}
	case float32:
		text = rowtext.AppendFloat(nil, float64(v), single)
	case float64:
		text = rowtext.AppendFloat(nil, v, double)
	case string:
		text = []byte(v)
	case []byte:
		text = rowtext.AppendBase64(nil, v)
	case *big.Int:
		text = rowtext.AppendDecimalBig(nil, v, t.(*Primitive).Scale)
	}
	return sql.Constant{Text: string(text)}
}
