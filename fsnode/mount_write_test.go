package fsnode

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/snapshot"
)

// emptyTable makes a table without files, at version 0.
func emptyTable(t *testing.T, partitions ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t")
	makeTable(t, dir, partitions...)
	return dir
}

func TestClosedFileIsCommittedAndVisibleAtOnce(t *testing.T) {
	m := mount(t, emptyTable(t))
	for i, want := range []string{"@v1", "@v2", "@v3"} {
		if got := m.latest(); got == want { // so that the kernel has something to forget
			t.Fatalf("latest is %s before the copy", got)
		}
		data := rowFile(3, want)
		if err := write(m.join("current", want+".parquet"), data); err != nil {
			t.Fatal(err)
		}
		if got := m.latest(); got != want {
			t.Errorf("latest is %s after copy %d", got, i)
		}
		if got := m.read("current", want+".parquet"); !bytes.Equal(got, data) {
			t.Errorf("current reads %d bytes", len(got))
		}
		if got := m.read(want, want+".parquet"); !bytes.Equal(got, data) {
			t.Errorf("%s reads %d bytes", want, len(got))
		}
	}
	if got := m.names("@v1"); !slices.Equal(got, []string{"@v1.parquet"}) {
		t.Errorf("@v1: %v", got)
	}
}

func TestReplacementLeavesTheSnapshotAlone(t *testing.T) {
	m := mount(t, emptyTable(t))
	name := m.join("current", "x.parquet")
	old, next := rowFile(50_000, "one"), rowFile(50_000, "two")
	if err := write(name, old); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(m.join("@v1", "x.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	w, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write(next[:len(next)/2]); err != nil {
		t.Fatal(err)
	}
	// Another process reads the committed file while this one replaces it.
	if out, err := run(t, "cat", name); err != nil || out != string(old) {
		t.Errorf("another process reads %d bytes of a half-written file, %v", len(out), err)
	}
	if st := lstatOf(t, m.join("@v1", "x.parquet")); st.Size != int64(len(old)) {
		t.Errorf("the snapshot's file has %d bytes", st.Size)
	}
	if _, err := w.Write(next[len(next)/2:]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sameBytes(t, reader, old)
	if got := m.read("@v1", "x.parquet"); !bytes.Equal(got, old) {
		t.Error("the snapshot changed")
	}
	if got := m.read("current", "x.parquet"); !bytes.Equal(got, next) || m.latest() != "@v2" {
		t.Errorf("current reads %d bytes at %s", len(got), m.latest())
	}
	if out, err := run(t, "cat", name); err != nil || out != string(next) {
		t.Errorf("another process reads %d bytes, %v", len(out), err)
	}
}

func TestUncommittedNamesAreUnlisted(t *testing.T) {
	m := mount(t, emptyTable(t))
	w, err := os.Create(m.join("current", "half.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("PAR1")); err != nil {
		t.Fatal(err)
	}
	if got := m.names("current"); len(got) != 0 {
		t.Errorf("current lists %v", got)
	}
	if got := string(m.read("current", "half.parquet")); got != "PAR1" {
		t.Errorf("by name: %q", got)
	}
	if got := m.names(".stage"); !slices.Equal(got, []string{"half.parquet", "rejected"}) && !slices.Equal(got, []string{"rejected", "half.parquet"}) {
		t.Errorf(".stage lists %v", got)
	}
	if got := string(m.read(".stage", "half.parquet")); got != "PAR1" {
		t.Errorf("in .stage: %q", got)
	}
	if got := string(m.read(".delta/status.json")); !strings.Contains(got, "half.parquet") {
		t.Errorf("status: %s", got)
	}
	if err := w.Close(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("close: %v", err)
	}
	if err := os.Remove(m.join("current", "half.parquet")); err != nil {
		t.Fatal(err)
	}
	if got := m.latest(); got != "@v0" {
		t.Errorf("latest is %s", got)
	}
}

func TestRefusedFileIsKeptWithItsReason(t *testing.T) {
	m := mount(t, emptyTable(t, "p"))
	data := rowFile(3, "x") // at the root of a partitioned table
	if err := write(m.join("current", "x.parquet"), data); !errors.Is(err, syscall.EINVAL) {
		t.Fatalf("close: %v", err)
	}
	if got := m.latest(); got != "@v0" {
		t.Errorf("latest is %s", got)
	}
	rejected := m.names(".stage", "rejected")
	if len(rejected) != 2 || rejected[1] != rejected[0]+reasonSuffix {
		t.Fatalf("rejected: %v", rejected)
	}
	if got := m.read(".stage/rejected", rejected[0]); !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes were kept", len(got), len(data))
	}
	if got := string(m.read(".stage/rejected", rejected[1])); !strings.Contains(got, "reason: ") || !strings.Contains(got, "hint: ") {
		t.Errorf("reason: %s", got)
	}
	if got := string(m.read(".delta/errors.jsonl")); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"x.parquet"`) {
		t.Errorf("errors.jsonl: %s", got)
	}
	for _, name := range rejected {
		if err := os.Remove(m.join(".stage/rejected", name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	if got := m.names(".stage", "rejected"); len(got) != 0 {
		t.Errorf("after rm: %v", got)
	}
}

func TestLogIsOutOfReachInCurrent(t *testing.T) {
	m := mount(t, emptyTable(t))
	for what, err := range map[string]error{
		"stat":   func() error { _, err := os.Lstat(m.join("current", logDir)); return err }(),
		"mkdir":  os.Mkdir(m.join("current", logDir), 0o755),
		"create": write(m.join("current", logDir), []byte("x")),
	} {
		if !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := string(m.read(".delta/errors.jsonl")); !strings.Contains(got, logDir) {
		t.Errorf("errors.jsonl: %s", got)
	}
}

func TestWhatToolsDoAfterACopySucceedsAndChangesNothing(t *testing.T) {
	m := mount(t, emptyTable(t))
	name := m.join("current", "x.parquet")
	data := rowFile(3, "x")
	if err := write(name, data); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"chmod":                os.Chmod(name, 0o600),
		"chown":                os.Chown(name, os.Getuid(), os.Getgid()),
		"utimes":               os.Chtimes(name, epoch, epoch),
		"truncate to its size": os.Truncate(name, int64(len(data))),
		"mtime of current":     os.Chtimes(m.join("current"), epoch, epoch),
		"open for writing":     func() error { f, err := os.OpenFile(name, os.O_WRONLY, 0); return errors.Join(err, f.Close()) }(),
		"write the same":       write(name, data),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Truncate(name, 5); !errors.Is(err, syscall.EPERM) {
		t.Errorf("truncate: %v", err)
	}
	if err := os.Link(name, m.join("current", "y.parquet")); !errors.Is(err, syscall.EPERM) {
		t.Errorf("link: %v", err)
	}
	if got := m.latest(); got != "@v1" || !bytes.Equal(m.read("current", "x.parquet"), data) {
		t.Errorf("latest is %s", got)
	}
}

func TestRenameOfAScratchFileCommits(t *testing.T) {
	m := mount(t, emptyTable(t))
	data := rowFile(3, "x")
	w, err := os.Create(m.join("current", ".x.tmp"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if got := m.latest(); got != "@v0" {
		t.Errorf("a scratch file was committed: %s", got)
	}
	// Some programs rename before they close.
	if err := os.Rename(m.join("current", ".x.tmp"), m.join("current", "x.parquet")); err != nil {
		t.Fatal(err)
	}
	if got := m.latest(); got != "@v1" {
		t.Errorf("latest is %s", got)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got := m.names("current"); !slices.Equal(got, []string{"x.parquet"}) || m.latest() != "@v1" {
		t.Errorf("current: %v at %s", got, m.latest())
	}
	if err := write(m.join("current", ".y.tmp"), []byte("no Parquet")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.join("current", ".y.tmp"), m.join("current", "y.parquet")); !errors.Is(err, syscall.EPERM) {
		t.Errorf("rename of what does not fit: %v", err)
	}
}

func TestPartitionDirectoriesComeGoAndComeBack(t *testing.T) {
	m := mount(t, emptyTable(t, "p"))
	part := m.join("current", "p=1")
	for _, name := range []string{"q=1", "x", "p=abc"} {
		if err := os.Mkdir(m.join("current", name), 0o755); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("mkdir %s: %v", name, err)
		}
	}
	for _, want := range []string{"@v1", "@v3"} {
		if err := os.Mkdir(part, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := write(filepath.Join(part, "x.parquet"), rowFile(3, want)); err != nil {
			t.Fatalf("in %s: %v", part, err)
		}
		if got := m.latest(); got != want {
			t.Errorf("latest is %s, want %s", got, want)
		}
		if err := os.RemoveAll(part); err != nil {
			t.Fatal(err)
		}
		if got := m.names("current"); len(got) != 0 {
			t.Errorf("after rm -r: %v", got)
		}
	}
	if got := m.latest(); got != "@v4" {
		t.Errorf("latest is %s", got)
	}
}

func TestScratchDirectoriesAreRenamedWithWhatIsInThem(t *testing.T) {
	m := mount(t, emptyTable(t))
	task := m.join("current", "_temporary", "0", "task")
	if err := os.MkdirAll(task, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(task, "part-0.parquet"), rowFile(3, "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.join("current/_temporary/0"), m.join("current/_temporary/done")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(task, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := m.names("current/_temporary"); !slices.Equal(got, []string{"0", "done"}) {
		t.Errorf("_temporary: %v", got)
	}
	if got := m.names("current/_temporary/0/task"); len(got) != 0 {
		t.Errorf("the new directory holds %v", got)
	}
	if err := os.Rename(m.join("current/_temporary/done/task/part-0.parquet"), m.join("current/part-0.parquet")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(m.join("current/_temporary")); err != nil {
		t.Fatal(err)
	}
	if got := m.names("current"); !slices.Equal(got, []string{"part-0.parquet"}) || m.latest() != "@v1" {
		t.Errorf("current: %v at %s", got, m.latest())
	}
}

func TestMovesBetweenAreasAreLeftToTheTool(t *testing.T) {
	lake := t.TempDir()
	makeTable(t, filepath.Join(lake, "a"))
	makeTable(t, filepath.Join(lake, "b"))
	m := mount(t, lake)
	if err := write(m.join("a/current/x.parquet"), rowFile(3, "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.join("a/current/x.parquet"), m.join("b/current/x.parquet")); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("between tables: %v", err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, m.join("a/current/x.parquet"), unix.AT_FDCWD, m.join("a/current/y.parquet"), unix.RENAME_EXCHANGE); err == nil {
		t.Error("exchange succeeded")
	}
	if out, err := run(t, "mv", m.join("a/current/x.parquet"), m.join("b/current/x.parquet")); err != nil {
		t.Fatalf("mv: %v %s", err, out)
	}
	if a, b := m.names("a/current"), m.names("b/current"); len(a) != 0 || !slices.Equal(b, []string{"x.parquet"}) {
		t.Errorf("a: %v, b: %v", a, b)
	}
	if err := os.Rename(m.join("a"), m.join("c")); !errors.Is(err, syscall.EPERM) {
		t.Errorf("rename of a table: %v", err)
	}
}

func TestNamesOutsideOfCurrentCannotBeMade(t *testing.T) {
	m := mount(t, emptyTable(t))
	for _, dir := range []string{"", ".delta", ".stage", ".stage/rejected"} {
		if err := write(m.join(dir, "x.parquet"), []byte("x")); !errors.Is(err, syscall.EPERM) {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if err := write(m.join(".delta", textErrors), []byte("x")); !errors.Is(err, syscall.EPERM) {
		t.Errorf("a text: %v", err)
	}
	for what, err := range map[string]error{
		"symlink": os.Symlink("x", m.join("current", "l")),
		"fifo":    unix.Mkfifo(m.join("current", "f"), 0o644),
	} {
		if !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := unix.Mknod(m.join("current", "n.parquet"), unix.S_IFREG|0o644, 0); err != nil {
		t.Errorf("mknod of a regular file: %v", err)
	}
	if err := write(m.join("current", "n.parquet"), rowFile(1, "x")); err != nil || m.latest() != "@v1" {
		t.Errorf("writing it: %v, %s", err, m.latest())
	}
}

func TestReadOnlyMountRefusesEveryChange(t *testing.T) {
	dir := emptyTable(t)
	m := mount(t, dir, func(o *Options) { o.ReadOnly = true })
	for what, err := range map[string]error{
		"create": write(m.join("current", "x.parquet"), []byte("x")),
		"mkdir":  os.Mkdir(m.join("current", ".d"), 0o755),
		"access": unix.Access(m.join("current"), unix.W_OK),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the table's directory holds %v, %v", entries, err)
	}
}

// The kernel opens what it has looked up before, and a name that another
// writer removed goes on resolving.
func TestNameChangedByAnotherWriterCanBeWrittenAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := makeTable(t, dir)
	tab.commit(tab.add("x.parquet", []byte("old x"), nil), tab.add("y.parquet", []byte("old y"), nil))
	m := mount(t, dir, func(o *Options) { o.Grace = time.Hour })
	for _, name := range []string{"x.parquet", "y.parquet"} {
		m.read("current", name)
	}
	add := tab.add("other/x.parquet", []byte("new x"), nil)
	add["add"].(map[string]any)["tags"] = map[string]string{snapshot.TagName: "x.parquet"}
	tab.commit(tab.remove("x.parquet"), tab.remove("y.parquet"), add)
	eventually(t, "the new version", func() bool { return m.latest() == "@v2" })
	for i, name := range []string{"x.parquet", "y.parquet"} {
		data := rowFile(3, name)
		if err := write(m.join("current", name), data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := m.read("current", name); !bytes.Equal(got, data) || m.latest() != versionName(int64(3+i)) {
			t.Errorf("%s reads %d bytes at %s", name, len(got), m.latest())
		}
	}
	if got := m.names("current"); !slices.Equal(got, []string{"x.parquet", "y.parquet"}) {
		t.Errorf("current: %v", got)
	}
}
