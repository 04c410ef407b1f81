package integration

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// live is a mounted table and a directory for source files.
type live struct {
	*harness.Mount
	t     testing.TB
	table string
	work  string
}

// start mounts a new table without files.
func start(t testing.TB, flags ...string) *live {
	return startSpec(t, fixture.Spec{}, flags...)
}

// startByDay mounts a new table partitioned by day.
func startByDay(t testing.TB, flags ...string) *live {
	return startSpec(t, fixture.Spec{Partition: []string{"day"}}, flags...)
}

func startSpec(t testing.TB, s fixture.Spec, flags ...string) *live {
	t.Helper()
	table := filepath.Join(t.TempDir(), "table")
	if _, err := fixture.Create(table, s); err != nil {
		t.Fatal(err)
	}
	return startAt(t, table, flags...)
}

// startAt mounts an existing table.
func startAt(t testing.TB, table string, flags ...string) *live {
	t.Helper()
	return &live{Mount: harness.Start(t, table, flags...), t: t, table: table, work: t.TempDir()}
}

// source makes a Parquet file of n rows from id first on, to be dropped.
func (l *live) source(name string, first int64, n int) string {
	l.t.Helper()
	path := filepath.Join(l.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := fixture.WriteParquet(path, fixture.Rows(first, n)); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// wrongSource makes a complete Parquet file that does not fit the table.
func (l *live) wrongSource(name string) string {
	l.t.Helper()
	path := filepath.Join(l.work, name)
	if err := fixture.WriteParquet(path, []fixture.WrongRow{{ID: "one", Name: "a"}, {ID: "two", Name: "b"}}); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// wantLatest checks that the log holds exactly versions 0 to v and that the
// mount shows v as the newest.
func (l *live) wantLatest(v int64) {
	l.t.Helper()
	got, err := fixture.Versions(l.table)
	if err != nil {
		l.t.Fatal(err)
	}
	if int64(len(got)) != v+1 || got[len(got)-1] != v {
		l.t.Fatalf("the log holds versions %v, want 0 to %d", got, v)
	}
	if m := l.Latest(); m != v {
		l.t.Fatalf("latest is %d, want %d", m, v)
	}
}

// wantRows checks the rows of the newest version, read without deltafs.
func (l *live) wantRows(want ...[]fixture.Row) {
	l.t.Helper()
	got, err := fixture.ReadRows(l.table, -1)
	if err != nil {
		l.t.Fatal(err)
	}
	all := slices.Concat(want...)
	fixture.SortRows(all)
	if !slices.Equal(got, all) {
		l.t.Fatalf("the table holds %v, want %v", got, all)
	}
}

// wantSame checks that a file of the mount has the bytes of another file.
func (l *live) wantSame(path, source string) {
	l.t.Helper()
	want := l.read(source)
	got := l.read(path)
	if !bytes.Equal(got, want) {
		l.t.Fatalf("%s: %d bytes that differ from the %d of %s", path, len(got), len(want), source)
	}
	st, err := os.Stat(path)
	if err != nil {
		l.t.Fatal(err)
	}
	if st.Size() != int64(len(want)) {
		l.t.Fatalf("%s has size %d, want %d", path, st.Size(), len(want))
	}
}

func (l *live) read(path string) []byte {
	l.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	return data
}

// wantListed checks the names in current/.
func (l *live) wantListed(names ...string) {
	l.t.Helper()
	l.wantNames(l.Current(), names...)
}

func (l *live) wantNames(dir string, names ...string) {
	l.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.t.Fatal(err)
	}
	got := make([]string, 0, len(entries))
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		l.t.Fatalf("%s holds %q, want %q", dir, got, names)
	}
}

// wantFailure checks that errors.jsonl has a line that speaks of all the given
// words, in name, reason or hint.
func (l *live) wantFailure(words ...string) {
	l.t.Helper()
	all := l.Failures()
	for _, f := range all {
		text := f.Name + "\x00" + f.Reason + "\x00" + f.Hint
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			return
		}
	}
	l.t.Fatalf("no failure speaks of %q: %+v", words, all)
}

// wantRejected checks that .stage/rejected keeps the bytes of source.
func (l *live) wantRejected(source string) {
	l.t.Helper()
	want := l.read(source)
	for _, path := range l.kept() {
		if bytes.Equal(l.read(path), want) {
			return
		}
	}
	l.t.Fatalf("no file in .stage/rejected has the bytes of %s: %q", source, l.kept())
}

// kept lists the files below .stage/rejected.
func (l *live) kept() []string {
	l.t.Helper()
	return filesBelow(l.t, l.Path(".stage", "rejected"))
}

// finish unmounts and checks that the table's hidden directory holds no file.
func (l *live) finish() {
	l.t.Helper()
	l.Unmount()
	if left := filesBelow(l.t, filepath.Join(l.table, ".deltafs")); len(left) > 0 {
		l.t.Fatalf("left behind: %q", left)
	}
}

// filesBelow lists all files below a directory, which need not exist.
func filesBelow(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			out = append(out, path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// shell runs a bash script with positional arguments.
func shell(t testing.TB, script string, args ...string) harness.Result {
	t.Helper()
	return harness.Run(t, "bash", append([]string{"-c", script, "bash"}, args...)...)
}

func wantOK(t testing.TB, r harness.Result) {
	t.Helper()
	if !r.OK() {
		t.Fatalf("exit status %d\n%s", r.Code, r.Out)
	}
}

func wantFailed(t testing.TB, r harness.Result) {
	t.Helper()
	if r.OK() {
		t.Fatalf("the tool did not report the failure\n%s", r.Out)
	}
}

// limit bounds what another writer's change may take to show.
const limit = 5 * time.Second
