package snapshot

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// parsedStats reads the statistics of adds where a checkpoint has them typed
// and not as text (protocol section "Checkpoints"), and writes the text (protocol
// section "Per-file Statistics").
type parsedStats struct{ leaves []parsedLeaf }

// parsedLeaf is one leaf of add.stats_parsed.
type parsedLeaf struct {
	*column
	// path leads to it from stats_parsed.
	path []string
	// text is the JSON of value i of a page, "" if it has none.
	text func(values *pageValues, i int) string
}

// newParsedStats opens the columns; what is no scalar is left out, as
// statistics that are unknown are.
func newParsedStats(g *rowGroupColumns) *parsedStats {
	s := &parsedStats{}
	var walk func(col *parquet.Column, path []string)
	walk = func(col *parquet.Column, path []string) {
		if !col.Leaf() {
			for _, inner := range col.Columns() {
				walk(inner, append(slices.Clip(path), inner.Name()))
			}
			return
		}
		if text := statsText(col.Type()); text != nil && col.MaxRepetitionLevel() == 0 {
			s.leaves = append(s.leaves, parsedLeaf{g.leaf(col, 0, col.Type().Kind()), path, text})
		}
	}
	if root := g.column("add", "stats_parsed"); root != nil {
		walk(root, nil)
	}
	// Whoever looks for the number of rows finds it first.
	for i, l := range s.leaves {
		if slices.Equal(l.path, []string{"numRecords"}) {
			s.leaves = slices.Insert(slices.Delete(s.leaves, i, i+1), 0, l)
			break
		}
	}
	return s
}

// read returns the statistics of a row, "" without any.
func (p *parsedStats) read(s *rowScan) string {
	var out statsObject
	for _, l := range p.leaves {
		if text := scan(s, l.column, l.next); text != "" {
			out.put(l.path, text)
		}
	}
	return out.text()
}

// next returns the JSON of the next row, "" when null.
func (l parsedLeaf) next() (string, error) {
	i, err := l.place()
	if err != nil || i < 0 {
		return "", err
	}
	return l.text(&l.values, i), nil
}

// statsObject writes a JSON object whose members come by their paths, those of
// one object together.
type statsObject struct {
	b    strings.Builder
	open []string
}

func (o *statsObject) put(path []string, value string) {
	if o.b.Len() == 0 {
		o.b.WriteByte('{')
	}
	groups := path[:len(path)-1]
	same := 0
	for same < len(groups) && same < len(o.open) && groups[same] == o.open[same] {
		same++
	}
	for range o.open[same:] {
		o.b.WriteByte('}')
	}
	o.open = append(o.open[:same], groups[same:]...)
	for _, name := range groups[same:] {
		o.member(name)
		o.b.WriteByte('{')
	}
	o.member(path[len(path)-1])
	o.b.WriteString(value)
}

func (o *statsObject) member(name string) {
	if s := o.b.String(); s[len(s)-1] != '{' {
		o.b.WriteByte(',')
	}
	o.b.WriteString(quoteJSON(name))
	o.b.WriteByte(':')
}

func (o *statsObject) text() string {
	if o.b.Len() == 0 {
		return ""
	}
	return o.b.String() + strings.Repeat("}", len(o.open)+1)
}

func quoteJSON(s string) string {
	out, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return `""`
	}
	return string(out)
}

// statsText returns how values of a type are written in statistics, nil for a
// type that has none there.
func statsText(t parquet.Type) func(*pageValues, int) string {
	if logical := t.LogicalType(); logical != nil {
		switch l := logical.Value.(type) {
		case *format.DecimalType:
			return decimalStats(t.Kind(), int(l.Scale))
		case *format.DateType:
			return func(v *pageValues, i int) string {
				return quoteJSON(time.Unix(v.long(i)*86400, 0).UTC().Format(time.DateOnly))
			}
		case *format.TimestampType:
			return timestampStats(l)
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(v *pageValues, i int) string { return strconv.FormatBool(v.flag(i)) }
	case parquet.Int32, parquet.Int64:
		return func(v *pageValues, i int) string { return strconv.FormatInt(v.long(i), 10) }
	case parquet.Float:
		return func(v *pageValues, i int) string { return floatStats(float64(v.floats[v.at(i)]), 32) }
	case parquet.Double:
		return func(v *pageValues, i int) string { return floatStats(v.doubles[v.at(i)], 64) }
	case parquet.ByteArray:
		return func(v *pageValues, i int) string { return quoteJSON(string(v.text(i))) }
	case parquet.Int96:
		return func(v *pageValues, i int) string { return timeStats(int96Time(v.int96s[v.at(i)]), true) }
	}
	return nil
}

// floatStats leaves out what JSON has no number for.
func floatStats(f float64, bits int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return ""
	}
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

func decimalStats(kind parquet.Kind, scale int) func(*pageValues, int) string {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return func(v *pageValues, i int) string {
		unscaled := new(big.Int)
		switch kind {
		case parquet.Int32, parquet.Int64:
			unscaled.SetInt64(v.long(i))
		default:
			b := v.text(i)
			unscaled.SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
		}
		return new(big.Rat).SetFrac(unscaled, power).FloatString(scale)
	}
}

func timestampStats(t *format.TimestampType) func(*pageValues, int) string {
	var at func(n int64) time.Time
	switch t.Unit.Value.(type) {
	case *format.MilliSeconds:
		at = time.UnixMilli
	case *format.MicroSeconds:
		at = time.UnixMicro
	case *format.NanoSeconds:
		at = func(n int64) time.Time { return time.Unix(0, n) }
	default:
		return nil
	}
	return func(v *pageValues, i int) string { return timeStats(at(v.long(i)), t.IsAdjustedToUTC) }
}

// timeStats cuts times to milliseconds, as all statistics are: who reads them
// allows for it.
func timeStats(at time.Time, utc bool) string {
	layout := "2006-01-02T15:04:05.000"
	if utc {
		layout += "Z"
	}
	at = at.UTC()
	if at.Year() < 0 || at.Year() > 9999 {
		return ""
	}
	// Not towards the epoch, but down.
	return quoteJSON(at.Truncate(time.Millisecond).Format(layout))
}

// int96Time is the time of nanoseconds in a day and a Julian day.
func int96Time(v deprecated.Int96) time.Time {
	const epoch = 2440588
	var raw [12]byte
	for i, word := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], word)
	}
	nanos := int64(binary.LittleEndian.Uint64(raw[:8]))
	days := int64(int32(binary.LittleEndian.Uint32(raw[8:]))) - epoch
	return time.Unix(days*86400, nanos)
}
