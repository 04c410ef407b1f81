package integration

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// big is a row count whose file spans many pages and requests.
const big = 50_000

// otherBytes is what another process reads: the test's own process may be the
// writer of a name, for whom it means the new file.
func otherBytes(t *testing.T, path string) []byte {
	t.Helper()
	return []byte(harness.Must(t, "cat", path))
}

func TestReaderOfSnapshotSeesNothingOfReplacementOfTheSameSize(t *testing.T) {
	l := start(t)
	old := fixture.Parquet(fixture.Rows(100_000, big))
	next := fixture.Parquet(fixture.Rows(500_000, big))
	if len(old) != len(next) || bytes.Equal(old, next) {
		t.Fatalf("the files must differ in content alone: %d and %d bytes", len(old), len(next))
	}
	write(t, l.Current("x.parquet"), old)
	snapshot := l.Path("@v1", "x.parquet")
	f, err := os.Open(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, len(old), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	// Half of the pages are in the cache before the replacement begins.
	if !bytes.Equal(m[:len(m)/2], old[:len(old)/2]) {
		t.Fatal("the map differs before the replacement")
	}
	check := func(when string) {
		t.Helper()
		if !bytes.Equal(m, old) {
			t.Errorf("%s: the map shows other bytes", when)
		}
		got := make([]byte, len(old))
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, old) {
			t.Errorf("%s: the open handle shows other bytes: %v", when, err)
		}
		if !bytes.Equal(otherBytes(t, snapshot), old) {
			t.Errorf("%s: a fresh read of the snapshot shows other bytes", when)
		}
		if st, err := os.Stat(snapshot); err != nil || st.Size() != int64(len(old)) {
			t.Errorf("%s: stat of the snapshot: %v %v", when, st, err)
		}
	}

	w, err := os.OpenFile(l.Current("x.parquet"), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	check("truncated by the writer")
	if _, err := w.Write(next[:len(next)/2]); err != nil {
		t.Fatal(err)
	}
	check("half written")
	if !bytes.Equal(otherBytes(t, l.Current("x.parquet")), old) {
		t.Error("half written: another process does not read the committed file in current/")
	}
	l.wantListed("x.parquet")
	l.wantLatest(1)
	if _, err := w.Write(next[len(next)/2:]); err != nil {
		t.Fatal(err)
	}
	check("fully written")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l.wantLatest(2)
	check("committed")
	if !bytes.Equal(otherBytes(t, l.Current("x.parquet")), next) {
		t.Error("current/ does not show the new bytes at once")
	}
	if !bytes.Equal(otherBytes(t, l.Path("@v2", "x.parquet")), next) {
		t.Error("the new snapshot does not show the new bytes")
	}
	fresh, err := unixMap(snapshot)
	if err != nil || !bytes.Equal(fresh, old) {
		t.Errorf("a fresh map of the snapshot shows other bytes: %v", err)
	}
}

// unixMap reads a whole file through a new memory map.
func unixMap(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(m)
	return bytes.Clone(m), nil
}

// write makes or replaces a file in the mount and checks that close succeeds.
func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReaderKeepsReplacedFileOfCurrent(t *testing.T) {
	l := start(t)
	old, next := fixture.Parquet(fixture.Rows(1, big)), fixture.Parquet(fixture.Rows(2, 10))
	write(t, l.Current("x.parquet"), old)
	f, err := os.Open(l.Current("x.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, l.Current("x.parquet"), next)
	got, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(got, old) {
		t.Errorf("the reader's file changed under it: %d bytes, %v", len(got), err)
	}
}

func TestCurrentShowsNewBytesAtOnce(t *testing.T) {
	l := start(t)
	for i := range int64(10) {
		data := fixture.Parquet(fixture.Rows(100+i, 500))
		write(t, l.Current("x.parquet"), data)
		got, err := os.ReadFile(l.Current("x.parquet"))
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("replacement %d: read %d bytes that differ: %v", i, len(got), err)
		}
		if !bytes.Equal(otherBytes(t, l.Current("x.parquet")), data) {
			t.Fatalf("replacement %d: another process reads other bytes", i)
		}
		l.wantLatest(i + 1)
	}
}

func TestCopyThenReadlinkIsTheNewVersion(t *testing.T) {
	l := start(t)
	source := l.source("x.parquet", 1, 3)
	for i := range 10 {
		name := fmt.Sprintf("%d.parquet", i)
		out := shell(t, `cp "$1" "$2/current/$3"; readlink "$2/latest"`, source, l.Dir, name).Out
		if want := fmt.Sprintf("@v%d\n", i+1); out != want {
			t.Fatalf("copy %d: latest is %q, want %q", i, out, want)
		}
	}
	l.wantLatest(10)
}

func TestUncommittedFileIsNotListedButResolves(t *testing.T) {
	l := start(t)
	data := fixture.Parquet(fixture.Rows(1, 100))
	w, err := os.Create(l.Current("x.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write(data[:100]); err != nil {
		t.Fatal(err)
	}
	l.wantListed()
	if st, err := os.Stat(l.Current("x.parquet")); err != nil || st.Size() != 100 {
		t.Errorf("stat of the staged file: %v %v", st, err)
	}
	if _, err := w.Write(data[100:]); err != nil {
		t.Fatal(err)
	}
	l.wantListed()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l.wantListed("x.parquet")
	l.wantLatest(1)
}

func TestDataFileHasOneInodeInEveryVersion(t *testing.T) {
	l := start(t)
	harness.Must(t, "cp", l.source("x.parquet", 1, 3), l.Current("x.parquet"))
	harness.Must(t, "cp", l.source("y.parquet", 11, 3), l.Current("y.parquet"))
	stat := func(path string) unix.Stat_t {
		t.Helper()
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	want := stat(l.Path("@v1", "x.parquet"))
	for _, dir := range []string{"@v2", "current", "latest"} {
		if got := stat(l.Path(dir, "x.parquet")); got.Ino != want.Ino || got.Nlink != 2 {
			t.Errorf("%s: inode %d with %d links, want %d with 2", dir, got.Ino, got.Nlink, want.Ino)
		}
	}
	if got := stat(l.Path("@v2", "y.parquet")); got.Ino == want.Ino {
		t.Error("two files share an inode")
	}
}

func TestTimestampsResolveInEverySpelling(t *testing.T) {
	table := newTable(t)
	base := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	for v := range int64(3) {
		when := base.AddDate(0, 0, int(v))
		if err := os.Chtimes(logFile(table, v), when, when); err != nil {
			t.Fatal(err)
		}
	}
	l := startAt(t, table, "--timezone", "UTC")
	for _, c := range []struct{ name, want string }{
		{"@2024-05-01T10-00-00.000Z", "@v0"},
		{"@2024-05-02T10-00-00.000Z", "@v1"},
		{"@2024-05-02", "@v0"},
		{"@2024-05-02T12:00:00Z", "@v1"},
		{"@2024-05-02 09:59:59", "@v0"},
		{"@2024-05-02T10:00:00+02:00", "@v0"},
		{"@20240502100000000", "@v1"},
		{"@2024-06-01", "@v2"},
	} {
		if got, err := os.Readlink(l.Path(c.name)); err != nil || got != c.want {
			t.Errorf("%s -> %q %v, want %s", c.name, got, err, c.want)
		}
	}
	for _, name := range []string{"@2024-05-01", "@2999-01-01", "@v3", "@v01", "@nonsense"} {
		if got, err := os.Lstat(l.Path(name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v %v, want no such file", name, got, err)
		}
	}
	l.wantNames(l.Path("@2024-05-02T10-00-00.000Z/"), "a.parquet")
}

func TestListIsLimitedButEveryVersionResolves(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table")
	tb, err := fixture.Create(table, fixture.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := tb.Commit("NOTHING"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		flag string
		want []string
	}{
		{"2", []string{"@v3", "@v4"}},
		{"none", nil},
		{"all", []string{"@v0", "@v1", "@v2", "@v3", "@v4"}},
	} {
		t.Run(c.flag, func(t *testing.T) {
			l := startAt(t, table, "--list-versions", c.flag)
			entries, err := os.ReadDir(l.Dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				if len(e.Name()) > 2 && e.Name()[:2] == "@v" {
					got = append(got, e.Name())
				}
			}
			if len(got) != len(c.want) || (len(got) > 0 && got[0] != c.want[0]) {
				t.Errorf("listed %q, want %q", got, c.want)
			}
			for _, v := range []string{"@v0", "@v4"} {
				if _, err := os.ReadDir(l.Path(v)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
