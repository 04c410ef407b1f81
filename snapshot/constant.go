package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetview"
)

// fill gives the partition columns among the columns the values of a file.
func (n *incarnation) fill(ctx context.Context, f File, filled []filledColumn, columns []parquetview.Field) error {
	values, err := n.partitionValues(ctx, f, filled)
	if err != nil {
		return err
	}
	for i, c := range filled {
		value, err := partitionConstant(c.field.Type, values[i])
		if err != nil {
			return fault.Wrap(ErrBroken, err, "the partition value %q is no %s", *values[i], c.field.Type).
				InFile(f.Path).OnColumn(c.field.Name)
		}
		columns[c.column].Constant = &parquetview.Constant{Value: value}
	}
	return nil
}

// partitionValues returns a file's value for each column. Its directory has
// them, which costs nothing to know, unless one was too long for a name, or is
// shown by the name that stands for null, which is a value as well.
func (n *incarnation) partitionValues(ctx context.Context, f File, filled []filledColumn) ([]*string, error) {
	out := make([]*string, len(filled))
	parts := strings.Split(f.Dir, "/")
	fromDir := len(parts) == filled[0].partitions
	for i := 0; fromDir && i < len(filled); i++ {
		part := parts[filled[i].partition]
		_, text, ok := strings.Cut(part, "=")
		if fromDir = ok && text != nullPartition && !isShortenedPart(part); fromDir {
			text = UnescapeHive(text)
			out[i] = &text
		}
	}
	if fromDir {
		return out, nil
	}
	adds, err := n.adds(ctx, []File{f})
	if err != nil {
		return nil, err
	}
	for i, c := range filled {
		out[i] = partitionValue(c.field, adds[0].PartitionValues)
	}
	return out, nil
}

// partitionConstant reads a partition value as the type that the column has
// (protocol section "Partition Value Serialization"), whoever wrote it: null and
// the empty string are null, and a timestamp without a zone is in UTC.
func partitionConstant(t Type, text *string) (any, error) {
	p, ok := t.(*Primitive)
	if !ok {
		return nil, errors.New("a nested type cannot partition a table")
	}
	if text == nil || *text == "" {
		return nil, nil
	}
	switch p.Name {
	case "string":
		return *text, nil
	case "binary":
		return []byte(*text), nil
	}
	return parseConstant(p, strings.TrimSpace(*text))
}

func parseConstant(p *Primitive, text string) (any, error) {
	switch p.Name {
	case "byte":
		return parseInt32(text, 8)
	case "short":
		return parseInt32(text, 16)
	case "integer":
		return parseInt32(text, 32)
	case "long":
		return strconv.ParseInt(text, 10, 64)
	case "float":
		v, err := strconv.ParseFloat(text, 32)
		return float32(v), err
	case "double":
		return strconv.ParseFloat(text, 64)
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "false":
			return strings.EqualFold(text, "true"), nil
		}
		return nil, errors.New("neither true nor false")
	case "decimal":
		return parseDecimal(text, p)
	case "date":
		t, err := time.Parse(time.DateOnly, text)
		const day = 24 * 60 * 60
		return int32(t.Unix() / day), err
	case "timestamp", "timestamp_ntz":
		t, _, err := parseTime(text, time.UTC)
		return t.UnixMicro(), err
	case "void":
		return nil, nil
	}
	return nil, fmt.Errorf("the type %s cannot partition a table", p)
}

func parseInt32(text string, bits int) (any, error) {
	n, err := strconv.ParseInt(text, 10, bits)
	return int32(n), err
}

// parseDecimal returns the unscaled number.
func parseDecimal(text string, p *Primitive) (any, error) {
	plain, err := serializeDecimal(text, p.Precision, p.Scale)
	if err != nil {
		return nil, err
	}
	n, ok := new(big.Int).SetString(strings.Replace(plain, ".", "", 1), 10)
	if !ok {
		return nil, errors.New("not a decimal number")
	}
	return n, nil
}
