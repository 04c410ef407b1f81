package snapshot

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/action"
)

// servedStats makes the statistics of files as they are served of those in the
// log. What does not hold for the rows that are left, exactly, is left out:
// engines answer queries with it.
type servedStats struct {
	columns statsColumns
	// asLogged says that all columns have the names and types in the log that they
	// have in the table.
	asLogged bool
}

// statsColumns are columns by the name that they have in the log.
type statsColumns map[string]*statsColumn

type statsColumn struct {
	// name is the column's in the table.
	name string
	// inner are the columns of a struct.
	inner statsColumns
	// unbounded says that the bounds in the log may be those of a narrower type,
	// as text that means another value of the wider one.
	unbounded bool
}

// newServedStats is for the fields that are in data files, which the log knows by
// their physical names if they are mapped.
func newServedStats(fields []Field, mapped bool) *servedStats {
	out := &servedStats{asLogged: true}
	out.columns = out.columnsOf(fields, mapped)
	return out
}

func (s *servedStats) columnsOf(fields []Field, mapped bool) statsColumns {
	out := statsColumns{}
	for _, f := range fields {
		logged := f.Name
		if mapped {
			logged = f.PhysicalName()
		}
		c := &statsColumn{name: f.Name, unbounded: f.Metadata["delta.typeChanges"] != ""}
		if logged != f.Name || c.unbounded {
			s.asLogged = false
		}
		if inner, ok := f.Type.(*Struct); ok {
			c.inner = s.columnsOf(inner.Fields, mapped)
		}
		out[logged] = c
	}
	return out
}

// loggedStats are the statistics of a file (protocol section "Per-file
// Statistics").
type loggedStats struct {
	NumRecords  *int64         `json:"numRecords"`
	MinValues   jsontext.Value `json:"minValues"`
	MaxValues   jsontext.Value `json:"maxValues"`
	NullCount   jsontext.Value `json:"nullCount"`
	TightBounds *bool          `json:"tightBounds"`
}

// of returns the statistics of a file as it is served, "" if there are none.
func (s *servedStats) of(a *action.Add) string {
	if s.asLogged && a.DeletionVector == nil && !strings.Contains(a.Stats, `"tightBounds"`) {
		if v := jsontext.Value(a.Stats); v.Kind() != '{' || !v.IsValid() {
			return ""
		}
		return a.Stats
	}
	var in loggedStats
	if json.Unmarshal([]byte(a.Stats), &in) != nil || in.NumRecords == nil || *in.NumRecords < 0 {
		return ""
	}
	left := *in.NumRecords
	if a.DeletionVector != nil {
		left -= a.DeletionVector.Cardinality
	}
	if left < 0 {
		return ""
	}
	out := bytes.NewBufferString(`{"numRecords":` + strconv.FormatInt(left, 10))
	if a.DeletionVector == nil && isTrue(in.TightBounds) {
		s.put(out, "minValues", in.MinValues, bound)
		s.put(out, "maxValues", in.MaxValues, bound)
	}
	s.put(out, "nullCount", in.NullCount, func(_ *statsColumn, v jsontext.Value) (jsontext.Value, bool) {
		return nullsLeft(v, *in.NumRecords, left)
	})
	out.WriteByte('}')
	return out.String()
}

func bound(c *statsColumn, v jsontext.Value) (jsontext.Value, bool) { return v, !c.unbounded }

// nullsLeft is how many nulls are among the rows that are left, if the number of
// those in the file tells.
func nullsLeft(v jsontext.Value, of, left int64) (jsontext.Value, bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	switch {
	case err != nil:
		return nil, false
	case of == left, n == 0:
		return v, true
	case n == of:
		return jsontext.Value(strconv.FormatInt(left, 10)), true
	}
	return nil, false
}

// put writes a member with the values by column.
func (s *servedStats) put(out *bytes.Buffer, name string, values jsontext.Value, leaf leafStats) {
	if inner, ok := s.columns.rename(values, leaf); ok {
		out.WriteString(`,"` + name + `":`)
		out.Write(inner)
	}
}

// leafStats is the value of a column as it is served; false if it is not known.
type leafStats func(*statsColumn, jsontext.Value) (jsontext.Value, bool)

// rename puts the values of known columns under their names in the table; false
// if there are none.
func (c statsColumns) rename(object jsontext.Value, leaf leafStats) (jsontext.Value, bool) {
	out := []byte{'{'}
	for logged, value := range action.Members(object) {
		column := c[logged]
		if column == nil || value.Kind() == 'n' {
			continue
		}
		var ok bool
		if column.inner != nil && value.Kind() == '{' {
			value, ok = column.inner.rename(value, leaf)
		} else {
			value, ok = leaf(column, value)
		}
		if !ok {
			continue
		}
		name, err := jsontext.AppendQuote(nil, column.name)
		if err != nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), len(out) > 1
}
