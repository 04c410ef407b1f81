package writer

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"
)

// Parsed columns hold what adds say in text once more in its own type
// (delta.checkpoint.writeStatsAsStruct): partition values and statistics, under
// the physical names of the columns.

// parsedField is a parsed column and how its values are made of text.
type parsedField struct {
	// path leads to it from add.
	path []string
	node parquet.Node
	// parse is false for a text that is no value of the type.
	parse func(text string) (parquet.Value, bool)
}

// parsedPartitions are the fields of partitionValues_parsed.
func parsedPartitions(fields []snapshot.Field) (out []parsedField) {
	for _, f := range fields {
		if p, ok := f.Type.(*snapshot.Primitive); ok {
			if node, parse := parsedType(p); node != nil {
				out = append(out, parsedField{[]string{"partitionValues_parsed", f.PhysicalName()}, node, parse})
			}
		}
	}
	return out
}

// parsedStatistics are the fields of stats_parsed: bounds and counts of the
// columns that get statistics.
func parsedStatistics(t *target) []parsedField {
	numbers, parseNumber := parsedType(&snapshot.Primitive{Name: "long"})
	flags, parseFlag := parsedType(&snapshot.Primitive{Name: "boolean"})
	out := []parsedField{{[]string{"stats_parsed", "numRecords"}, numbers, parseNumber}}
	if t.tightBounds {
		out = append(out, parsedField{[]string{"stats_parsed", "tightBounds"}, flags, parseFlag})
	}
	indexed := indexedColumns(t)
	columns := &snapshot.Schema{Fields: dataFields(t)}
	columns.Leaves(func(fields []snapshot.Field) bool {
		var logical, physical []string
		for _, f := range fields {
			logical, physical = append(logical, f.Name), append(physical, f.PhysicalName())
		}
		if !indexed.has(logical) {
			return true
		}
		under := func(group string) []string { return append([]string{"stats_parsed", group}, physical...) }
		out = append(out, parsedField{under("nullCount"), numbers, parseNumber})
		p, ok := fields[len(fields)-1].Type.(*snapshot.Primitive)
		if ok && hasBounds(p) {
			node, parse := parsedType(p)
			out = append(out, parsedField{under("minValues"), node, parse}, parsedField{under("maxValues"), node, parse})
		}
		return true
	})
	return out
}

// parsedType is the column for values of a type, as Spark writes it, nil for a
// type without one.
func parsedType(p *snapshot.Primitive) (parquet.Node, func(string) (parquet.Value, bool)) {
	switch p.Name {
	case "string", "binary":
		node := parquet.String()
		if p.Name == "binary" {
			node = parquet.Leaf(parquet.ByteArrayType)
		}
		return node, func(s string) (parquet.Value, bool) { return parquet.ByteArrayValue([]byte(s)), true }
	case "byte":
		return parquet.Int(8), parseInt32(8)
	case "short":
		return parquet.Int(16), parseInt32(16)
	case "integer":
		return parquet.Leaf(parquet.Int32Type), parseInt32(32)
	case "long":
		return parquet.Leaf(parquet.Int64Type), func(s string) (parquet.Value, bool) {
			n, err := strconv.ParseInt(s, 10, 64)
			return parquet.Int64Value(n), err == nil
		}
	case "float":
		return parquet.Leaf(parquet.FloatType), func(s string) (parquet.Value, bool) {
			f, err := strconv.ParseFloat(s, 32)
			return parquet.FloatValue(float32(f)), err == nil
		}
	case "double":
		return parquet.Leaf(parquet.DoubleType), func(s string) (parquet.Value, bool) {
			f, err := strconv.ParseFloat(s, 64)
			return parquet.DoubleValue(f), err == nil
		}
	case "boolean":
		return parquet.Leaf(parquet.BooleanType), func(s string) (parquet.Value, bool) {
			b, err := strconv.ParseBool(strings.ToLower(s))
			return parquet.BooleanValue(b), err == nil
		}
	case "date":
		return parquet.Date(), parseDate
	case "timestamp", "timestamp_ntz":
		return parquet.TimestampAdjusted(parquet.Microsecond, p.Name == "timestamp"), parseTimestamp
	case "decimal":
		return parsedDecimal(p)
	}
	return nil, nil
}

func parseInt32(bits int) func(string) (parquet.Value, bool) {
	return func(s string) (parquet.Value, bool) {
		n, err := strconv.ParseInt(s, 10, bits)
		return parquet.Int32Value(int32(n)), err == nil
	}
}

func parseDate(s string) (parquet.Value, bool) {
	t, err := time.Parse(time.DateOnly, s)
	return parquet.Int32Value(int32(t.Unix() / 86400)), err == nil
}

func parseTimestamp(s string) (parquet.Value, bool) {
	t, err := snapshot.ParseTime(s, time.UTC)
	return parquet.Int64Value(t.UnixMicro()), err == nil
}

// parsedDecimal stores a decimal in the fewest bytes that its precision needs.
func parsedDecimal(p *snapshot.Primitive) (parquet.Node, func(string) (parquet.Value, bool)) {
	unscaled := func(s string) (*big.Int, bool) {
		text, err := snapshot.SerializePartition(p, s)
		if err != nil {
			return nil, false
		}
		return new(big.Int).SetString(strings.Replace(text, ".", "", 1), 10)
	}
	switch {
	case p.Precision <= 9:
		return parquet.Decimal(p.Scale, p.Precision, parquet.Int32Type), func(s string) (parquet.Value, bool) {
			n, ok := unscaled(s)
			if !ok {
				return parquet.Value{}, false
			}
			return parquet.Int32Value(int32(n.Int64())), true
		}
	case p.Precision <= 18:
		return parquet.Decimal(p.Scale, p.Precision, parquet.Int64Type), func(s string) (parquet.Value, bool) {
			n, ok := unscaled(s)
			if !ok {
				return parquet.Value{}, false
			}
			return parquet.Int64Value(n.Int64()), true
		}
	}
	width := int(math.Ceil((float64(p.Precision)*math.Log2(10) + 1) / 8))
	return parquet.Decimal(p.Scale, p.Precision, parquet.FixedLenByteArrayType(width)), func(s string) (parquet.Value, bool) {
		n, ok := unscaled(s)
		if !ok {
			return parquet.Value{}, false
		}
		if n.Sign() < 0 {
			n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
		}
		return parquet.FixedLenByteArrayValue(n.FillBytes(make([]byte, width))), true
	}
}

// parsedColumn gathers the values of a parsed column.
type parsedColumn struct {
	batch *columnBatch
	parse func(text string) (parquet.Value, bool)
	value parquet.Value
	known bool
}

// put puts a value that is known, or a null in its group.
func (c *parsedColumn) put() {
	if c.known {
		c.batch.add(c.value, 0, c.batch.maxDef)
	} else {
		c.batch.null(c.batch.maxDef - 1)
	}
	c.known = false
}

// partitionBatch are the columns of partitionValues_parsed by physical name.
type partitionBatch struct {
	names   []string
	columns []*parsedColumn
}

func (b *partitionBatch) put(values map[string]*string) {
	for i, name := range b.names {
		c := b.columns[i]
		if text := values[name]; text != nil {
			c.value, c.known = c.parse(*text)
		}
		c.put()
	}
}

// statsBatch are the columns of stats_parsed, as a tree of JSON members.
type statsBatch struct {
	columns []*parsedColumn
	root    statsMember
}

type statsMember struct {
	column  *parsedColumn
	members map[string]*statsMember
}

func (b *statsBatch) add(path []string, c *parsedColumn) {
	b.columns = append(b.columns, c)
	at := &b.root
	for _, name := range path {
		if at.members == nil {
			at.members = map[string]*statsMember{}
		}
		if at.members[name] == nil {
			at.members[name] = &statsMember{}
		}
		at = at.members[name]
	}
	at.column = c
}

// put puts the statistics of an add. Those that are no JSON are none.
func (b *statsBatch) put(stats string) {
	if len(b.columns) == 0 {
		return
	}
	if stats == "" || b.root.read(jsontext.NewDecoder(strings.NewReader(stats))) != nil {
		for _, c := range b.columns {
			c.known = false
			c.batch.null(1)
		}
		return
	}
	for _, c := range b.columns {
		c.put()
	}
}

func (m *statsMember) read(dec *jsontext.Decoder) error {
	switch kind := dec.PeekKind(); {
	case m.column != nil:
		return m.column.read(dec)
	case m.members == nil || kind != '{':
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		member := m.members[name.String()]
		if member == nil {
			member = &statsMember{}
		}
		if err := member.read(dec); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// read takes a scalar: a text, or a number or boolean as it is spelled.
func (c *parsedColumn) read(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	text := string(raw)
	switch raw.Kind() {
	case '"':
		b, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return err
		}
		text = string(b)
	case 'n', '{', '[':
		return nil
	}
	c.value, c.known = c.parse(text)
	return nil
}

// parsedGroup makes the Parquet group of the fields below a prefix of their
// paths, nil without any.
func parsedGroup(fields []parsedField, prefix ...string) parquet.Node {
	group := parquet.Group{}
	for _, f := range fields {
		if len(f.path) <= len(prefix) || !slices.Equal(f.path[:len(prefix)], prefix) {
			continue
		}
		name := f.path[len(prefix)]
		switch {
		case len(f.path) == len(prefix)+1:
			group[name] = parquet.Optional(f.node)
		case group[name] == nil:
			group[name] = parsedGroup(fields, append(slices.Clip(prefix), name)...)
		}
	}
	if len(group) == 0 {
		return nil
	}
	return parquet.Optional(group)
}
