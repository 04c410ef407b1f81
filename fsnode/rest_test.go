package fsnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/snapshot"
)

// soonIdle lets tables rest almost at once.
func soonIdle(o *Options) { o.Idle = 50 * time.Millisecond }

// kernelForgets drops from the kernel's caches whatever it need not keep of the
// table.
func (m *testMount) kernelForgets(t *table) {
	m.t.Helper()
	m.fs.notifyAll(t)
	eventually(m.t, "forgetting", func() bool { return t.known.Load() == 0 })
}

// holdings are what a process may have of the tables of a mount.
type holdings struct{ descriptors, goroutines, watches, slots int }

func (m *testMount) holdings() holdings {
	m.t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		m.t.Fatal(err)
	}
	h := holdings{descriptors: len(fds), goroutines: runtime.NumGoroutine()}
	m.fs.watcher.mu.Lock()
	h.watches = len(m.fs.watcher.byWD)
	m.fs.watcher.mu.Unlock()
	m.fs.tablesMu.Lock()
	h.slots = len(m.fs.slots)
	m.fs.tablesMu.Unlock()
	return h
}

func TestTablesOfALakeCostNothingBeforeAndAfterTheirUse(t *testing.T) {
	const count = 100
	lake := t.TempDir()
	for i := range count {
		tab := makeTable(t, filepath.Join(lake, fmt.Sprintf("t%03d", i)))
		tab.commit(tab.add("a.parquet", []byte("a"), nil))
	}
	m := mount(t, lake, soonIdle, unattended)
	for _, name := range m.names() {
		lstatOf(t, m.join(name))
	}
	unused := m.holdings()
	if unused.slots != 0 || unused.watches != 0 {
		t.Errorf("listed and not used: %+v", unused)
	}
	for i := range count {
		name := fmt.Sprintf("t%03d", i)
		if got := string(m.read(name, "latest", "a.parquet")); got != "a" {
			t.Fatal(got)
		}
	}
	if used := m.holdings(); used.slots < count/2 || used.watches < count {
		t.Errorf("in use: %+v", used)
	}
	for i := range count {
		m.kernelForgets(m.tableAt(fmt.Sprintf("t%03d", i)))
	}
	eventually(t, "the release of all tables", func() bool {
		now := m.holdings()
		// The server has some of its own, which come and go.
		const slack = count / 4
		return now.slots == 0 && now.watches == 0 &&
			now.descriptors < unused.descriptors+slack && now.goroutines < unused.goroutines+slack
	})
	if got := m.latest("t042"); got != "@v1" {
		t.Errorf("used again: %s", got)
	}
}

// released waits until the table at rel is closed.
func (m *testMount) released(rel string) {
	m.t.Helper()
	t := m.tableAt(rel)
	m.kernelForgets(t)
	eventually(m.t, "the release", func() bool { return t.present() == nil })
}

func TestReleasedTableIsOpenedAnewWithOtherNodes(t *testing.T) {
	lake := t.TempDir()
	tab := threeVersions(t, filepath.Join(lake, "sales"))
	m := mount(t, lake, soonIdle)
	if _, err := os.ReadDir(m.join("sales", "@v9")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	misfit := fixture.Parquet([]struct{ Other int64 }{{1}})
	if err := write(m.join("sales", "current", "p=1", "bad.parquet"), misfit); err == nil {
		t.Fatal("a file that does not fit was taken")
	}
	before := lstatOf(t, m.join("sales", "@v1", "p=1", "a.parquet")).Ino
	m.released("sales")
	tab.commit(tab.add("p=1/new.parquet", []byte("new"), map[string]string{"p": "1"}))
	if got := string(m.read("sales", "current", "p=1", "new.parquet")); got != "new" {
		t.Errorf("current/: %q", got)
	}
	if after := lstatOf(t, m.join("sales", "@v1", "p=1", "a.parquet")).Ino; after == before {
		t.Error("a file has the inode number that it had before the release")
	}
	if got := string(m.read("sales", ".delta", textErrors)); !strings.Contains(got, "bad.parquet") {
		t.Errorf("the failure is forgotten: %q", got)
	}
	if err := write(m.join("sales", "current", "p=1", "good.parquet"), rowFile(3, "x")); err != nil {
		t.Errorf("writing after the release: %v", err)
	}
}

func TestTableIsNotReleasedWhileTheKernelKnowsIt(t *testing.T) {
	lake := t.TempDir()
	threeVersions(t, filepath.Join(lake, "sales"))
	m := mount(t, lake, soonIdle)
	f, err := os.Open(m.join("sales", "@v1", "p=1", "b.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tab := m.tableAt("sales")
	inc := tab.present()
	m.fs.notifyAll(tab) // the open file keeps its directories
	eventually(t, "resting", tab.resting.Load)
	if tab.known.Load() == 0 {
		t.Error("the kernel has forgotten the directories of an open file")
	}
	if tab.release() || tab.present() != inc {
		t.Fatal("released with an open file")
	}
	buf := make([]byte, 100)
	if n, err := f.Read(buf); string(buf[:n]) != "file b, first" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

func TestTableIsNotReleasedWhileSomebodyCouldMissIt(t *testing.T) {
	lake := t.TempDir()
	other := threeVersions(t, filepath.Join(lake, "sales"))
	m := mount(t, lake, soonIdle, func(o *Options) { o.Grace = time.Hour })
	current := m.join("sales", "current")
	for _, c := range []struct {
		name       string
		begin, end func() error
	}{
		{"a file that is not complete",
			func() error {
				// The tail is to come, so closing it fails.
				if err := write(filepath.Join(current, ".x"), []byte("PAR1")); err != nil {
					return err
				}
				return nil
			},
			func() error { return os.Remove(filepath.Join(current, ".x")) }},
		{"a directory just made",
			func() error { return os.Mkdir(filepath.Join(current, "p=7"), 0o755) },
			func() error { return os.Remove(filepath.Join(current, "p=7")) }},
		{"a name in its grace",
			func() error {
				m.names("sales", "current", "p=1")
				other.commit(other.remove("p=1/a.parquet"))
				m.latest("sales")
				return nil
			},
			func() error {
				m.tableAt("sales").present().live.Refreshed(t.Context(), snapshot.Event{Recreated: true})
				return nil
			}},
	} {
		if err := c.begin(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		tab := m.tableAt("sales")
		inc := tab.present()
		m.kernelForgets(tab)
		eventually(t, "resting", tab.resting.Load)
		if tab.release() || tab.present() != inc {
			t.Errorf("released with %s", c.name)
		}
		if err := c.end(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		m.released("sales")
		m.latest("sales")
	}
}

func TestIdleTableIsNotProbed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	m := mount(t, dir, soonIdle, func(o *Options) { o.Refresh = time.Millisecond })
	m.names("current", "p=1")
	x := m.tableAt("")
	eventually(t, "resting", x.resting.Load)
	polled, heard := x.polled.Load(), x.events.Load()
	tab.commit(tab.add("p=1/new.parquet", []byte("new"), map[string]string{"p": "1"}))
	eventually(t, "hearing of the commit", func() bool { return x.events.Load() != heard })
	x.mu.Lock()
	attended := x.attended
	x.mu.Unlock()
	if attended || x.polled.Load() != polled || x.present().seen.Load() != 2 {
		t.Error("the log was looked at although nobody uses the table")
	}
	if got := m.latest(); got != "@v3" {
		t.Errorf("its next use shows %s", got)
	}

	// Nothing is heard of it, as on a network file system.
	x.unlisten()
	m.fs.watcher.close()
	m.latest()
	eventually(t, "the end of the refresher", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return !x.attended
	})
	if x.idle() < m.fs.opt.Idle {
		t.Error("a table in use is not probed any more")
	}
}

func TestIdleTableThatIsMadeAgainIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir, soonIdle)
	m.read("@v1", "p=1", "a.parquet")
	x := m.tableAt("")
	old := x.present()
	eventually(t, "resting", x.resting.Load)
	if err := os.RemoveAll(filepath.Join(dir, logDir)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the table", func() bool { return x.present() != old })
}

func TestOnIdleIsCalledOnceAfterEachBurst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	var calls atomic.Int32
	m := mount(t, dir, soonIdle, func(o *Options) { o.OnIdle = func() { calls.Add(1) } })
	for want := int32(1); want <= 3; want++ {
		eventually(t, "the end of the burst", func() bool { return calls.Load() == want })
		m.latest()
	}
}

// The kernel sends RELEASE some time after it has closed a file, and so may
// have forgotten everything before.
func TestHandleOutlivesTheReleaseOfItsTable(t *testing.T) {
	lake := t.TempDir()
	threeVersions(t, filepath.Join(lake, "sales"))
	f, err := New(t.Context(), Options{Source: lake, Idle: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(t.Context())
	id, ids := uint64(fuse.FUSE_ROOT_ID), []uint64(nil)
	for _, name := range []string{"sales", "@v1", "p=1", "b.parquet"} {
		var out fuse.EntryOut
		if st := f.Lookup(nil, &fuse.InHeader{NodeId: id}, name, &out); !st.Ok() {
			t.Fatal(name, st)
		}
		id = out.NodeId
		ids = append(ids, id)
	}
	var open fuse.OpenOut
	if st := f.Open(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: id}}, &open); !st.Ok() {
		t.Fatal(st)
	}
	tab := f.table("sales")
	for _, id := range ids {
		f.Forget(id, 1)
	}
	if !tab.release() {
		t.Fatal("not released")
	}
	buf := make([]byte, 100)
	res, st := f.Read(nil, &fuse.ReadIn{Fh: open.Fh, Size: 100}, buf)
	if !st.Ok() {
		t.Fatal(st)
	}
	if got, st := res.Bytes(buf); string(got) != "file b, first" {
		t.Errorf("%q, %v", got, st)
	}
	res.Done()
	if st := f.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: id}}, &fuse.AttrOut{}); st != fuse.Status(syscall.ESTALE) {
		t.Errorf("its node: %v", st)
	}
	f.Release(nil, &fuse.ReleaseIn{Fh: open.Fh})
}
