package writer

import (
	"bytes"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/parquet-go/parquet-go/format"
)

// checkPartitions compares the partition columns in the file with the
// directory it was dropped into.
func (m *matcher) checkPartitions() error {
	for _, p := range m.partitions {
		want, err := normalPartition(p.field, m.target.partitionValues[m.partitionColumn(p.field.Name)])
		if err != nil {
			return fault.Wrap(ErrMisfit, err, "the directory's value is not one of the column's type").OnColumn(p.field.Name)
		}
		var last parquetfile.Value
		var seen bool
		err = m.scan.Each(m.ctx, p.node, func(v parquetfile.Value) error {
			if seen && sameValue(v, last) {
				return nil
			}
			last, seen = v.Clone(), true
			got, err := partitionText(p.field, p.node, v)
			if err != nil {
				return fault.Wrap(ErrMisfit, err, "a value that cannot be a partition's").OnColumn(p.field.Name)
			}
			if !equalText(got, want) {
				return fault.New(ErrMisfit, "the file has rows of %s, the directory is that of %s",
					partitionName(p.field, got), partitionName(p.field, want)).OnColumn(p.field.Name).
					WithHint("put these rows into a file in %s, or leave the column out", partitionName(p.field, got))
			}
			return nil
		})
		if errors.Is(err, parquetfile.ErrUnreadable) {
			return fault.Wrap(ErrMisfit, err, "the file holds the partition column and its values cannot be compared with the directory's").
				OnColumn(p.field.Name).WithHint("leave the column out of the file")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// partitionColumn is a column's spelling in partitionColumns.
func (m *matcher) partitionColumn(field string) string {
	for _, column := range m.target.partitionColumns {
		if strings.EqualFold(column, field) {
			return column
		}
	}
	return field
}

func sameValue(a, b parquetfile.Value) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	return bytes.Equal(a.Bytes(), b.Bytes())
}

func equalText(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// partitionName spells a value as its directory does.
func partitionName(f snapshot.Field, value *string) string {
	return snapshot.PartitionDir([]snapshot.Field{f}, map[string]*string{f.Name: value})
}

// normalPartition brings a value into Delta's serialisation; the empty string
// is null (protocol section "Partition Value Serialization").
func normalPartition(f snapshot.Field, value *string) (*string, error) {
	if value == nil || *value == "" {
		return nil, nil
	}
	text, err := snapshot.SerializePartition(f.Type, *value)
	if err != nil {
		return nil, err
	}
	return &text, nil
}

// partitionText is a value from a file in Delta's serialisation. The node's
// type is known to fit the field's.
func partitionText(f snapshot.Field, node *parquetfile.Node, v parquetfile.Value) (*string, error) {
	if v.IsNull() {
		return nil, nil
	}
	p, ok := f.Type.(*snapshot.Primitive)
	if !ok {
		return nil, errors.New("a nested type cannot partition a table")
	}
	var text string
	switch p.Name {
	case "string", "binary":
		text = string(v.ByteArray())
	case "boolean":
		text = strconv.FormatBool(v.Boolean())
	case "float":
		text = strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
	case "double":
		text = strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case "date":
		text = time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly)
	case "timestamp", "timestamp_ntz":
		micros, ok := timestampMicros(node, v)
		if !ok {
			return nil, errors.New("the timestamp is out of range")
		}
		text = time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.000000")
	case "decimal":
		text = decimalText(unscaled(node, v), p.Scale)
	default:
		text = decimalText(unscaled(node, v), 0)
	}
	return normalPartition(f, &text)
}

// timestampMicros is a timestamp's value in microseconds.
func timestampMicros(node *parquetfile.Node, v parquetfile.Value) (int64, bool) {
	if node.Physical == format.Int96 {
		return parquetfile.Int96Micros(v)
	}
	return v.Int64(), true
}

// unscaled is an integer's value or a decimal's unscaled value.
func unscaled(node *parquetfile.Node, v parquetfile.Value) *big.Int {
	switch node.Physical {
	case format.Int32:
		return big.NewInt(int64(v.Int32()))
	case format.Int64:
		return big.NewInt(v.Int64())
	}
	return parquetfile.BigEndian(v.ByteArray())
}
