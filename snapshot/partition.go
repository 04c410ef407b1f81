package snapshot

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deltafs/deltafs/internal/fault"
)

// ErrPartition: the name is not a valid directory of the partition column.
var ErrPartition = errors.New("not a partition directory")

// ParsePartition parses one "column=value" directory name against the wanted
// partition field: the column matches case-insensitively, the value must be
// valid for the field's type and is returned in Delta's serialisation (nil for
// null). Timestamps without a zone are UTC, whatever the zone of the process.
// Errors wrap ErrPartition.
func ParsePartition(f Field, name string) (value *string, err error) {
	column, text, ok := strings.Cut(name, "=")
	if !ok || !strings.EqualFold(UnescapeHive(column), f.Name) {
		return nil, fault.New(ErrPartition, "%q is not a directory of partition column %q", name, f.Name).
			OnColumn(f.Name).WithHint("name it %s=<value>", EscapeHive(f.Name))
	}
	if isShortenedPart(name) {
		return nil, fault.New(ErrPartition, "%q is a shortened name and its value is not known", name).OnColumn(f.Name)
	}
	if text == "" || text == nullPartition {
		return nil, nil
	}
	text = UnescapeHive(text)
	normal, err := SerializePartition(f.Type, text)
	if err != nil {
		return nil, fault.Wrap(ErrPartition, err, "%q is no value of type %s", text, f.Type).OnColumn(f.Name)
	}
	return &normal, nil
}

// SerializePartition returns text in Delta's serialisation of partition
// values of the type (protocol section "Partition Value Serialization").
func SerializePartition(t Type, text string) (string, error) {
	p, ok := t.(*Primitive)
	if !ok {
		return "", errors.New("a nested type cannot partition a table")
	}
	switch p.Name {
	case "string", "binary":
		if !utf8.ValidString(text) {
			return "", errors.New("not valid UTF-8")
		}
		return text, nil
	case "byte":
		return serializeInt(text, 8)
	case "short":
		return serializeInt(text, 16)
	case "integer":
		return serializeInt(text, 32)
	case "long":
		return serializeInt(text, 64)
	case "float":
		return serializeFloat(text, 32)
	case "double":
		return serializeFloat(text, 64)
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "false":
			return strings.ToLower(text), nil
		}
		return "", errors.New("neither true nor false")
	case "decimal":
		return serializeDecimal(text, p.Precision, p.Scale)
	case "date":
		return serializeDate(text)
	case "timestamp":
		return serializeTimestamp(text, "2006-01-02T15:04:05.000000Z")
	case "timestamp_ntz":
		return serializeTimestampNTZ(text)
	}
	return "", errors.New("the type cannot partition a table")
}

func serializeInt(text string, bits int) (string, error) {
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	return strconv.FormatInt(n, 10), nil
}

// serializeFloat writes numbers as Java's Double.toString does, because
// engines compare partition values as text.
func serializeFloat(text string, bits int) (string, error) {
	v, err := strconv.ParseFloat(text, bits)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "NaN", nil
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strconv.FormatFloat(v, 'f', -1, bits), "+") + "inity", nil
	case v == 0 || (abs >= 1e-3 && abs < 1e7):
		out := strconv.FormatFloat(v, 'f', -1, bits)
		if !strings.Contains(out, ".") {
			out += ".0"
		}
		return out, nil
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'E', -1, bits), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, err := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n), err
}

func serializeDecimal(text string, precision, scale int) (string, error) {
	// A short text can spell a number of any size, which must not be built.
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if n, err := strconv.Atoi(text[i+1:]); err != nil || n < -1000 || n > 1000 {
			return "", errors.New("exponent out of range")
		}
	}
	if strings.ContainsAny(text, "/_xXpPbBoO") {
		return "", errors.New("not a decimal number")
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return "", errors.New("not a decimal number")
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(power))
	if !scaled.IsInt() {
		return "", errors.New("more fraction digits than the type has")
	}
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	if scaled.Num().CmpAbs(limit) >= 0 {
		return "", errors.New("more digits than the type has")
	}
	return r.FloatString(scale), nil
}

func serializeDate(text string) (string, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return "", errors.New("not a date like 2024-05-01")
	}
	return t.Format(time.DateOnly), nil
}

func serializeTimestamp(text, layout string) (string, error) {
	t, _, err := parseTime(text, time.UTC)
	if err != nil {
		return "", err
	}
	if t.Nanosecond()%1000 != 0 {
		return "", errors.New("finer than microseconds")
	}
	return t.UTC().Format(layout), nil
}

func serializeTimestampNTZ(text string) (string, error) {
	if _, zoned, err := parseTime(text, time.UTC); err == nil && zoned {
		return "", errors.New("a timestamp_ntz has no zone")
	}
	out, err := serializeTimestamp(text, "2006-01-02 15:04:05.000000")
	return strings.TrimSuffix(out, ".000000"), err
}
