package parquetfile

import (
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

type inner struct {
	A *int32  `parquet:"a,optional"`
	B *string `parquet:"b,optional"`
}

type row struct {
	ID    int64            `parquet:"id"`
	Name  *string          `parquet:"name,optional,dict"`
	Score *float64         `parquet:"score,optional"`
	Tags  []string         `parquet:"tags,list"`
	Props map[string]int64 `parquet:"props"`
	In    *inner           `parquet:"in,optional"`
}

func ptr[T any](v T) *T { return &v }

func makeRows(n int) []row {
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{ID: int64(i - n/2), Props: map[string]int64{"k": int64(i)}}
		if i%3 != 0 {
			rows[i].Name = ptr(strings.Repeat("x", i%7) + string(rune('a'+i%26)))
			rows[i].Score = ptr(float64(i) / 3)
			rows[i].Tags = []string{"t", "u"}[:i%3]
		}
		if i%4 != 0 {
			rows[i].In = &inner{}
			if i%2 == 0 {
				rows[i].In.A = ptr(int32(i))
			}
		}
	}
	return rows
}

// encode writes rows as a Parquet file with row groups of the given size.
func encode[T any](t testing.TB, rows []T, group int, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	for len(rows) > 0 {
		n := min(group, len(rows))
		if _, err := w.Write(rows[:n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		rows = rows[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sample(t testing.TB) []byte {
	return encode(t, makeRows(300), 100, parquet.Compression(&parquet.Snappy), parquet.PageBufferSize(512),
		parquet.BloomFilters(parquet.SplitBlockFilter(10, "id")))
}

func checkBytes(b []byte) (*File, error) { return Check(bytes.NewReader(b), int64(len(b))) }

func footerStart(b []byte) int {
	return len(b) - 8 - int(binary.LittleEndian.Uint32(b[len(b)-8:]))
}

func decodeFooter(t testing.TB, b []byte) *format.FileMetaData {
	t.Helper()
	meta := new(format.FileMetaData)
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[footerStart(b):len(b)-8], meta); err != nil {
		t.Fatal(err)
	}
	return meta
}

// withFooter puts meta behind data.
func withFooter(t testing.TB, data []byte, meta *format.FileMetaData) []byte {
	t.Helper()
	foot, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	out := append(bytes.Clone(data), foot...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(foot)))
	return append(out, magic...)
}

// insert puts extra bytes at off and shifts what the footer says about what
// comes behind.
func insert(t testing.TB, b []byte, off int64, extra []byte) []byte {
	t.Helper()
	meta := decodeFooter(t, b)
	shift := func(p *int64) {
		if *p >= off {
			*p += int64(len(extra))
		}
	}
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			for _, p := range []*int64{
				&c.FileOffset, &c.OffsetIndexOffset, &c.ColumnIndexOffset, &c.MetaData.DataPageOffset,
				&c.MetaData.DictionaryPageOffset, &c.MetaData.BloomFilterOffset,
			} {
				shift(p)
			}
		}
	}
	data := append(bytes.Clone(b[:off]), extra...)
	return withFooter(t, append(data, b[off:footerStart(b)]...), meta)
}

// tables returns the folder with the test tables.
func tables(t testing.TB) string {
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES is not set: it names the folder with the test tables")
	}
	return root
}

// eachFile calls visit with every Parquet file of the test tables.
func eachFile(t *testing.T, visit func(name string, r io.ReaderAt, size int64)) {
	root := tables(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".parquet") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			visit(name, f, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
