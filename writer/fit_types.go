package writer

import (
	"fmt"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/parquet-go/parquet-go/format"
)

// fitsPrimitive reports whether a leaf holds exactly the table's type as Delta
// writers store it (protocol section "Primitive Types"):
//
//   - integers by their width; the annotation may be missing where it adds
//     nothing (INT in INT32, BIGINT in INT64);
//   - strings annotated as STRING: several readers give JSON, ENUM and bare
//     byte arrays as bytes;
//   - timestamps in microseconds with the right UTC flag, and INT96, which is
//     how Spark stores TIMESTAMP;
//   - decimals of the same precision and scale in any physical type that can
//     hold them.
func fitsPrimitive(t *snapshot.Primitive, n *parquetfile.Node) bool {
	l := n.Logical
	bare := l.Kind == parquetfile.None
	signed := func(width int8) bool { return l.Kind == parquetfile.Int && l.Signed && l.Width == width }
	micros := func(utc bool) bool {
		return n.Physical == format.Int64 && l.Kind == parquetfile.Timestamp && l.Unit == parquetfile.Micros && l.UTC == utc
	}
	switch t.Name {
	case "boolean":
		return n.Physical == format.Boolean && bare
	case "byte":
		return n.Physical == format.Int32 && signed(8)
	case "short":
		return n.Physical == format.Int32 && signed(16)
	case "integer":
		return n.Physical == format.Int32 && (bare || signed(32))
	case "long":
		return n.Physical == format.Int64 && (bare || signed(64))
	case "float":
		return n.Physical == format.Float && bare
	case "double":
		return n.Physical == format.Double && bare
	case "string":
		return n.Physical == format.ByteArray && l.Kind == parquetfile.String
	case "binary":
		return n.Physical == format.ByteArray && bare
	case "date":
		return n.Physical == format.Int32 && l.Kind == parquetfile.Date
	case "timestamp":
		return micros(true) || n.Physical == format.Int96 && bare
	case "timestamp_ntz":
		return micros(false)
	case "decimal":
		return l.Kind == parquetfile.Decimal && int(l.Precision) == t.Precision && int(l.Scale) == t.Scale && holdsDecimal(n)
	}
	// void has no place in a file, and other types are not written yet.
	return false
}

// holdsDecimal reports whether the physical type can hold every value of the
// decimal's precision.
func holdsDecimal(n *parquetfile.Node) bool {
	switch p := n.Logical.Precision; n.Physical {
	case format.Int32:
		return p <= 9
	case format.Int64:
		return p <= 18
	case format.FixedLenByteArray:
		// n bytes hold floor(log10(2^(8n-1) - 1)) digits; 0.30103 is log10(2).
		return float64(p) <= float64(8*n.Length-1)*0.30103
	case format.ByteArray:
		return true
	}
	return false
}

func misfit(t snapshot.Type, n *parquetfile.Node, column string) error {
	want := snapshot.SQLType(t)
	return fault.New(ErrMisfit, "the file has %s, the table %s", fileType(n), want).OnColumn(column).
		WithHint("%s", wayOut(t, n, column))
}

// wayOut says how to write the file so that it fits.
func wayOut(t snapshot.Type, n *parquetfile.Node, column string) string {
	want := snapshot.SQLType(t)
	p, ok := t.(*snapshot.Primitive)
	switch {
	case ok && p.Name == "void" || n.Logical.Kind == parquetfile.Null:
		return "leave the column out of the file: what is missing is null"
	case !ok || !n.Leaf():
		return fmt.Sprintf("write the column as %s", want)
	case strings.HasPrefix(p.Name, "timestamp") && n.Logical.Kind == parquetfile.Timestamp:
		return strings.Join(timestampWayOut(p, n.Logical, column), "; ")
	}
	pandas := map[string]string{
		"byte": "int8", "short": "int16", "integer": "int32", "long": "int64",
		"float": "float32", "double": "float64", "boolean": "bool", "string": "str",
	}
	hint := fmt.Sprintf("cast the column when writing the file: DuckDB CAST(%s AS %s)", column, duckType(want))
	if name := pandas[p.Name]; name != "" {
		hint += fmt.Sprintf(", pandas df[%q].astype(%q)", column, name)
	}
	return hint
}

func timestampWayOut(p *snapshot.Primitive, have parquetfile.Logical, column string) (steps []string) {
	switch {
	case p.Name == "timestamp" && !have.UTC:
		steps = append(steps, fmt.Sprintf("say in which zone the times are: pandas df[%q].dt.tz_localize('UTC'), Polars pl.col(%q).dt.replace_time_zone('UTC'), DuckDB %s AT TIME ZONE 'UTC'",
			column, column, column))
	case p.Name == "timestamp_ntz" && have.UTC:
		steps = append(steps, fmt.Sprintf("write times without a zone: pandas df[%q].dt.tz_localize(None), Polars pl.col(%q).dt.replace_time_zone(None), DuckDB %s AT TIME ZONE 'UTC'",
			column, column, column))
	}
	if have.Unit != parquetfile.Micros {
		steps = append(steps, fmt.Sprintf("write microseconds: pandas and pyarrow with coerce_timestamps='us', Polars pl.col(%q).dt.cast_time_unit('us'), DuckDB CAST(%s AS %s)",
			column, column, duckType(snapshot.SQLType(p))))
	}
	return steps
}

// duckType is DuckDB's name for a type of Spark SQL.
func duckType(sql string) string {
	switch sql {
	case "BINARY":
		return "BLOB"
	case "TIMESTAMP":
		return "TIMESTAMPTZ"
	case "TIMESTAMP_NTZ":
		return "TIMESTAMP"
	}
	return sql
}

// fileType spells the type of a file's column in SQL, with what tells it from
// the types of a table.
func fileType(n *parquetfile.Node) string {
	if n.Repeated() {
		return "repeated " + typeName(n)
	}
	return typeName(n)
}

// typeName is fileType without the repetition, which an array implies.
func typeName(n *parquetfile.Node) string {
	if !n.Leaf() {
		return groupType(n)
	}
	l := n.Logical
	switch l.Kind {
	case parquetfile.None:
		return bareType(n)
	case parquetfile.String:
		return "STRING"
	case parquetfile.Null:
		return "VOID (no values)"
	case parquetfile.Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d) in %s", l.Precision, l.Scale, n.Physical)
	case parquetfile.Timestamp:
		name := "TIMESTAMP_NTZ"
		if l.UTC {
			name = "TIMESTAMP"
		}
		switch l.Unit {
		case parquetfile.Millis:
			return name + " in milliseconds"
		case parquetfile.Nanos:
			return name + " in nanoseconds"
		}
		return name
	case parquetfile.Int:
		name := map[int8]string{8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}[l.Width]
		if !l.Signed {
			return "unsigned " + name
		}
		return name
	}
	return l.String()
}

func bareType(n *parquetfile.Node) string {
	switch n.Physical {
	case format.Boolean:
		return "BOOLEAN"
	case format.Int32:
		return "INT"
	case format.Int64:
		return "BIGINT"
	case format.Int96:
		return "TIMESTAMP in INT96"
	case format.Float:
		return "FLOAT"
	case format.Double:
		return "DOUBLE"
	case format.ByteArray:
		return "BINARY"
	}
	return fmt.Sprintf("BINARY(%d)", n.Length)
}

func groupType(n *parquetfile.Node) string {
	if element, _ := n.Element(); element != nil {
		return "ARRAY<" + typeName(element) + ">"
	}
	if key, value, _ := n.KeyValue(); key != nil {
		return "MAP<" + fileType(key) + ", " + fileType(value) + ">"
	}
	parts := make([]string, len(n.Children))
	for i, c := range n.Children {
		parts[i] = c.Name + ": " + fileType(c)
	}
	text := "STRUCT<" + strings.Join(parts, ", ") + ">"
	if l := n.Logical.String(); l != "" {
		text += " (" + l + ")"
	}
	return text
}
