package snapshot

import (
	"context"
	"fmt"
	"github.com/deltafs/deltafs/internal/action"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/store"
)

// Lines of a plain table with the columns id and k.
const (
	protocolLine = `{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}`
	schemaText   = `{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},` +
		`{\"name\":\"k\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}}]}`
)

func metadataLine(partitionColumns string, configuration ...string) string {
	var conf []string
	for i := 0; i+1 < len(configuration); i += 2 {
		conf = append(conf, fmt.Sprintf("%q:%q", configuration[i], configuration[i+1]))
	}
	return fmt.Sprintf(`{"metaData":{"id":"a-b","format":{"provider":"parquet","options":{}},"schemaString":"%s",`+
		`"partitionColumns":[%s],"configuration":{%s},"createdTime":1}}`, schemaText, partitionColumns, strings.Join(conf, ","))
}

func addLine(path string, size int) string {
	return fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":%d,"modificationTime":1,"dataChange":true}}`, path, size)
}

func addPartition(path, k string) string {
	return fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{"k":%q},"size":1,"modificationTime":1,"dataChange":true}}`, path, k)
}

func addNamed(path, name string) string {
	return fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,"tags":{%q:%q}}}`,
		path, TagName, name)
}

func removeLine(path string) string {
	return fmt.Sprintf(`{"remove":{"path":%q,"deletionTimestamp":1,"dataChange":true}}`, path)
}

// fixture is a table under construction.
type fixture struct {
	t   *testing.T
	dir string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t, t.TempDir()}
	f.mkdir()
	return f
}

func (f *fixture) mkdir() {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Join(f.dir, logDir), 0o755); err != nil {
		f.t.Fatal(err)
	}
}

// plain begins an unpartitioned table.
func (f *fixture) plain(lines ...string) *fixture {
	return f.commit(0, append([]string{protocolLine, metadataLine("")}, lines...)...)
}

func (f *fixture) commit(v int64, lines ...string) *fixture {
	f.t.Helper()
	return f.write(CommitName(v), strings.Join(lines, "\n")+"\n")
}

func (f *fixture) write(name, data string) *fixture {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		f.t.Fatal(err)
	}
	return f
}

func (f *fixture) remove(name string) {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) exists(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

func (f *fixture) setTime(name string, at time.Time) {
	f.t.Helper()
	if err := os.Chtimes(filepath.Join(f.dir, name), at, at); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) open() *Table {
	f.t.Helper()
	st, err := store.OpenLocal(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	table, err := Open(context.Background(), st, Options{Name: "t"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { table.Close() })
	return table
}

// at returns a version that must read.
func at(t *testing.T, table *Table, v int64) *Snapshot {
	t.Helper()
	s, err := table.At(context.Background(), v)
	if err != nil {
		t.Fatalf("version %d: %v", v, err)
	}
	return s
}

// paths returns the sorted add paths of a version.
func paths(t *testing.T, table *Table, v int64) string {
	t.Helper()
	var out []string
	for f, err := range at(t, table, v).Files(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func wantPaths(t *testing.T, table *Table, v int64, want string) {
	t.Helper()
	if got := paths(t, table, v); got != want {
		t.Errorf("version %d has %q, want %q", v, got, want)
	}
}

// names lists a directory.
func names(t *testing.T, s *Snapshot, dir, after string) []string {
	t.Helper()
	var out []string
	for e, err := range s.Dir(context.Background(), dir, after) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Name)
	}
	return out
}

// addOf returns the add of a file.
func addOf(t *testing.T, s *Snapshot, f File) *action.Add {
	t.Helper()
	adds, err := s.Adds(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	return adds[0]
}
