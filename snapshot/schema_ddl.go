package snapshot

import (
	"fmt"
	"strings"
)

// DDL is the schema as the column list of a Spark CREATE TABLE, one column a
// line: types, NOT NULL, defaults, generation and comments.
func (s *Schema) DDL() string {
	lines := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		lines[i] = quoteName(f.Name) + " " + sqlFieldType(f) + fieldClauses(f)
	}
	return strings.Join(lines, ",\n")
}

// SQLType is the name of the type in Spark SQL, such as "ARRAY<BIGINT>".
func SQLType(t Type) string {
	switch t := t.(type) {
	case *Struct:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = quoteName(f.Name) + ": " + sqlFieldType(f)
			if !f.Nullable {
				parts[i] += " NOT NULL"
			}
			parts[i] += commentClause(f)
		}
		return "STRUCT<" + strings.Join(parts, ", ") + ">"
	case *Array:
		return "ARRAY<" + SQLType(t.Element) + ">"
	case *Map:
		return "MAP<" + SQLType(t.Key) + ", " + SQLType(t.Value) + ">"
	}
	switch name := t.String(); name {
	case "byte":
		return "TINYINT"
	case "short":
		return "SMALLINT"
	case "integer":
		return "INT"
	case "long":
		return "BIGINT"
	default:
		return strings.ToUpper(name)
	}
}

// sqlFieldType honours char(n) and varchar(n), which the log keeps as string
// with a note in the metadata.
func sqlFieldType(f Field) string {
	if declared, ok := f.Text("__CHAR_VARCHAR_TYPE_STRING"); ok {
		return strings.ToUpper(declared)
	}
	return SQLType(f.Type)
}

func fieldClauses(f Field) string {
	var b strings.Builder
	if !f.Nullable {
		b.WriteString(" NOT NULL")
	}
	if expr, ok := f.Text("CURRENT_DEFAULT"); ok {
		b.WriteString(" DEFAULT " + expr)
	}
	if expr, ok := f.Text("delta.generationExpression"); ok {
		b.WriteString(" GENERATED ALWAYS AS (" + expr + ")")
	}
	if start, ok := f.Metadata["delta.identity.start"]; ok {
		how := "ALWAYS"
		if f.Metadata["delta.identity.allowExplicitInsert"] == "true" {
			how = "BY DEFAULT"
		}
		fmt.Fprintf(&b, " GENERATED %s AS IDENTITY (START WITH %s INCREMENT BY %s)",
			how, start, f.Metadata["delta.identity.step"])
	}
	b.WriteString(commentClause(f))
	return b.String()
}

func commentClause(f Field) string {
	comment, ok := f.Text("comment")
	if !ok {
		return ""
	}
	return " COMMENT '" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(comment) + "'"
}

// quoteName puts a name in backquotes unless Spark SQL takes it bare.
func quoteName(name string) string {
	bare := name != "" && !isDigits(name)
	for _, c := range []byte(name) {
		bare = bare && (c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	}
	if bare {
		return name
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}
