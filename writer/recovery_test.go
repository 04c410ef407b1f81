package writer

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// crash is the table as a killed mount leaves it: what is on disk, and what
// the log holds.
func (b *fakeBack) crash(t *testing.T) *fakeBack {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	root := filepath.Join(t.TempDir(), "table")
	if out, err := exec.Command("cp", "-a", b.root, root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	after := &fakeBack{
		adds: maps.Clone(b.adds),
		root: root, fields: b.fields, versions: slices.Clone(b.versions), log: slices.Clone(b.log),
		objects: slices.Clone(b.objects), nextID: b.nextID, shown: len(b.versions) - 1,
	}
	for i, v := range after.versions {
		copied := *v
		copied.back = after
		after.versions[i] = &copied
	}
	return after
}

// TestKilledMountLosesNothingAndCommitsNothingTwice kills the mount at every
// point of some scripts and mounts again.
func TestKilledMountLosesNothingAndCommitsNothingTwice(t *testing.T) {
	for name, script := range map[string]string{
		"append":  "create h x.parquet; write h B; flush h; close h",
		"rename":  "create h .x.tmp; write h B; flush h; close h; rename .x.tmp x.parquet",
		"replace": "open h old.parquet trunc; write h B; flush h; close h",
		"link":    "create h x.parquet#1; write h B; link h x.parquet; unlink x.parquet#1; close h",
	} {
		t.Run(name, func(t *testing.T) {
			back := newFakeBack(t)
			l := back.open(t, Options{})
			put(t, l, "old.parquet", "A")
			crashes := map[string]*fakeBack{}
			back.at = func(point string) { crashes[point] = back.crash(t) }
			newKernel(l, 1).run(t, script)
			back.at = nil
			crashes["after everything"] = back.crash(t)
			if len(crashes) != 6 {
				t.Fatalf("killed at %v", slices.Collect(maps.Keys(crashes)))
			}
			for point, after := range crashes {
				checkRecovered(t, point, after)
			}
		})
	}
}

// TestKilledMoveLeavesNoFileBehind kills the mount at every point of a move
// from one committed name to another and mounts again.
func TestKilledMoveLeavesNoFileBehind(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "a.parquet", "A")
	put(t, l, "b.parquet", "B")
	crashes := map[string]*fakeBack{}
	back.at = func(point string) { crashes[point] = back.crash(t) }
	if err := l.Rename(context.Background(), Caller{PID: 1}, "", "a.parquet", "", "b.parquet", false); err != nil {
		t.Fatal(err)
	}
	back.at = nil
	crashes["after everything"] = back.crash(t)
	if len(crashes) < 4 {
		t.Fatalf("killed at %v", slices.Collect(maps.Keys(crashes)))
	}
	for point, after := range crashes {
		next := after.open(t, Options{})
		live := map[string]bool{}
		for _, data := range after.contents(t) {
			live[data] = true
		}
		if !live[string(content("A"))] || len(live) == 2 != !(point == "after the commit" || point == "after everything") {
			t.Errorf("%s: the table holds %v", point, live)
		}
		if rejected, err := next.Rejected(context.Background()); err != nil || len(rejected) != 0 {
			t.Errorf("%s: rejected %+v, %v", point, rejected, err)
		}
		// The files of a and b stay for older versions.
		want := 2
		if len(live) == 1 {
			want = 3
		}
		objects, err := filepath.Glob(filepath.Join(after.root, "part-*"))
		if err != nil || len(objects) != want {
			t.Errorf("%s: data files %v, want %d", point, objects, want)
		}
		checkClosed(t, next, after)
	}
}

// checkRecovered mounts a crashed table twice: content B is in the table or
// among the rejected files, once.
func checkRecovered(t *testing.T, point string, after *fakeBack) {
	t.Helper()
	for range 2 {
		l := after.open(t, Options{})
		found := 0
		for _, data := range after.contents(t) {
			if data == string(content("B")) {
				found++
			}
		}
		committed := found
		rejected, err := l.Rejected(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rejected {
			data, err := os.ReadFile(r.Path)
			if err != nil || string(data) != string(content("B")) || r.Reason == "" || r.Wanted == "" {
				t.Errorf("%s: rejected %+v holds %q, %v", point, r, data, err)
			}
			found++
		}
		if found != 1 {
			t.Errorf("%s: the file is there %d times, %d of them committed", point, found, committed)
		}
		if want := point == "after the commit" || point == "after everything"; (committed == 1) != want {
			t.Errorf("%s: committed: %d", point, committed)
		}
		objects, err := filepath.Glob(filepath.Join(after.root, "part-*"))
		if want := 1 + committed; err != nil || len(objects) != want {
			t.Errorf("%s: data files %v, want %d", point, objects, want)
		}
		if err := l.close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(after.root, areaDir, mountsDir)); err == nil {
			t.Errorf("%s: the dead mount is still there", point)
		}
	}
}

func TestKilledMountKeepsIncompleteBytesAndDropsEmptyFiles(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	newKernel(l, 1).run(t, "create a a.parquet; create b b.parquet; write b A 0 half; create c .tmp; write c TEXT; rename b.parquet c.parquet")
	after := back.crash(t)
	next := after.open(t, Options{})
	rejected, err := next.Rejected(context.Background())
	if err != nil || len(rejected) != 2 || rejected[0].Wanted != "c.parquet" || rejected[1].Wanted != ".tmp" {
		t.Fatalf("rejected are %+v, %v", rejected, err)
	}
	if half, err := os.ReadFile(rejected[0].Path); err != nil || string(half) != string(content("A")[:len(content("A"))/2]) {
		t.Errorf("kept %q, %v", half, err)
	}
	checkClosed(t, next, after)
}

func TestLiveMountIsNotTakenOver(t *testing.T) {
	back := newFakeBack(t)
	first := back.open(t, Options{})
	k := newKernel(first, 1)
	k.run(t, "create h x.parquet; write h A 0 half")
	second := back.open(t, Options{})
	if rejected, err := second.Rejected(context.Background()); err != nil || len(rejected) != 0 {
		t.Fatalf("took over %+v, %v", rejected, err)
	}
	put(t, second, "y.parquet", "B")
	if err := second.close(context.Background()); err != nil {
		t.Fatal(err)
	}
	k.run(t, "write h A half; flush h; close h")
	if got := back.contents(t); len(got) != 2 {
		t.Errorf("table holds %q", got)
	}
	checkClosed(t, first, back)
}

func TestMountsThatStartTogetherRecoverOnce(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	newKernel(l, 1).run(t, "create a a.parquet; write a A; create b b.parquet; write b B 0 half")
	after := back.crash(t)
	var wg sync.WaitGroup
	mounts := make([]*Live, 6)
	for i := range mounts {
		wg.Go(func() {
			l, err := openLive(context.Background(), after, Options{Report: func(op, name string, err error) {
				if op == "recover" && name == "" {
					return
				}
				t.Errorf("%s %s: %v", op, name, err)
			}})
			if err != nil {
				t.Error(err)
				return
			}
			if err := copyIn(l, Caller{}, "", string(rune('a'+i))+"-new.parquet", content("C")); err != nil {
				t.Error(err)
			}
			mounts[i] = l
		})
	}
	wg.Wait()
	rejected, err := mounts[0].Rejected(context.Background())
	if err != nil || len(rejected) != 2 {
		t.Errorf("rejected are %+v, %v", rejected, err)
	}
	for _, l := range mounts {
		wg.Go(func() {
			if err := l.close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(filepath.Join(after.root, areaDir, mountsDir)); err == nil {
		t.Error("mounts left something behind")
	}
	if got := len(after.contents(t)); got != len(mounts) {
		t.Errorf("table holds %d files", got)
	}
}

func TestLinkedStagingAreaIsNotFollowed(t *testing.T) {
	back := newFakeBack(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(back.root, areaDir)); err != nil {
		t.Fatal(err)
	}
	l := back.open(t, Options{})
	if _, err := l.Create(context.Background(), Caller{}, "", "x.parquet"); err == nil {
		t.Error("a file was staged outside the table")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("outside the table there is %v, %v", entries, err)
	}
}

func TestRejectedNamesAreVisibleAndFit(t *testing.T) {
	long := strings.Repeat("ä", 150)
	for _, c := range []struct {
		wanted string
		i      int
		want   string
	}{
		{"p=1/x.parquet", 1, "x.parquet"},
		{"x.parquet", 3, "x~3.parquet"},
		{"..x.parquet", 1, "x.parquet"},
		{"...", 1, "unnamed"},
		{long + ".parquet", 2, strings.Repeat("ä", 96) + "~2.parquet"},
	} {
		if got := rejectedName(c.wanted, c.i); got != c.want {
			t.Errorf("%q, %d: %q, want %q", c.wanted, c.i, got, c.want)
		}
	}
}
