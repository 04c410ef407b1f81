package writer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
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
	n, err := w.Live().Lookup(ctx, Caller{PID: 2}, "", "sales.parquet")
	if err != nil || n.File == nil {
		t.Fatalf("the name means %+v, %v", n, err)
	}
	if got := w.Live().Version(); got != 1 {
		t.Fatalf("version %d, want 1", got)
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
	add := addOf(t, table, n.File)
	if !strings.Contains(add.Stats, `"numRecords":3`) || *add.Tags[snapshot.TagName] != "sales.parquet" {
		t.Errorf("add is %+v", add)
	}
	info, err := r.File().Stat()
	if err != nil || info.ModTime().UnixMilli() != add.ModificationTime {
		t.Errorf("modificationTime %d is not the file's", add.ModificationTime)
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

// openPartitioned makes a table partitioned by k.
func openPartitioned(t *testing.T, o Options) (*Table, *snapshot.Table, string) {
	t.Helper()
	dir := t.TempDir()
	meta := testMetadata()
	meta.PartitionColumns = []string{"k"}
	localTable(t, dir, actions{testProtocol(1, 2), meta})
	table := openTable(t, dir)
	w, err := Open(context.Background(), table, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(context.Background()) })
	return w, table, dir
}

// valuesFile is a file with column v alone.
func valuesFile(t *testing.T, values ...int64) []byte {
	t.Helper()
	type row struct {
		V *int64 `parquet:"v,optional"`
	}
	var b bytes.Buffer
	rows := make([]row, len(values))
	for i := range values {
		rows[i].V = &values[i]
	}
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDroppedFileGetsTheValuesOfItsDirectory(t *testing.T) {
	ctx := context.Background()
	w, table, dir := openPartitioned(t, Options{})
	l := w.Live()
	for name, want := range map[string]*string{
		"k=a b%2Fc%3Dd%25e":            ptr("a b/c=d%e"),
		"K=upper":                      ptr("upper"),
		"k=":                           nil,
		"k=__HIVE_DEFAULT_PARTITION__": nil,
	} {
		if err := l.Mkdir(ctx, "", name); err != nil && !errors.Is(err, ErrExist) {
			t.Fatal(err)
		}
		file := strings.Trim(name, "%=") + ".parquet"
		if err := copyIn(l, Caller{PID: 1}, name, file, valuesFile(t, 1)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n, err := l.Lookup(ctx, Caller{PID: 1}, name, file)
		if err != nil || n.File == nil {
			t.Fatalf("%s: %+v, %v", name, n, err)
		}
		values := addOf(t, table, n.File).PartitionValues
		got, ok := values["k"]
		if !ok || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: partition values are %v", name, values)
		}
		r, err := table.Open(ctx, *n.File)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.Close()
	}
	var names []string
	for e, err := range l.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "k=__HIVE_DEFAULT_PARTITION__ k=a b%2Fc%3Dd%25e k=upper" {
		t.Errorf("listed %q", got)
	}
	err := copyIn(l, Caller{PID: 1}, "", "root.parquet", valuesFile(t, 1))
	if !errors.Is(err, ErrMisfit) || !strings.Contains(fault.Hint(err), "k=<value>") {
		t.Errorf("at the root: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "k=a b%2Fc%3Dd%25e")); err != nil {
		t.Error(err)
	}
}

func TestReplaceRenameAndRemoveInATable(t *testing.T) {
	ctx := context.Background()
	var events []snapshot.Event
	var w *Table
	w, _, _ = openPartitioned(t, Options{OnRefresh: func(ctx context.Context, ev snapshot.Event) {
		events = append(events, ev)
		w.Live().Refreshed(ctx, ev)
	}})
	l := w.Live()
	k := newKernel(l, 1)
	k.run(t, "mkdir k=a; mkdir k=b")
	if err := copyIn(l, Caller{PID: 1}, "k=a", "x.parquet", valuesFile(t, 1)); err != nil {
		t.Fatal(err)
	}
	k.run(t, "open h k=a/x.parquet trunc")
	s := k.handles["h"].s
	if _, err := s.WriteAt(ctx, valuesFile(t, 2, 3), 0); err != nil {
		t.Fatal(err)
	}
	k.run(t, "flush h; close h; rename k=a/x.parquet k=a/y.parquet; rename k=a/y.parquet k=b/z.parquet; !noent stat k=a; unlink k=b/z.parquet; rmdir k=b")
	want := []string{"WRITE", "WRITE", "Manual Update", "WRITE", "DELETE"}
	for v, op := range want {
		got, ok := commitOperation(t, w, int64(v+1))
		if !ok || got != op {
			t.Errorf("version %d is %q, want %q", v+1, got, op)
		}
	}
	if l.Version() != int64(len(want)) || len(events) == 0 || events[len(events)-1].To != l.Version() {
		t.Errorf("version %d, events %+v", l.Version(), events)
	}
}

func commitOperation(t *testing.T, w *Table, v int64) (string, bool) {
	t.Helper()
	as, err := w.table.ReadCommit(context.Background(), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range as {
		if info, ok := a.(*action.CommitInfo); ok {
			return info.Operation()
		}
	}
	return "", false
}

func TestJoinedFilesAreRefusedAtTheWriteThatJoinsThem(t *testing.T) {
	ctx := context.Background()
	w, _, _ := openLiveTable(t, Options{})
	s, err := w.Live().Create(ctx, Caller{}, "", "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer s.CloseHandle(true)
	one := tableFile(t, 1)
	if _, err := s.WriteAt(ctx, one, 0); err != nil {
		t.Fatal(err)
	}
	_, err = s.WriteAt(ctx, tableFile(t, 2), int64(len(one)))
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "joined") {
		t.Fatalf("write: %v", err)
	}
	if w.Live().Version() != 0 {
		t.Errorf("version %d", w.Live().Version())
	}
}

// addOf returns the add of a committed file.
func addOf(t *testing.T, table *snapshot.Table, f *snapshot.File) *action.Add {
	t.Helper()
	s, err := table.At(context.Background(), table.Latest())
	if err != nil {
		t.Fatal(err)
	}
	adds, err := s.Adds(context.Background(), *f)
	if err != nil {
		t.Fatal(err)
	}
	return adds[0]
}
