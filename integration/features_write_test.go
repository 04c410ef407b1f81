package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// deletedRows are those of someVector, and someVector is a member of adds and
// removes.
var deletedRows = []int64{3, 4, 7, 11, 18, 29}

const someVector = `"deletionVector":{"storageType":"i","pathOrInlineDv":"^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",` +
	`"sizeInBytes":44,"cardinality":6}`

// undeleted are the ids of the first n rows without those that are deleted.
func undeleted(n int64) (out []int64) {
	for id := range n {
		if !slices.Contains(deletedRows, id) {
			out = append(out, id)
		}
	}
	return out
}

// ids reads the column id page by page, up to its last value: what may follow is
// no page with values, which this library does not pass over.
func ids(t *testing.T, path string) (out []int64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.RowGroups() {
		chunk := group.ColumnChunks()[file.Root().Column("id").Index()]
		pages := chunk.Pages()
		for left := chunk.NumValues(); left > 0; {
			page, err := pages.ReadPage()
			if err != nil {
				t.Fatal(err)
			}
			values := make([]parquet.Value, page.NumValues())
			if n, err := page.Values().ReadValues(values); n != len(values) {
				t.Fatalf("%d of %d values: %v", n, len(values), err)
			}
			for _, v := range values {
				out = append(out, v.Int64())
			}
			left -= int64(len(values))
		}
		pages.Close()
	}
	return out
}

// startWithVector mounts a table whose version 1 has 40 rows in a.parquet, six
// of them deleted.
func startWithVector(t *testing.T, flags ...string) (table string, m *harness.Mount) {
	t.Helper()
	table = filepath.Join(t.TempDir(), "table")
	f, err := fixture.Create(table, fixture.Spec{Protocol: `{"minReaderVersion":3,"minWriterVersion":7,` +
		`"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}`})
	if err != nil {
		t.Fatal(err)
	}
	data := fixture.Parquet(fixture.Rows(0, 40))
	if err := os.WriteFile(filepath.Join(table, "a.parquet"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	stats, _ := json.Marshal(`{"numRecords":40}`)
	if err := f.Commit("DELETE", addPath("a.parquet", int64(len(data)), someVector, `"stats":`+string(stats))); err != nil {
		t.Fatal(err)
	}
	return table, harness.Start(t, table, flags...)
}

// commitText is the text of a commit file.
func commitText(t *testing.T, table string, v int64) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(table, "_delta_log", fmt.Sprintf("%020d.json", v)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantVectorRemoved checks that a commit removes a.parquet together with its
// vector, and returns the lines with adds.
func wantVectorRemoved(t *testing.T, table string, v int64) (adds []string) {
	t.Helper()
	removed := false
	for line := range strings.SplitSeq(commitText(t, table, v), "\n") {
		switch {
		case strings.HasPrefix(line, `{"remove":`):
			removed = strings.Contains(line, `"path":"a.parquet"`) && strings.Contains(line, someVector)
		case strings.HasPrefix(line, `{"add":`):
			adds = append(adds, line)
		}
	}
	if !removed {
		t.Errorf("version %d does not remove the file with its vector:\n%s", v, commitText(t, table, v))
	}
	return adds
}

func TestFileWithADeletionVectorIsWrittenAsItIsShown(t *testing.T) {
	table, m := startWithVector(t)
	want := undeleted(40)
	if got := ids(t, m.Path("@v1", "a.parquet")); !slices.Equal(got, want) {
		t.Fatalf("rows %v, want %v", got, want)
	}
	// What is shown, written again, changes nothing.
	copied := filepath.Join(t.TempDir(), "copy")
	harness.Must(t, "cp", m.Path("@v1", "a.parquet"), copied)
	harness.Must(t, "cp", copied, m.Current("a.parquet"))
	if v := m.Latest(); v != 1 {
		t.Errorf("the same rows made version %d", v)
	}
	// Files beside it come as ever.
	harness.Must(t, "cp", copied, m.Current("b.parquet"))
	if text := commitText(t, table, m.Latest()); m.Latest() != 2 || strings.Contains(text, "a.parquet") || strings.Contains(text, "deletionVector") {
		t.Errorf("version %d:\n%s", m.Latest(), text)
	}
	// A new name does not bring deleted rows back.
	harness.Must(t, "mv", m.Current("a.parquet"), m.Current("c.parquet"))
	if got := ids(t, m.Current("c.parquet")); !slices.Equal(got, want) {
		t.Errorf("renamed: rows %v, want %v", got, want)
	}
	// Taken out and put back it is what was shown.
	if err := os.Rename(m.Current("c.parquet"), m.Current(".out.tmp")); err != nil {
		t.Fatal(err)
	}
	if adds := wantVectorRemoved(t, table, 4); len(adds) != 0 {
		t.Errorf("adds %s", adds)
	}
	if err := os.Rename(m.Current(".out.tmp"), m.Current("a.parquet")); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, m.Current("a.parquet")); !slices.Equal(got, want) {
		t.Errorf("put back: rows %v, want %v", got, want)
	}
}

func TestReplacingAFileRemovesItsDeletionVector(t *testing.T) {
	table, m := startWithVector(t)
	next := filepath.Join(t.TempDir(), "next")
	if err := fixture.WriteParquet(next, fixture.Rows(100, 40)); err != nil {
		t.Fatal(err)
	}
	harness.Must(t, "cp", next, m.Current("a.parquet"))
	adds := wantVectorRemoved(t, table, 2)
	if len(adds) != 1 || strings.Contains(adds[0], "deletionVector") {
		t.Errorf("adds %s", adds)
	}
	if got := ids(t, m.Current("a.parquet")); len(got) != 40 || got[3] != 103 {
		t.Errorf("rows %v", got)
	}
	if got := ids(t, m.Path("@v1", "a.parquet")); !slices.Equal(got, undeleted(40)) {
		t.Errorf("the old version has rows %v", got)
	}
}

func TestRemovingAFileRemovesItsDeletionVector(t *testing.T) {
	table, m := startWithVector(t)
	harness.Must(t, "rm", m.Current("a.parquet"))
	m.Unmount()
	if adds := wantVectorRemoved(t, table, 2); len(adds) != 0 {
		t.Errorf("adds %s", adds)
	}
}

func TestBrokenDeletionVectorHidesNoDeletion(t *testing.T) {
	table, m := startWithVector(t)
	m.Unmount()
	log := filepath.Join(table, "_delta_log", fmt.Sprintf("%020d.json", 1))
	text := strings.Replace(commitText(t, table, 1), `"cardinality":6`, `"cardinality":7`, 1)
	if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m = harness.Start(t, table)
	f, err := os.Open(m.Path("@v1", "a.parquet"))
	if err == nil {
		_, err = io.ReadAll(f)
		f.Close()
	}
	if harness.Errno(err) != syscall.EIO {
		t.Errorf("reading gave %v, want EIO", err)
	}
	named := false
	for _, f := range m.Failures() {
		named = named || strings.Contains(f.Reason, "deletion vector")
	}
	if !named {
		t.Errorf("no reason names the deletion vector: %+v", m.Failures())
	}
}

// TestMappedTableIsReadAndNotWritten: a file as tools write it has not the names
// that such a table's files have.
func TestMappedTableIsReadAndNotWritten(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table")
	field := func(name, kind, physical string, id int) string {
		return fmt.Sprintf(`{"name":%q,"type":%q,"nullable":true,"metadata":{"delta.columnMapping.id":%d,"delta.columnMapping.physicalName":%q}}`,
			name, kind, id, physical)
	}
	f, err := fixture.Create(table, fixture.Spec{
		Protocol:   `{"minReaderVersion":2,"minWriterVersion":5}`,
		Properties: map[string]string{"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
		Schema:     `{"type":"struct","fields":[` + field("id", "long", "col-1", 1) + `,` + field("name", "string", "id", 2) + `]}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	type physical struct {
		Number int64  `parquet:"col-1"`
		Text   string `parquet:"id"`
	}
	data := fixture.Parquet([]physical{{7, "seven"}, {8, "eight"}})
	err = os.WriteFile(filepath.Join(table, "a.parquet"), data, 0o644)
	if err == nil {
		err = f.Commit("WRITE", addPath("a.parquet", int64(len(data))))
	}
	if err != nil {
		t.Fatal(err)
	}
	m := harness.Start(t, table)
	rows, err := fixture.ReadParquet(m.Path("@v1", "a.parquet"))
	if err != nil || !slices.Equal(rows, []fixture.Row{{ID: 7, Name: "seven"}, {ID: 8, Name: "eight"}}) {
		t.Errorf("rows %v, %v", rows, err)
	}
	fitting := fixture.Parquet(rows)
	for what, err := range map[string]error{
		"append":  os.WriteFile(m.Current("b.parquet"), fitting, 0o644),
		"replace": os.WriteFile(m.Current("a.parquet"), fitting, 0o644),
		"remove":  os.Remove(m.Current("a.parquet")),
		"rename":  os.Rename(m.Current("a.parquet"), m.Current("c.parquet")),
		"move":    os.Rename(m.Current("a.parquet"), m.Current(".a.tmp")),
	} {
		if harness.Errno(err) != syscall.EROFS {
			t.Errorf("%s gave %v, want EROFS", what, err)
		}
	}
	if v := m.Latest(); v != 1 {
		t.Errorf("version %d was made", v)
	}
	named := false
	for _, f := range m.Failures() {
		named = named || strings.Contains(f.Reason, "column mapping")
	}
	if !named {
		t.Errorf("no reason names column mapping: %+v", m.Failures())
	}
}
