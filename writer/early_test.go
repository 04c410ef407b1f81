package writer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// countedCommits is storage that counts how commit files come to be.
type countedCommits struct {
	store.Store
	mu                   sync.Mutex
	puts, drafts, placed int
	unfinished           int
}

func (s *countedCommits) add(n *int, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n += by
}

func (s *countedCommits) PutIfAbsent(ctx context.Context, name string, data []byte, prior ...string) (store.Outcome, error) {
	s.add(&s.puts, 1)
	return s.Store.PutIfAbsent(ctx, name, data, prior...)
}

func (s *countedCommits) Draft(ctx context.Context, name string, data []byte, prior ...string) (store.Draft, error) {
	d, err := s.Store.Draft(ctx, name, data, prior...)
	if err != nil {
		return nil, err
	}
	s.add(&s.drafts, 1)
	s.add(&s.unfinished, 1)
	return &countedDraft{d, s}, nil
}

type countedDraft struct {
	store.Draft
	s *countedCommits
}

func (d *countedDraft) Place(ctx context.Context, name string) (store.Outcome, error) {
	d.s.add(&d.s.placed, 1)
	return d.Draft.Place(ctx, name)
}

func (d *countedDraft) Discard() {
	d.s.add(&d.s.unfinished, -1)
	d.Draft.Discard()
}

// openCounted opens a table whose commits are counted. At the end nothing may be
// left behind.
func openCounted(t *testing.T) (*Live, *countedCommits, string) {
	t.Helper()
	dir := t.TempDir()
	localTable(t, dir, firstVersion())
	local, err := store.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	st := &countedCommits{Store: local}
	table, err := snapshot.Open(context.Background(), st, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(context.Background(), table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if st.unfinished != 0 {
			t.Errorf("%d drafts are not discarded", st.unfinished)
		}
		if _, err := os.Stat(filepath.Join(dir, areaDir, mountsDir)); err == nil {
			t.Error("the mount left something behind")
		}
		wantNoStrayFiles(t, dir)
		table.Close()
	})
	return w.Live(), st, dir
}

// wantNoStrayFiles checks that the log names every data file, once.
func wantNoStrayFiles(t *testing.T, dir string) {
	t.Helper()
	table := openTable(t, dir)
	logged := map[string]int{}
	for v := int64(1); v <= table.Latest(); v++ {
		as, err := table.ReadCommit(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range as {
			if add, ok := a.(*action.Add); ok {
				logged[add.Path]++
			}
		}
	}
	objects, err := filepath.Glob(filepath.Join(dir, dataPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if logged[filepath.Base(o)] != 1 {
			t.Errorf("%s is logged %d times", filepath.Base(o), logged[filepath.Base(o)])
		}
	}
	if len(objects) != len(logged) {
		t.Errorf("%d data files for %d in the log", len(objects), len(logged))
	}
}

func TestCloseNamesTheCommitFileThatLiesReady(t *testing.T) {
	ctx := context.Background()
	l, st, dir := openCounted(t)
	for i := range 3 {
		name, data := fmt.Sprintf("f%d.parquet", i), tableFile(t, int64(i))
		s, err := l.Create(ctx, Caller{PID: 1}, "", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.WriteAt(ctx, data, 0); err != nil {
			t.Fatal(err)
		}
		if st.drafts != i+1 || st.placed != i {
			t.Fatalf("file %d: %d made ready, %d placed before it is closed", i, st.drafts, st.placed)
		}
		if got := listing(t, l, ""); strings.Contains(got, name) {
			t.Errorf("%s is listed before it is closed: %s", name, got)
		}
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		s.CloseHandle(true)
		n, err := l.Lookup(ctx, Caller{PID: 2}, "", name)
		if err != nil || n.File == nil {
			t.Fatalf("%s is %+v, %v", name, n, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, n.File.Path)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s holds other bytes, %v", name, err)
		}
	}
	if st.puts != 0 || st.placed != 3 {
		t.Errorf("%d commit files made at close, %d placed", st.puts, st.placed)
	}
}

// Whatever happens between the write that completes a file and its close, what
// is committed is what the file is then.
func TestWhatLiesReadyIsNotUsedWhenTheFileOrTheTableChanged(t *testing.T) {
	ctx := context.Background()
	one, two := tableFile(t, 1), tableFile(t, 2, 2, 2)
	when := time.Unix(1e9, 0).UTC()
	type scene struct {
		*testing.T
		l   *Live
		s   *Staged
		dir string
	}
	must := func(x scene, err error) {
		x.Helper()
		if err != nil {
			x.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		between func(x scene)
		// name and data of what is committed in the end, "" for nothing.
		name string
		data []byte
		// placed says that the commit file that lay ready is used.
		placed bool
	}{
		"nothing":           {func(scene) {}, "x.parquet", one, true},
		"its time set":      {func(x scene) { x.s.SetModTime(when) }, "x.parquet", one, false},
		"written once more": {func(x scene) { _, err := x.s.WriteAt(ctx, one, 0); must(x, err) }, "x.parquet", one, true},
		"written anew": {func(x scene) {
			must(x, x.s.Truncate(ctx, 0))
			_, err := x.s.WriteAt(ctx, two, 0)
			must(x, err)
		}, "x.parquet", two, true},
		"cut": {func(x scene) { must(x, x.s.Truncate(ctx, 10)) }, "", nil, false},
		"renamed": {func(x scene) {
			must(x, x.l.Rename(ctx, Caller{PID: 1}, "", "x.parquet", "", "y.parquet", false))
		}, "y.parquet", one, false},
		"given a scratch name": {func(x scene) {
			must(x, x.l.Rename(ctx, Caller{PID: 1}, "", "x.parquet", "", ".x.tmp", false))
		}, "", nil, false},
		"linked": {func(x scene) {
			_, err := x.l.Link(ctx, Caller{PID: 1}, x.s, "", "z.parquet")
			must(x, err)
		}, "z.parquet", one, false},
		"removed": {func(x scene) { must(x, x.l.Unlink(ctx, Caller{PID: 1}, "", "x.parquet")) }, "", nil, false},
		"another commit": {func(x scene) {
			localCommit(x.T, x.dir, 1, testAdd("part-00000-other"))
		}, "x.parquet", one, false},
		"another file closed": {func(x scene) {
			must(x, copyIn(x.l, Caller{PID: 2}, "", "other.parquet", two))
		}, "x.parquet", one, false},
		"vacuumed": {func(x scene) {
			objects, err := filepath.Glob(filepath.Join(x.dir, dataPrefix+"*"))
			must(x, err)
			must(x, os.Remove(objects[0]))
		}, "x.parquet", one, false},
		"long ago": {func(x scene) { x.s.early.made = x.s.early.made.Add(-time.Hour) }, "x.parquet", one, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, st, dir := openCounted(t)
			s, err := l.Create(ctx, Caller{PID: 1}, "", "x.parquet")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.WriteAt(ctx, one, 0); err != nil || s.early == nil {
				t.Fatalf("nothing lies ready, %v", err)
			}
			x := scene{t, l, s, dir}
			c.between(x)
			placed := st.placed
			if err := s.Flush(ctx); (err != nil) != (name == "cut") {
				t.Fatalf("flush: %v", err)
			}
			s.CloseHandle(true)
			if got := st.placed - placed; (got == 1) != c.placed {
				t.Errorf("%d placed", got)
			}
			if err := l.back.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
			l.Refreshed(ctx, snapshot.Event{})
			for _, name := range []string{"x.parquet", "y.parquet", "z.parquet"} {
				n, err := l.Lookup(ctx, Caller{PID: 3}, "", name)
				committed := err == nil && n.File != nil
				if committed != (name == c.name) {
					t.Errorf("%s is committed: %v, %v", name, committed, err)
				}
				if !committed {
					continue
				}
				if got, err := os.ReadFile(filepath.Join(dir, n.File.Path)); err != nil || !bytes.Equal(got, c.data) || n.File.Size != int64(len(c.data)) {
					t.Errorf("%s holds other bytes, %v", name, err)
				}
				if strings.HasSuffix(t.Name(), "its_time_set") && !n.File.ModTime.Equal(when) {
					t.Errorf("its time is %v", n.File.ModTime)
				}
			}
			if name == "another commit" { // which names a file that is not there
				must(x, os.WriteFile(filepath.Join(dir, "part-00000-other"), nil, 0o644))
			}
			_ = l.Unlink(ctx, Caller{PID: 1}, "", ".x.tmp")
			_ = l.Unlink(ctx, Caller{PID: 1}, "", "x.parquet")
		})
	}
}

// localCommit is another writer's commit.
func localCommit(t *testing.T, dir string, v int64, as ...action.Action) {
	t.Helper()
	var file []byte
	for _, a := range as {
		line, err := action.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		file = append(append(file, line...), '\n')
	}
	if err := os.WriteFile(filepath.Join(dir, snapshot.CommitName(v)), file, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsMadeReadyAmongOthers(t *testing.T) {
	ctx := context.Background()
	l, st, _ := openCounted(t)
	var files []*Staged
	for i := range 3 {
		s, err := l.Create(ctx, Caller{PID: uint32(i + 1)}, "", fmt.Sprintf("f%d.parquet", i))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, s)
	}
	for i, s := range files {
		if _, err := s.WriteAt(ctx, tableFile(t, int64(i)), 0); err != nil {
			t.Fatal(err)
		}
	}
	if st.drafts != 0 {
		t.Errorf("%d made ready", st.drafts)
	}
	for _, s := range files {
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		s.CloseHandle(true)
	}
}

// A mount that is killed with an append ready leaves the bytes to be kept, and
// no data file.
func TestKilledMountLeavesNothingOfWhatLayReady(t *testing.T) {
	ctx := context.Background()
	l, _, dir := openCounted(t)
	s, err := l.Create(ctx, Caller{PID: 1}, "", "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	data := tableFile(t, 1)
	if _, err := s.WriteAt(ctx, data, 0); err != nil || s.early == nil {
		t.Fatalf("nothing lies ready, %v", err)
	}
	after := filepath.Join(t.TempDir(), "table")
	if err := os.CopyFS(after, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s.dropEarly(ctx)
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	s.CloseHandle(true)
	next, err := Open(ctx, openTable(t, after), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close(ctx)
	wantNoStrayFiles(t, after)
	rejected, err := next.Live().Rejected(ctx)
	if err != nil || len(rejected) != 1 || rejected[0].Wanted != "x.parquet" {
		t.Fatalf("kept are %+v, %v", rejected, err)
	}
	if got, err := os.ReadFile(rejected[0].Path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("other bytes are kept, %v", err)
	}
}
