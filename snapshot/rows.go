package snapshot

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/sql"
)

// ErrColumn: the table has no such column.
var ErrColumn = errors.New("no such column")

// Rows says what is wanted of the rows of a snapshot.
type Rows struct {
	Format sql.Format
	// Columns are names of top-level columns; nil is all of them, in the table's
	// order.
	Columns []string
	// Limit is the largest number of rows; negative is no limit.
	Limit int64
	// NoHeader leaves the names out of CSV; Null is how null looks there.
	NoHeader bool
	Null     string
}

// RowStream is the text of rows. Reading it ends with io.EOF only if they are
// complete. It must be closed.
type RowStream struct {
	s      *Snapshot
	stream *sql.Stream
}

// Read implements io.Reader.
func (r *RowStream) Read(p []byte) (int, error) {
	n, err := r.stream.Read(p)
	if err != nil && err != io.EOF {
		err = r.s.rowFault(err)
	}
	return n, err
}

// Close ends the query.
func (r *RowStream) Close() error { return r.stream.Close() }

// rowFault adds the table and the version to an error of the engine.
func (s *Snapshot) rowFault(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Version == nil {
		f.AtVersion(s.Version())
	}
	return s.table.fault(err)
}

// Rows starts reading the rows of the version as text: the files in the order of
// Files, and the rows of each in their order. Partition columns have the values
// of the log. ErrColumn, and those of package sql.
func (s *Snapshot) Rows(ctx context.Context, e *sql.Engine, r Rows) (*RowStream, error) {
	fields, err := s.rowFields(r.Columns)
	if err != nil {
		return nil, s.rowFault(err)
	}
	q := sql.Query{Format: r.Format, Header: !r.NoHeader, Null: r.Null, Limit: r.Limit}
	for _, f := range fields {
		t, err := rowType(f.Type)
		if err != nil {
			return nil, s.rowFault(fault.Wrap(ErrUnsupported, err, "the column cannot be shown as text").OnColumn(f.Name))
		}
		q.Columns = append(q.Columns, sql.Column{Name: f.Name, Type: t})
	}
	stream, err := e.Run(ctx, q, s.rowFiles(ctx, e, fields))
	if err != nil {
		return nil, s.rowFault(err)
	}
	return &RowStream{s, stream}, nil
}

// rowFields are the fields with these names, all without names.
func (s *Snapshot) rowFields(names []string) ([]Field, error) {
	if names == nil {
		return s.Schema().Fields, nil
	}
	var out []Field
	for _, name := range names {
		f, ok := s.Schema().Lookup(name)
		if !ok {
			return nil, fault.New(ErrColumn, "the table has no such column").OnColumn(name).
				WithHint("it has %s", s.columnNames())
		}
		out = append(out, f)
	}
	return out, nil
}

func (s *Snapshot) columnNames() string {
	var names []string
	for _, f := range s.Schema().Fields {
		names = append(names, f.Name)
	}
	const some = 20
	if len(names) > some {
		names = append(names[:some], "…")
	}
	return strings.Join(names, ", ")
}

// rowType is a type as the engine is told.
func rowType(t Type) (sql.Type, error) {
	var parts []Field
	switch t := t.(type) {
	case *Primitive:
		switch t.Name {
		case "byte", "short", "integer", "long", "float", "double", "decimal", "boolean", "string", "binary",
			"date", "timestamp", "timestamp_ntz", "void", "variant":
			return sql.Type{Name: t.Name, Precision: t.Precision, Scale: t.Scale}, nil
		}
		return sql.Type{}, fault.New(ErrUnsupported, "it has the type %s", t)
	case *Struct:
		parts = t.Fields
	case *Array:
		parts = []Field{{Type: t.Element}}
	case *Map:
		parts = []Field{{Type: t.Key}, {Type: t.Value}}
	}
	out := sql.Type{Name: kindOf(t)}
	for _, f := range parts {
		part, err := rowType(f.Type)
		if err != nil {
			return out, err
		}
		out.Parts = append(out.Parts, sql.Column{Name: f.Name, Type: part})
	}
	return out, nil
}

func kindOf(t Type) string {
	switch t.(type) {
	case *Array:
		return "array"
	case *Map:
		return "map"
	}
	return "struct"
}

// rowFiles yields the data files for the engine, each opened when it is asked
// for.
func (s *Snapshot) rowFiles(ctx context.Context, e *sql.Engine, fields []Field) sql.Files {
	return func(yield func(sql.File, error) bool) {
		for f, err := range s.withAdds(ctx, fields) {
			var out sql.File
			if err == nil {
				out, err = s.rowFile(ctx, e, f, fields)
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// withAdds yields the files, with their adds if one of the fields is a partition
// column.
func (s *Snapshot) withAdds(ctx context.Context, fields []Field) iter.Seq2[FileAdd, error] {
	if slices.ContainsFunc(fields, s.isPartition) {
		return s.AllAdds(ctx)
	}
	return func(yield func(FileAdd, error) bool) {
		for f, err := range s.Files(ctx) {
			if !yield(FileAdd{File: f}, err) || err != nil {
				return
			}
		}
	}
}

func (s *Snapshot) isPartition(f Field) bool {
	return slices.ContainsFunc(s.PartitionFields(), func(p Field) bool { return p.Name == f.Name })
}

// rowFile opens a file for the engine.
func (s *Snapshot) rowFile(ctx context.Context, e *sql.Engine, f FileAdd, fields []Field) (sql.File, error) {
	constants, err := s.rowConstants(f.Add, fields)
	if err != nil {
		return sql.File{}, s.table.fileFault(f.File, err)
	}
	file, err := s.table.openLocal(ctx, e, f.File)
	return sql.File{File: file, Name: f.Path, Constants: constants}, err
}

// rowConstants are the values of the partition columns among the fields.
func (s *Snapshot) rowConstants(add *action.Add, fields []Field) (map[int]sql.Constant, error) {
	out := map[int]sql.Constant{}
	for i, f := range fields {
		if !s.isPartition(f) {
			continue
		}
		text := partitionValue(f, add.PartitionValues)
		value, err := partitionConstant(f.Type, text)
		if err != nil {
			return nil, fault.Wrap(ErrBroken, err, "the partition value %q is no %s", *text, f.Type).
				InFile(add.Path).OnColumn(f.Name)
		}
		out[i] = constantText(f.Type, value)
	}
	return out, nil
}

// openLocal opens a data file, as it is served, as a local file: the file itself
// if it is served as it lies on disk, else a temporary one without a name.
func (t *Table) openLocal(ctx context.Context, e *sql.Engine, f File) (*os.File, error) {
	r, err := t.Open(ctx, f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Content().Raw() && r.File() != nil {
		// A descriptor of our own outlives the reader.
		return duplicate(r.File())
	}
	out, err := e.TempFile()
	if err != nil {
		return nil, err
	}
	if err := WriteContent(ctx, r, out); err != nil {
		out.Close()
		return nil, t.fileFault(f, err)
	}
	return out, nil
}
