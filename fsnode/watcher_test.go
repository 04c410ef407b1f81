package fsnode

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unattended makes a mount that finds nothing by looking again and again.
func unattended(o *Options) { o.Refresh = time.Hour }

// tableAt is the table of the mount that is at rel.
func (m *testMount) tableAt(rel string) *table {
	m.t.Helper()
	m.fs.tablesMu.Lock()
	defer m.fs.tablesMu.Unlock()
	t, ok := m.fs.tables[rel]
	if !ok {
		m.t.Fatalf("no table at %q", rel)
	}
	return t
}

func TestCommitElsewhereShowsInTheNextLookup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	m := mount(t, dir, unattended)
	m.names("current", "p=1")
	for range 20 {
		before := m.latest()
		tab.commit(tab.add("p=1/"+before+".parquet", []byte("new"), map[string]string{"p": "1"}))
		if got := m.latest(); got == before {
			t.Fatalf("latest is still %s", got)
		}
		if got := string(m.read("current", "p=1", before+".parquet")); got != "new" {
			t.Fatalf("current/: %q", got)
		}
		if got := string(m.read(m.latest(), "p=1", before+".parquet")); got != "new" {
			t.Fatalf("the new version: %q", got)
		}
	}
}

func TestCommitElsewhereIsTakenInWithoutAnyUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	m := mount(t, dir, unattended)
	inc := m.tableAt("").present()
	tab.commit(tab.add("p=1/new.parquet", []byte("new"), map[string]string{"p": "1"}))
	eventually(t, "taking in the commit", func() bool { return inc.seen.Load() == 3 && inc.live.Version() == 3 })
}

func TestCommitWrittenInPlaceShowsWhenItIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	m := mount(t, dir, unattended)
	text, err := os.ReadFile(filepath.Join(dir, logDir, "00000000000000000002.json"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, logDir, "00000000000000000003.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.latest(); got != "@v2" {
		t.Errorf("%s while the commit is empty", got)
	}
	if _, err := f.Write(bytes.ReplaceAll(text, []byte("c.parquet"), []byte("d.parquet"))); err != nil {
		t.Fatal(err)
	}
	tab.add("p=2/d.parquet", []byte("d"), nil)
	f.Close()
	if got := m.latest(); got != "@v3" {
		t.Errorf("%s when it is whole", got)
	}
}

func TestTableMovedAwayAndReplacedIsNoticedWithoutAnyUse(t *testing.T) {
	parent := t.TempDir()
	dir, next := filepath.Join(parent, "t"), filepath.Join(parent, "next")
	threeVersions(t, dir)
	tab := makeTable(t, next, "p")
	tab.commit(tab.add("p=1/a.parquet", []byte("another"), map[string]string{"p": "1"}))
	m := mount(t, dir, func(o *Options) { o.Refresh = 10 * time.Millisecond })
	if got := string(m.read("@v1", "p=1", "a.parquet")); got != "file a" {
		t.Fatal(got)
	}
	old := m.tableAt("").present()
	if err := os.Rename(dir, filepath.Join(parent, "old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, "noticing the other table", func() bool {
		inc := m.tableAt("").present()
		return inc != old && inc.seen.Load() == 1
	})
	eventually(t, "its content", func() bool { return string(m.read("@v1", "p=1", "a.parquet")) == "another" })
	tab.path = dir
	tab.commit(tab.add("p=1/b.parquet", []byte("b"), map[string]string{"p": "1"}))
	if got := m.latest(); got != "@v2" {
		t.Errorf("a commit to the other table: %s", got)
	}
}

// logLines collects what is logged.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), what)
}

func TestTablesAreProbedWhenThereAreNoMoreWatches(t *testing.T) {
	lake := t.TempDir()
	names := []string{"one", "two", "three"}
	tables := map[string]*testTable{}
	for _, name := range names {
		tables[name] = threeVersions(t, filepath.Join(lake, name))
	}
	var lines logLines
	m := mount(t, lake, func(o *Options) {
		o.Refresh = 10 * time.Millisecond
		o.Logger = slog.New(slog.NewTextHandler(&lines, nil))
	})
	m.fs.watcher.mu.Lock()
	m.fs.watcher.addWatch = func(int, string, uint32) (int, error) { return -1, syscall.ENOSPC }
	m.fs.watcher.mu.Unlock()
	for _, name := range names {
		m.names(name, "current")
		inc := m.tableAt(name).present()
		tables[name].commit(tables[name].add("p=1/n.parquet", []byte("n"), map[string]string{"p": "1"}))
		eventually(t, "the commit to "+name, func() bool { return inc.seen.Load() == 3 })
		if got := m.latest(name); got != "@v3" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if n := lines.count("max_user_watches"); n != 1 {
		t.Errorf("the limit is told %d times", n)
	}
}

func TestNetworkFileSystemsAreNotTrusted(t *testing.T) {
	if !isLocal(t.TempDir()) {
		t.Error("the disk of the test counts as remote")
	}
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	// A FUSE file system may change in other ways than through this kernel.
	if isLocal(m.path) {
		t.Error("a FUSE file system counts as local")
	}
	if isLocal(filepath.Join(m.path, "missing")) {
		t.Error("what is not there counts as local")
	}
}

func TestEveryTableIsHeardOfWhenEventsWereLost(t *testing.T) {
	lake := t.TempDir()
	for _, name := range []string{"one", "two"} {
		threeVersions(t, filepath.Join(lake, name))
	}
	m := mount(t, lake, unattended)
	before := map[string]uint64{}
	for _, name := range []string{"one", "two"} {
		m.latest(name)
		before[name] = m.tableAt(name).events.Load()
	}
	overflow := binary.NativeEndian.AppendUint32(nil, math.MaxUint32) // of no watch
	overflow = binary.NativeEndian.AppendUint32(overflow, unix.IN_Q_OVERFLOW)
	overflow = append(overflow, make([]byte, 8)...)
	w := m.fs.watcher
	w.mu.Lock()
	w.dispatch(overflow)
	w.mu.Unlock()
	for name, n := range before {
		if m.tableAt(name).events.Load() == n {
			t.Errorf("%s is taken for unchanged", name)
		}
	}
}
