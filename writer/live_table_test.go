package writer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/parquet-go/parquet-go"
)

type testRow struct {
	V *int64  `parquet:"v,optional"`
	K *string `parquet:"k,optional"`
}

// tableFile is a file with the given values in column v.
func tableFile(t *testing.T, values ...int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[testRow](&b)
	for _, v := range values {
		if _, err := w.Write([]testRow{{V: &v, K: ptr("x")}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// openLiveTable makes a table in a new directory and opens its write side.
func openLiveTable(t *testing.T, o Options, config ...string) (*Table, *snapshot.Table, string) {
	t.Helper()
	dir := t.TempDir()
	localTable(t, dir, actions{testProtocol(1, 2), testMetadata(config...)})
	table := openTable(t, dir)
	w, err := Open(context.Background(), table, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	return w, table, dir
}

// copyIn does what cp does.
func copyIn(l *Live, c Caller, dir, name string, data []byte) error {
	ctx := context.Background()
	s, err := l.Create(ctx, c, dir, name)
	if err != nil {
		return err
	}
	defer s.CloseHandle(true)
	if _, err := s.WriteAt(ctx, data, 0); err != nil {
		return err
	}
	return s.Flush(ctx)
}

func TestClosingACompleteFileAppendsItToTheTable(t *testing.T) {
	ctx := context.Background()
	w, table, dir := openLiveTable(t, Options{})
	data := tableFile(t, 1, 2, 3)
	if err := copyIn(w.Live(), Caller{PID: 1}, "", "sales.parquet", data); err != nil {
		t.Fatal(err)
	}
	if got := w.Live().Version(); got != 1 {
		t.Fatalf("version %d, want 1", got)
	}
	n, err := w.Live().Lookup(ctx, Caller{PID: 2}, "", "sales.parquet")
	if err != nil || n.File == nil {
		t.Fatalf("the name means %+v, %v", n, err)
	}
	r, err := table.Open(ctx, *n.File)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, len(data))
	if _, err := r.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("other bytes than were written, %v", err)
	}
	if !strings.Contains(n.File.Add.Stats, `"numRecords":3`) || *n.File.Add.Tags[snapshot.TagName] != "sales.parquet" {
		t.Errorf("add is %+v", n.File.Add)
	}
	info, err := r.File().Stat()
	if err != nil || info.ModTime().UnixMilli() != n.File.Add.ModificationTime {
		t.Errorf("modificationTime %d is not the file's", n.File.Add.ModificationTime)
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, areaDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf(".deltafs is left behind: %v", err)
	}
}

func TestRefusedFileFailsTheWriteAndIsKept(t *testing.T) {
	ctx := context.Background()
	w, _, _ := openLiveTable(t, Options{})
	type other struct {
		Z int64 `parquet:"z"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []other{{1}}); err != nil {
		t.Fatal(err)
	}
	s, err := w.Live().Create(ctx, Caller{}, "", "bad.parquet")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.WriteAt(ctx, b.Bytes(), 0)
	if !errors.Is(err, ErrMisfit) {
		t.Fatalf("write returned %v", err)
	}
	if again := s.Flush(ctx); !errors.Is(again, ErrMisfit) {
		t.Errorf("flush returned %v", again)
	}
	if _, err := w.Live().Lookup(ctx, Caller{}, "", "bad.parquet"); !errors.Is(err, ErrNotExist) {
		t.Errorf("the name still resolves: %v", err)
	}
	files, err := w.Live().Rejected(ctx)
	if err != nil || len(files) != 1 || files[0].Wanted != "bad.parquet" || !strings.Contains(files[0].Reason, "z") || files[0].Hint == "" {
		t.Fatalf("rejected are %+v, %v", files, err)
	}
	kept, err := os.ReadFile(files[0].Path)
	if err != nil || !bytes.Equal(kept, b.Bytes()) {
		t.Errorf("the rejected bytes differ: %v", err)
	}
	got := make([]byte, b.Len())
	if _, err := s.ReadAt(got, 0); err != nil || !bytes.Equal(got, b.Bytes()) {
		t.Errorf("the open handle reads other bytes: %v", err)
	}
	s.CloseHandle(true)
	if w.Live().Version() != 0 {
		t.Errorf("version is %d", w.Live().Version())
	}
}
