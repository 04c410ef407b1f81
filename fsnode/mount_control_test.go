package fsnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// jsonLines decodes a text of one JSON object a line.
func jsonLines(t *testing.T, text []byte) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(string(text)) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, o)
	}
	return out
}

func TestControlDirectoryOfAVersionTellsItsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	kept := tab.add("p=1/a.parquet", []byte("file a"), map[string]string{"p": "1"})["add"].(map[string]any)
	kept["stats"] = `{"numRecords":7}`
	dv := map[string]any{"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
		"sizeInBytes": 40, "cardinality": 6}
	removed := tab.remove("p=1/a.parquet")
	removed["remove"].(map[string]any)["deletionVector"] = dv
	tab.commit(removed, map[string]any{"add": kept})
	m := mount(t, dir)

	want := []string{textChanges, textCommit, textDetail, textFiles, textHistory, textProperties, textProtocol, textDDL, textSchema}
	if got := m.names("@v1/.delta"); !slices.Equal(got, want) {
		t.Errorf("names: %v", got)
	}
	lines := jsonLines(t, m.read("@v3/.delta", textFiles))
	wantLines := []map[string]any{
		{"name": "p=1/a.parquet", "path": "p=1/a.parquet", "size": 6.0, "rawSize": 6.0, "rows": 7.0, "numRecords": 7.0,
			"deletedRows": 0.0, "modified": "2024-05-01T13:00:00.000Z", "partitionValues": map[string]any{"p": "1"}},
		{"name": "p=2/c.parquet", "path": "p=2/c.parquet", "size": float64(3 << 20), "rawSize": float64(3 << 20), "rows": nil,
			"numRecords": nil, "deletedRows": 0.0, "modified": "2024-05-01T12:00:00.000Z", "partitionValues": map[string]any{"p": "2"}},
	}
	if !reflect.DeepEqual(lines, wantLines) {
		t.Errorf("files of @v3: %v", lines)
	}
	if got := len(jsonLines(t, m.read("@v0/.delta", textFiles))); got != 0 {
		t.Errorf("files of @v0: %d", got)
	}
	wantLines = []map[string]any{
		{"action": "remove", "path": "p=1/a.parquet", "size": nil, "dataChange": true, "rows": nil, "deletedRows": 6.0},
		{"action": "add", "path": "p=1/a.parquet", "size": 6.0, "dataChange": true, "rows": 7.0, "deletedRows": 0.0},
	}
	if lines := jsonLines(t, m.read("@v3/.delta", textChanges)); !reflect.DeepEqual(lines, wantLines) {
		t.Errorf("changes of @v3: %v", lines)
	}
	for v := range 4 {
		raw, err := os.ReadFile(filepath.Join(dir, logDir, fmt.Sprintf("%020d.json", v)))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.read(versionName(int64(v)), ".delta", textCommit); !bytes.Equal(got, raw) {
			t.Errorf("commit of version %d: %s", v, got)
		}
	}
	if err := write(m.join("@v3/.delta", textFiles), nil); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write: %v", err)
	}
}

// checkpoint writes a checkpoint of the newest version.
func checkpoint(t *testing.T, dir string) {
	t.Helper()
	st, err := store.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	table, err := snapshot.Open(t.Context(), st, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if got, err := writer.Checkpoint(t.Context(), table, writer.Options{}); err != nil || !got.Written {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestCommitThatIsGoneIsNotTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	checkpoint(t, dir)
	for v := range tab.next {
		if err := os.Remove(filepath.Join(dir, logDir, fmt.Sprintf("%020d.json", v))); err != nil {
			t.Fatal(err)
		}
	}
	tab.commit(tab.remove("p=1/a.parquet"))
	m := mount(t, dir)
	for _, name := range []string{textChanges, textCommit} {
		if slices.Contains(m.names("@v2/.delta"), name) {
			t.Errorf("%s is listed", name)
		}
		if _, err := os.Lstat(m.join("@v2/.delta", name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := len(jsonLines(t, m.read("@v2/.delta", textFiles))); got != 2 {
		t.Errorf("the version has %d files", got)
	}
	if got := len(jsonLines(t, m.read("@v3/.delta", textChanges))); got != 1 {
		t.Errorf("the next version has %d changes", got)
	}
}

// TestGrepCountsTheFilesOfAVersion also makes more text than a pipe or a page
// holds.
func TestGrepCountsTheFilesOfAVersion(t *testing.T) {
	const files = 2000
	dir := filepath.Join(t.TempDir(), "t")
	tab := makeTable(t, dir, "p")
	var adds []map[string]any
	for i := range files {
		p := fmt.Sprint(i % 3)
		adds = append(adds, map[string]any{"add": map[string]any{
			"path": fmt.Sprintf("p=%s/part-%d.parquet", p, i), "partitionValues": map[string]string{"p": p}, "size": 100 + i,
			"modificationTime": tab.time.UnixMilli(), "dataChange": i%2 == 0,
		}})
	}
	tab.commit(adds...)
	tab.commit(tab.remove("p=0/part-0.parquet"))
	m := mount(t, dir)
	for _, c := range []struct{ pattern, file, want string }{
		{"", "@v1/.delta/files.jsonl", "2000"},
		{"", "latest/.delta/files.jsonl", "1999"},
		{`"partitionValues":{"p":"1"}`, "@v2/.delta/files.jsonl", "667"},
		{`"action":"add"`, "@v1/.delta/changes.jsonl", "2000"},
		{`"dataChange":false`, "@v1/.delta/changes.jsonl", "1000"},
		{`"action":"remove"`, "@v2/.delta/changes.jsonl", "1"},
	} {
		got, err := run(t, "grep", "-c", "--", c.pattern, m.join(c.file))
		if err != nil || strings.TrimSpace(got) != c.want {
			t.Errorf("grep -c %q %s: %s, %v; want %s", c.pattern, c.file, got, err, c.want)
		}
	}
}
