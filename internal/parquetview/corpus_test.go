package parquetview

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/parquet-go/parquet-go"

	"github.com/deltafs/deltafs/internal/parquetfile"
)

// typeOf is the type that a table with this column would have.
func typeOf(n *parquetfile.Node) Type {
	if n.Leaf() {
		for _, t := range []Type{
			of(Boolean), of(Int8), of(Int16), of(Int32), of(Int64), of(Float32), of(Float64), of(String), of(Binary), of(Date),
			of(Timestamp), of(TimestampNTZ), {Kind: Decimal, Precision: int(n.Logical.Precision), Scale: int(n.Logical.Scale)},
		} {
			if f, ok := fit(n, t); ok && f.same && !n.Repeated() {
				return t
			}
		}
		return of(Other)
	}
	if element, _ := n.Element(); element != nil {
		return of(List, Field{Type: typeOf(element)})
	}
	if key, value, _ := n.KeyValue(); key != nil {
		return of(Map, Field{Type: typeOf(key)}, Field{Type: typeOf(value)})
	}
	if n.Repeated() || n.Logical.Kind != parquetfile.None {
		return of(Other)
	}
	return of(Struct, fieldsOf(n)...)
}

func fieldsOf(n *parquetfile.Node) []Field {
	var fields []Field
	for _, c := range n.Children {
		fields = append(fields, same(c.Name, typeOf(c)))
	}
	return fields
}

// rename renames all fields that a table names.
func rename(fields []Field) {
	for i := range fields {
		fields[i].Name += "'"
		rename(fields[i].Type.Fields)
	}
}

// eachFile calls visit with every Parquet file of the test tables.
func eachFile(t testing.TB, visit func(name string, b []byte)) {
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES is not set: it names the folder with the test tables")
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".parquet") {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil {
			visit(path, b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rowsIfReadable reads the rows of files that the library can read.
func rowsIfReadable(b []byte) (rows []parquet.Row) {
	defer func() {
		if recover() != nil {
			rows = nil
		}
	}()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil
	}
	for _, g := range f.RowGroups() {
		r := g.Rows()
		defer r.Close()
		for n := int64(0); n < min(200, g.NumRows()); n++ {
			row := make([]parquet.Row, 1)
			if k, _ := r.ReadRows(row); k != 1 {
				return nil
			}
			rows = append(rows, row[0].Clone())
		}
	}
	return rows
}

func TestFilesOfRealWritersAreServedUnderOtherNames(t *testing.T) {
	files, raw, compared := 0, 0, 0
	eachFile(t, func(name string, b []byte) {
		foot, err := parquetfile.ReadFooter(bytes.NewReader(b), int64(len(b)))
		if err != nil || foot.Encrypted {
			if _, err := plan(b, Wanted{Columns: []Field{same("x", of(Int32))}}); err == nil {
				t.Errorf("%s: planned, but it does not decode", name)
			}
			return
		}
		files++
		wanted := Wanted{Columns: fieldsOf(foot.Root)}
		v, err := plan(b, wanted)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if v.Raw {
			raw++
		}
		if strings.HasSuffix(name, "nested-unsigned-malformed.parquet") {
			if _, err := plan(b, Wanted{Columns: wanted.Columns[:1], Deleted: roaring64.BitmapOf(0)}); !errors.Is(err, ErrBroken) {
				t.Errorf("%s has 2 rows and 4 values: %v", name, err)
			}
			return
		}
		rename(wanted.Columns)
		slices.Reverse(wanted.Columns)
		v, out := serve(t, b, wanted)
		meta, _ := decodeFooter(t, out)
		source, _ := decodeFooter(t, b)
		if v.Raw || meta.NumRows != source.NumRows || len(meta.Schema) < len(source.Schema) {
			t.Errorf("%s: raw %t, %d rows", name, v.Raw, meta.NumRows)
		}
		var want []parquet.Row
		if compared < 300 && len(b) < 32<<10 {
			want = rowsIfReadable(b)
		}
		if len(want) == 0 {
			return
		}
		compared++
		got := rowsIfReadable(out)
		if len(got) != len(want) {
			t.Errorf("%s: %d rows instead of %d", name, len(got), len(want))
			return
		}
		for i := range want {
			if !sameRow(foot, got[i], want[i]) {
				t.Errorf("%s: row %d is %v instead of %v", name, i, got[i], want[i])
				return
			}
		}
	})
	if files < 1000 || raw < files*3/4 || compared < 300 {
		t.Errorf("%d files, %d of them raw, %d compared", files, raw, compared)
	}
	t.Logf("%d files, %d of them raw, %d compared", files, raw, compared)
}

// sameRow compares rows whose top-level columns are in the opposite order.
func sameRow(foot *parquetfile.Footer, got, want parquet.Row) bool {
	var order []int
	for _, c := range slices.Backward(foot.Root.Children) {
		for _, leaf := range c.Leaves() {
			order = append(order, leaf.Column)
		}
	}
	byColumn := make([]parquet.Row, len(foot.Columns()))
	for _, v := range want {
		byColumn[v.Column()] = append(byColumn[v.Column()], v)
	}
	var sorted parquet.Row
	for _, column := range order {
		sorted = append(sorted, byColumn[column]...)
	}
	return slices.EqualFunc(got, sorted, func(a, b parquet.Value) bool {
		return parquet.DeepEqual(a, b) || a.DefinitionLevel() == b.DefinitionLevel() && a.Kind() == b.Kind() && bytes.Equal(a.Bytes(), b.Bytes())
	})
}
