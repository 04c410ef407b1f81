package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/snapshot"
)

// treeOfLive lists the files below a directory of current/.
func treeOfLive(t *testing.T, l *Live, dir string) []string {
	t.Helper()
	var out []string
	for e, err := range l.List(context.Background(), dir, "") {
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if e.Dir != nil {
			out = append(out, treeOfLive(t, l, *e.Dir)...)
			continue
		}
		out = append(out, joinPath(dir, e.Name))
		// What is listed must be found.
		if n, err := l.Lookup(context.Background(), Caller{PID: 1}, dir, e.Name); err != nil || n.File == nil {
			t.Errorf("%s: %+v, %v", joinPath(dir, e.Name), n, err)
		}
	}
	return out
}

// treeOfVersion lists the files of a version.
func treeOfVersion(t *testing.T, s *snapshot.Snapshot) []string {
	t.Helper()
	var out []string
	for f, err := range s.Files(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, joinPath(f.Dir, f.Name))
	}
	slices.Sort(out)
	return out
}

func TestPartitionsKeepTheSpellingOfTheirWriter(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct{ kind, value, dir string }{
		{"timestamp", "2021-10-01 08:09:20", "k=2021-10-01 08%3A09%3A20"},
		{"timestamp", "2021-10-01T08:09:20.5Z", "k=2021-10-01T08%3A09%3A20.5Z"},
		{"timestamp_ntz", "2021-10-01 08:09:20", "k=2021-10-01 08%3A09%3A20"},
		{"integer", "007", "k=007"},
		{"double", "1", "k=1"},
		{"boolean", "TRUE", "k=TRUE"},
		{"decimal(5,2)", "1.5", "k=1.5"},
	} {
		meta := testMetadata()
		meta.SchemaString = strings.Replace(testSchema, `"string"`, `"`+c.kind+`"`, 1)
		meta.PartitionColumns = []string{"k"}
		old := testAdd("old.parquet")
		old.PartitionValues = map[string]*string{"k": &c.value}
		dir := t.TempDir()
		localTable(t, dir, actions{testProtocol(1, 2), meta, old})
		table := openTable(t, dir)
		w, err := Open(ctx, table, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close(ctx) })
		l := w.Live()
		if got := treeOfLive(t, l, ""); !slices.Equal(got, []string{c.dir + "/old.parquet"}) {
			t.Errorf("%s %s: current/ holds %q", c.kind, c.value, got)
			continue
		}
		if err := l.Mkdir(ctx, "", c.dir); !errors.Is(err, ErrExist) {
			t.Errorf("%s %s: mkdir of a partition that is there: %v", c.kind, c.value, err)
		}
		if err := copyIn(l, Caller{PID: 1}, c.dir, "new.parquet", valuesFile(t, 1)); err != nil {
			t.Errorf("%s %s: %v", c.kind, c.value, err)
			continue
		}
		n, err := l.Lookup(ctx, Caller{PID: 1}, c.dir, "new.parquet")
		if err != nil || n.File == nil || *addOf(t, table, n.File).PartitionValues["k"] != c.value {
			t.Errorf("%s %s: the dropped file is %+v, %v", c.kind, c.value, n.File, err)
		}
		for _, name := range []string{"old.parquet", "new.parquet"} {
			if err := l.Unlink(ctx, Caller{PID: 1}, c.dir, name); err != nil {
				t.Errorf("%s %s: unlink %s: %v", c.kind, c.value, name, err)
			}
		}
		if err := l.Rmdir(ctx, "", c.dir); err != nil {
			t.Errorf("%s %s: rmdir: %v", c.kind, c.value, err)
		}
		if got := treeOfLive(t, l, ""); len(got) > 0 {
			t.Errorf("%s %s: current/ still holds %q", c.kind, c.value, got)
		}
	}
}

func TestCurrentShowsTheFilesOfTheNewestVersion(t *testing.T) {
	ctx := context.Background()
	shown := map[string]bool{}
	corpusFiles(t, func(t *testing.T, f corpusFile) {
		if shown[f.table] {
			return
		}
		shown[f.table] = true
		table := openTable(t, filepath.Join(os.Getenv("DELTAFS_TABLES"), "data", f.table))
		s, err := table.At(ctx, table.Latest())
		if errors.Is(err, snapshot.ErrUnsupported) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		w, err := Open(ctx, table, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close(ctx)
		got, want := treeOfLive(t, w.Live(), ""), treeOfVersion(t, s)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: current/ has %d files, version %d has %d", f.table, len(got), s.Version(), len(want))
		}
	})
	if len(shown) < 100 {
		t.Errorf("%d tables were looked at", len(shown))
	}
}
