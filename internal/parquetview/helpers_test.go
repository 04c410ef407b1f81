package parquetview

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

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

func decodeFooter(t testing.TB, b []byte) (*format.FileMetaData, int) {
	t.Helper()
	meta := new(format.FileMetaData)
	start := len(b) - 8 - int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[start:len(b)-8], meta); err != nil {
		t.Fatal(err)
	}
	return meta, start
}

// edit changes the footer of a file.
func edit(t testing.TB, b []byte, change func(m *format.FileMetaData)) []byte {
	t.Helper()
	meta, start := decodeFooter(t, b)
	change(meta)
	foot, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	out := append(bytes.Clone(b[:start]), foot...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(foot)))
	return append(out, magic...)
}

func plan(b []byte, w Wanted) (*View, error) {
	return Plan(context.Background(), bytes.NewReader(b), int64(len(b)), w)
}

// file is a file in memory.
type file []byte

func (f file) WriteAt(p []byte, off int64) (int, error) {
	if off > int64(len(f)) {
		return 0, io.ErrShortWrite
	}
	n := copy(f[off:], p)
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// serve plans and renders a file, and checks what holds for every view.
func serve(t testing.TB, b []byte, w Wanted) (*View, []byte) {
	t.Helper()
	v, err := plan(b, w)
	if err != nil {
		t.Fatal(err)
	}
	checkView(t, v, b)
	out := make(file, v.Size)
	if err := v.Render(context.Background(), bytes.NewReader(b), out); err != nil {
		t.Fatal(err)
	}
	return v, out
}

// checkView checks that the segments follow each other and fill the file.
func checkView(t testing.TB, v *View, b []byte) {
	t.Helper()
	if v.Raw {
		if v.Size != int64(len(b)) || v.Segments != nil {
			t.Errorf("a raw view of %d bytes with %d segments, the file has %d bytes", v.Size, len(v.Segments), len(b))
		}
		return
	}
	end := int64(0)
	for i, s := range v.Segments {
		if s.Offset != end || s.Length <= 0 {
			t.Errorf("segment %d is %d bytes at %d, the one before ends at %d", i, s.Length, s.Offset, end)
		}
		if s.Bytes != nil && int64(len(s.Bytes)) != s.Length {
			t.Errorf("segment %d of %d bytes has %d", i, s.Length, len(s.Bytes))
		}
		if s.Raw && (s.RawOffset < 0 || s.RawOffset+s.Length > int64(len(b))) {
			t.Errorf("segment %d is bytes %d to %d of %d", i, s.RawOffset, s.RawOffset+s.Length, len(b))
		}
		end = s.Offset + s.Length
	}
	if end != v.Size {
		t.Errorf("the segments end at %d, the file at %d", end, v.Size)
	}
}

// rowsOf reads all rows as JSON, a line each.
func rowsOf(t testing.TB, b []byte) []string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)), parquet.SkipPageIndex(true))
	if err != nil {
		t.Fatal(err)
	}
	r := parquet.NewGenericReader[any](f)
	defer r.Close()
	rows := make([]any, f.NumRows())
	if n, err := r.Read(rows); n != len(rows) || err != nil && err != io.EOF {
		t.Fatalf("read %d of %d rows: %v", n, len(rows), err)
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = string(line)
	}
	return lines
}
