package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A directory that is kept open must not outlive the one at its path.
func TestKeptDirectoriesAreThoseAtTheirPath(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"moved away": func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "log"), filepath.Join(dir, "old")))
			must(t, os.Mkdir(filepath.Join(dir, "log"), 0o755))
		},
		"deleted":     func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "log"))) },
		"whole table": func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+"-old")); must(t, os.Mkdir(dir, 0o755)) },
		"linked elsewhere": func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "log"), filepath.Join(dir, "old")))
			must(t, os.Mkdir(filepath.Join(dir, "new"), 0o755))
			symlink(t, "new", filepath.Join(dir, "log"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "table")
			must(t, os.Mkdir(dir, 0o755))
			l, err := OpenLocal(dir)
			must(t, err)
			defer l.Close()
			put(t, l, "log/0", "before", Won)
			put(t, l, "log/1", "before", Won)
			change(t, dir)
			if _, err := l.Head(t.Context(), "log/0"); !errors.Is(err, ErrNotExist) {
				t.Errorf("the old file is there: %v", err)
			}
			put(t, l, "log/0", "after", Won)
			if data, err := os.ReadFile(filepath.Join(dir, "log/0")); err != nil || string(data) != "after" {
				t.Errorf("at the path is %q, %v", data, err)
			}
			if got := read(t, l, "log/0"); got != "after" {
				t.Errorf("read %q", got)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLinksInAKeptDirectoryAreFollowedInTheRootOnly(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "table")
	write(t, outer, "secret", "secret")
	write(t, dir, "data", "text")
	l, err := OpenLocal(dir)
	must(t, err)
	put(t, l, "log/0", "zero", Won)
	symlink(t, "../data", filepath.Join(dir, "log/inside"))
	symlink(t, "../../secret", filepath.Join(dir, "log/outside"))
	if got := read(t, l, "log/inside"); got != "text" {
		t.Errorf("read %q", got)
	}
	if info, err := l.Head(t.Context(), "log/inside"); err != nil || info.Size != 4 {
		t.Errorf("head %+v, %v", info, err)
	}
	if _, err := l.Open(t.Context(), "log/outside"); !errors.Is(err, ErrOutside) {
		t.Errorf("open: %v", err)
	}
	if _, err := l.Head(t.Context(), "log/outside"); !errors.Is(err, ErrOutside) {
		t.Errorf("head: %v", err)
	}
	for _, name := range []string{"log/", "log/.", "log/..", "log/../.."} {
		if _, err := l.Open(t.Context(), name); err == nil {
			t.Errorf("opened %s", name)
		}
	}
}

func TestKeptDirectoriesAreFewAndClosed(t *testing.T) {
	l, dir := open(t)
	before := openFiles(t)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 40 {
				name := fmt.Sprintf("d%d/%d-%d", i%10, w, i)
				if outcome, err := l.PutIfAbsent(t.Context(), name, nil); outcome != Won {
					t.Errorf("%s: %v, %v", name, outcome, err)
				}
				if _, err := l.Head(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := openFiles(t) - before; got > 2*maxKeptDirs+1 { // and the root
		t.Errorf("%d more files are open", got)
	}
	must(t, l.Close())
	if got := openFiles(t) - before; got > 0 {
		t.Errorf("%d more files are open after closing", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 10 {
		t.Errorf("made %d directories, %v", len(entries), err)
	}
	put(t, l, "d0/again", "", Won)
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

func TestPutIfAbsentMakesPriorNamesDurableFirst(t *testing.T) {
	l, _ := open(t)
	for _, name := range []string{"a=1/x", "a=1/y", "a=2/z", "root"} {
		must(t, l.Publish(t.Context(), stage(t, "rows"), name))
	}
	var mu sync.Mutex
	synced := map[string]int{}
	l.calls.syncDir = func(d *os.File) error {
		mu.Lock()
		defer mu.Unlock()
		synced[filepath.Base(filepath.Clean(d.Name()))]++
		return syncDir(d)
	}
	l.calls.linkFile = func(d *directory, f *os.File, base string) error {
		mu.Lock()
		defer mu.Unlock()
		if len(synced) != 3 || synced["a=1"] != 1 || synced["a=2"] != 1 {
			t.Errorf("synced before the link: %v", synced)
		}
		return systemCalls.linkFile(d, f, base)
	}
	outcome, err := l.PutIfAbsent(t.Context(), "log/0", []byte("x"), "a=1/x", "a=2/z", "root", "a=1/y")
	if outcome != Won || err != nil {
		t.Errorf("%v, %v", outcome, err)
	}
	if len(synced) != 4 || synced["log"] != 1 {
		t.Errorf("synced: %v", synced)
	}
	broken := errors.New("broken")
	l.calls.syncDir = func(*os.File) error { return broken }
	if outcome, err := l.PutIfAbsent(t.Context(), "log/1", nil, "a=1/x"); outcome != Unsure || !errors.Is(err, broken) {
		t.Errorf("%v, %v", outcome, err)
	}
	if _, err := l.Head(t.Context(), "log/1"); !errors.Is(err, ErrNotExist) {
		t.Errorf("it exists before what it needs: %v", err)
	}
}
