//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"fmt"
	"os"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/internal/sql/wire"
)

// writeParquet writes the rows of all files as one Parquet file. It cannot begin
// before it has all of them.
func (q *query) writeParquet(sources <-chan source) error {
	var all []source
	defer func() {
		for i := range all {
			all[i].File.File.Close()
		}
	}()
	var parts []string
	for {
		s, more, err := q.next(sources)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		all = append(all, s)
		part, err := q.selection(&s)
		if err != nil {
			return locate(err, s.Name)
		}
		parts = append(parts, part)
		if err := q.conn.Write(wire.Next, nil); err != nil {
			return err
		}
	}
	if parts == nil {
		parts = []string{q.nothing()}
	}
	statement := strings.Join(parts, " UNION ALL ")
	if q.left >= 0 {
		statement = fmt.Sprintf("SELECT * FROM (%s) LIMIT %d", statement, q.left)
	}
	return q.copyOut(statement)
}

// copyOut sends what the engine writes to a pipe.
func (q *query) copyOut(statement string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		defer r.Close() // the engine's next write fails
		buf := make([]byte, wire.HeaderSize+flushFrom)
		for {
			n, err := r.Read(buf[wire.HeaderSize:])
			if n > 0 {
				wire.PutHeader(buf, wire.Data, n)
				err = q.conn.WriteFrame(buf[:wire.HeaderSize+n])
			}
			if err != nil {
				return // the end of the pipe, or the peer has hung up
			}
		}
	}()
	err = q.db.exec(fmt.Sprintf("COPY (%s) TO '%s%d' (FORMAT parquet)", statement, descriptors, w.Fd()))
	w.Close()
	<-sent
	return err
}

// selection reads a file's rows as the columns wanted.
func (q *query) selection(s *source) (string, error) {
	columns, err := q.db.columns(s)
	if err != nil {
		return "", err
	}
	var out []string
	for i, want := range q.Columns {
		col, ok := find(columns, want.Name)
		expression := "NULL"
		if c, constant := s.Constants[i]; constant {
			if !c.Null {
				expression = literalOf(c.Text, want.Type)
			}
		} else if ok && want.Type.Name != "void" {
			if _, err := newReader(col.src, want.Type); err != nil {
				return "", fault.New(sql.ErrFailed, "%s", err).OnColumn(want.Name)
			}
			expression = converted(identifier(col.name), col.src, want.Type)
		}
		out = append(out, cast(expression, want))
	}
	return "SELECT " + strings.Join(out, ", ") + " FROM " + scan(s), nil
}

// converted reads bytes as text and the reverse, where a cast would escape them.
func converted(expression string, src shape, want sql.Type) string {
	switch {
	case src.id == duckdb.TypeBlob && want.Name == "string":
		return "decode(" + expression + ")"
	case src.id == duckdb.TypeVarchar && want.Name == "binary":
		return "encode(" + expression + ")"
	}
	return expression
}

// nothing has the columns wanted and no row.
func (q *query) nothing() string {
	var out []string
	for _, want := range q.Columns {
		out = append(out, cast("NULL", want))
	}
	return "SELECT " + strings.Join(out, ", ") + " WHERE false"
}

func cast(expression string, want sql.Column) string {
	return "CAST(" + expression + " AS " + typeOf(want.Type) + ") AS " + identifier(want.Name)
}

// literalOf is a constant in a statement.
func literalOf(text string, t sql.Type) string {
	if t.Name == "binary" {
		return "from_base64(" + literal(text) + ")"
	}
	return literal(text)
}

// typeOf is a type in a statement.
func typeOf(t sql.Type) string {
	switch t.Name {
	case "decimal":
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case "array":
		return typeOf(t.Parts[0].Type) + "[]"
	case "map":
		return "MAP(" + typeOf(t.Parts[0].Type) + ", " + typeOf(t.Parts[1].Type) + ")"
	case "variant":
		return "STRUCT(metadata BLOB, \"value\" BLOB)"
	case "struct":
		var members []string
		for _, p := range t.Parts {
			members = append(members, identifier(p.Name)+" "+typeOf(p.Type))
		}
		return "STRUCT(" + strings.Join(members, ", ") + ")"
	}
	return map[string]string{
		"boolean": "BOOLEAN", "byte": "TINYINT", "short": "SMALLINT", "integer": "INTEGER", "long": "BIGINT",
		"float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "date": "DATE",
		"timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP", "void": "INTEGER",
	}[t.Name]
}
