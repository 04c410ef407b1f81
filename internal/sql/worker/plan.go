//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"errors"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/rowtext"
	"github.com/deltafs/deltafs/internal/sql"
)

// scan reads a file as it is: nothing is derived from its name, no column is
// guessed, and no row group is skipped for statistics that know no NaN.
func scan(s *source) string {
	return "read_parquet(" + literal(s.path()) +
		", hive_partitioning=false, union_by_name=false, binary_as_string=false, can_have_nan=true)"
}

// columnOf is a column of a file.
type columnOf struct {
	name string
	src  shape
}

// columns tells the columns of a file.
func (c *connection) columns(s *source) ([]columnOf, error) {
	var p duckdb.PreparedStatement
	defer duckdb.DestroyPrepare(&p)
	if duckdb.Prepare(c.c, "SELECT * FROM "+scan(s), &p) != duckdb.StateSuccess {
		return nil, errors.New(duckdb.PrepareError(p))
	}
	out := make([]columnOf, duckdb.PreparedStatementColumnCount(p))
	for i := range out {
		t := duckdb.PreparedStatementColumnLogicalType(p, duckdb.IdxT(i))
		out[i] = columnOf{duckdb.PreparedStatementColumnName(p, duckdb.IdxT(i)), describe(t)}
		duckdb.DestroyLogicalType(&t)
	}
	return out, nil
}

// find returns the column with this name, by case only if no other has it.
func find(columns []columnOf, name string) (columnOf, bool) {
	for _, c := range columns {
		if c.name == name {
			return c, true
		}
	}
	for _, c := range columns {
		if strings.EqualFold(c.name, name) {
			return c, true
		}
	}
	return columnOf{}, false
}

// plan makes the statement that reads what is needed of a file, and the cells
// that write its rows.
func (t *text) plan(s *source) (statement string, cells []cell, err error) {
	columns, err := t.db.columns(s)
	if err != nil {
		return "", nil, err
	}
	cells = make([]cell, len(t.Columns))
	var selected []string
	for i, want := range t.Columns {
		if want.Name == "" {
			return "", nil, fault.New(sql.ErrFailed, "the SQL engine knows no column without a name").OnColumn(want.Name).
				WithHint("read the Parquet files instead")
		}
		constant, isConstant := s.Constants[i]
		col, ok := find(columns, want.Name)
		if !isConstant && (!ok || want.Type.Name == "void") {
			isConstant, constant = true, sql.Constant{Null: true} // added later, or always null
		}
		if isConstant {
			cells[i].constant = t.constant(constant, want.Type)
			continue
		}
		r, err := newReader(col.src, want.Type)
		if err != nil {
			return "", nil, fault.New(sql.ErrFailed, "%s", err).OnColumn(want.Name)
		}
		r.column = len(selected)
		cells[i].reader = r
		selected = append(selected, identifier(col.name))
	}
	if selected == nil {
		selected = []string{"true"} // only the number of rows counts
	}
	return "SELECT " + strings.Join(selected, ", ") + " FROM " + scan(s), cells, nil
}

// constant is a value as it stands in each row.
func (t *text) constant(c sql.Constant, typ sql.Type) []byte {
	switch {
	case c.Null && t.Format == sql.CSV:
		return []byte(t.Null)
	case c.Null:
		return []byte("null")
	case t.Format == sql.CSV:
		return appendField(nil, []byte(c.Text), t.Null)
	case isNumber(typ.Name) && c.Text != "NaN" && !strings.HasSuffix(c.Text, "Infinity"), typ.Name == "boolean":
		return []byte(c.Text)
	}
	return rowtext.AppendJSON(nil, c.Text)
}

func isNumber(name string) bool {
	switch name {
	case "byte", "short", "integer", "long", "float", "double", "decimal":
		return true
	}
	return false
}

// stream is the result of a statement, fetched chunk by chunk.
type stream struct {
	statement duckdb.PreparedStatement
	pending   duckdb.PendingResult
	result    duckdb.Result
}

func (c *connection) stream(statement string) (*stream, error) {
	s := &stream{}
	err := func() error {
		if duckdb.Prepare(c.c, statement, &s.statement) != duckdb.StateSuccess {
			return errors.New(duckdb.PrepareError(s.statement))
		}
		if duckdb.PendingPreparedStreaming(s.statement, &s.pending) != duckdb.StateSuccess {
			return errors.New(duckdb.PendingError(s.pending))
		}
		if duckdb.ExecutePending(s.pending, &s.result) != duckdb.StateSuccess {
			return errors.New(duckdb.ResultError(&s.result))
		}
		return nil
	}()
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// next returns the next chunk, nil after the last one. It must be destroyed.
func (s *stream) next() (*duckdb.DataChunk, error) {
	var chunk duckdb.DataChunk
	if duckdb.StreamFetchChunk(s.result, &chunk) != duckdb.StateSuccess {
		// The end has no chunk either, but no error.
		if duckdb.ResultErrorType(&s.result) != duckdb.ErrorTypeInvalid {
			return nil, errors.New(duckdb.ResultError(&s.result))
		}
		return nil, nil
	}
	if duckdb.DataChunkGetSize(chunk) == 0 {
		duckdb.DestroyDataChunk(&chunk)
		return nil, nil
	}
	return &chunk, nil
}

func (s *stream) close() {
	duckdb.DestroyResult(&s.result)
	duckdb.DestroyPending(&s.pending)
	duckdb.DestroyPrepare(&s.statement)
}
