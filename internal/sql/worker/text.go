//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"slices"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/rowtext"
	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/internal/sql/wire"
)

// flushFrom is how many bytes of text are written at a time.
const flushFrom = 128 << 10

// text is rows being written.
type text struct {
	*query
	// buf begins with room for the header of a frame.
	buf []byte
	// keys are what stands in front of each value.
	keys []string
	end  string
}

func (q *query) writeText(sources <-chan source) error {
	t := &text{query: q, buf: make([]byte, wire.HeaderSize, flushFrom+flushFrom/4), end: "\n"}
	for i, c := range q.Columns {
		t.keys = append(t.keys, t.key(i, c.Name))
		if q.Header && q.Format == sql.CSV {
			t.buf = rowtext.AppendCSV(append(t.buf, t.keys[i]...), c.Name)
		}
	}
	if q.Format == sql.JSONL {
		t.end = "}\n"
		if len(q.Columns) == 0 {
			t.end = "{}\n"
		}
	}
	if q.Header && q.Format == sql.CSV {
		t.buf = append(t.buf, t.end...)
	}
	for q.left != 0 {
		s, more, err := q.next(sources)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		err = t.file(&s)
		s.File.File.Close()
		if err != nil {
			return locate(err, s.Name)
		}
		if err := q.conn.Write(wire.Next, nil); err != nil {
			return err
		}
	}
	return t.flush()
}

// locate says which file an error is about.
func locate(err error, name string) error {
	if f, ok := err.(*fault.Error); ok {
		return f.InFile(name)
	}
	return fault.Wrap(sql.ErrFailed, err, "%s", err).InFile(name)
}

func (t *text) key(i int, name string) string {
	if t.Format == sql.JSONL {
		return string(append(rowtext.AppendJSON([]byte{"{,"[min(i, 1)]}, name), ':'))
	}
	return ","[:min(i, 1)]
}

// cell writes one column of a row: a constant, or what the file has.
type cell struct {
	constant []byte
	*reader
}

// file writes the rows of a file.
func (t *text) file(s *source) error {
	statement, cells, err := t.plan(s)
	if err != nil {
		return err
	}
	rows, err := t.db.stream(statement)
	if err != nil {
		return err
	}
	defer rows.close()
	for t.left != 0 {
		chunk, err := rows.next()
		if err != nil || chunk == nil {
			return err
		}
		err = t.chunk(chunk, cells)
		duckdb.DestroyDataChunk(chunk)
		if err != nil {
			return err
		}
	}
	return nil
}

// chunk writes the rows of a chunk.
func (t *text) chunk(chunk *duckdb.DataChunk, cells []cell) error {
	count := int(duckdb.DataChunkGetSize(*chunk))
	if t.left >= 0 {
		count = int(min(int64(count), t.left))
		t.left -= int64(count)
	}
	for i := range cells {
		if r := cells[i].reader; r != nil {
			r.attach(duckdb.DataChunkGetVector(*chunk, duckdb.IdxT(r.column)))
		}
	}
	var err error
	for row := range count {
		for i := range cells {
			c := &cells[i]
			t.buf = append(t.buf, t.keys[i]...)
			switch {
			case c.reader == nil:
				t.buf = append(t.buf, c.constant...)
			case t.Format == sql.CSV:
				t.buf, err = c.appendCSV(t.buf, row, t.Null)
			default:
				t.buf, err = c.appendJSON(t.buf, row)
			}
			if err != nil {
				return err
			}
		}
		t.buf = append(t.buf, t.end...)
		if len(t.buf) >= flushFrom {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the text so far.
func (t *text) flush() error {
	size := len(t.buf) - wire.HeaderSize
	if size == 0 {
		return nil
	}
	wire.PutHeader(t.buf, wire.Data, size)
	err := t.conn.WriteFrame(t.buf)
	t.buf = slices.Grow(t.buf[:0], flushFrom+flushFrom/4)[:wire.HeaderSize]
	return err
}
