package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T) (*Local, string) {
	t.Helper()
	dir := t.TempDir()
	l, err := OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, l *Local, name string) string {
	t.Helper()
	o, err := l.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	text, err := io.ReadAll(io.NewSectionReader(o, 0, o.Info().Size))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dirNames lists what is really in a directory, hidden files too.
func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestOpenLocalRefusesWhatIsNoDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "")
	for _, name := range []string{"missing", "file", "file/x"} {
		if _, err := OpenLocal(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	if _, err := OpenLocal(filepath.Join(dir, "missing")); !errors.Is(err, ErrNotExist) {
		t.Errorf("missing root: got %v, want ErrNotExist", err)
	}
}

// openBothWays runs a test with files opened in one call, and again as on a
// kernel that cannot.
func openBothWays(t *testing.T, l *Local, test func(t *testing.T)) {
	t.Run("openat2", func(t *testing.T) {
		var how error
		l.calls.openBeneath = func(dir int, name string) (int, error) {
			fd, err := openBeneath(dir, name)
			how = err
			return fd, err
		}
		test(t)
		if errors.Is(how, syscall.ENOSYS) {
			t.Error("this kernel has no openat2")
		}
	})
	t.Run("os.Root", func(t *testing.T) {
		l.calls.openBeneath = func(int, string) (int, error) { return -1, syscall.ENOSYS }
		test(t)
	})
}

func TestReadsStayInTheRoot(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "table")
	write(t, outer, "secret/file", "secret")
	write(t, dir, "in/file", "text")
	symlink(t, "../secret/file", filepath.Join(dir, "filelink"))
	symlink(t, "../secret", filepath.Join(dir, "dirlink"))
	symlink(t, filepath.Join(dir, "in/file"), filepath.Join(dir, "absolute"))
	symlink(t, "../in/file", filepath.Join(dir, "in/inner"))
	symlink(t, "in", filepath.Join(dir, "innerdir"))
	symlink(t, "loop", filepath.Join(dir, "loop"))
	symlink(t, dir, filepath.Join(outer, "rootlink"))
	l, err := OpenLocal(filepath.Join(outer, "rootlink"))
	if err != nil {
		t.Fatal(err)
	}
	outside := []string{"filelink", "dirlink/file", "absolute", "../secret/file", "in/../../secret/file", "/etc/passwd", "../table/in/file"}
	openBothWays(t, l, func(t *testing.T) {
		for _, name := range outside {
			if _, err := l.Open(t.Context(), name); !errors.Is(err, ErrOutside) {
				t.Errorf("Open(%q): got %v, want ErrOutside", name, err)
			}
		}
		for _, name := range []string{"in/file", "in/inner", "innerdir/file", "in/../in/file"} {
			if got := read(t, l, name); got != "text" {
				t.Errorf("%s: got %q", name, got)
			}
		}
		if _, err := l.Open(t.Context(), "loop"); err == nil || errors.Is(err, ErrNotExist) {
			t.Errorf("a loop of links: got %v", err)
		}
	})
	for _, name := range outside {
		if _, err := l.Head(t.Context(), name); !errors.Is(err, ErrOutside) {
			t.Errorf("Head(%q): got %v, want ErrOutside", name, err)
		}
	}
	var names []string
	for info, err := range l.List(t.Context(), "", "", "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	if want := []string{"in/file", "in/inner"}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
	for _, prefix := range []string{"../", "/etc/", "dirlink/"} {
		for _, err := range l.List(t.Context(), prefix, "", "") {
			if !errors.Is(err, ErrOutside) {
				t.Errorf("List(%q): got %v, want ErrOutside", prefix, err)
			}
		}
	}
}

func TestWritesStayInTheRoot(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "table")
	write(t, outer, "secret/file", "secret")
	write(t, dir, "staged", "x")
	symlink(t, "../secret", filepath.Join(dir, "dirlink"))
	l, err := OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	staged, err := os.Open(filepath.Join(dir, "staged"))
	if err != nil {
		t.Fatal(err)
	}
	defer staged.Close()
	ctx := t.Context()
	for _, name := range []string{"dirlink/new", "../new", "/tmp/deltafs-new", "dirlink/sub/new", "", "a/..", "."} {
		_, err := l.PutIfAbsent(ctx, name, []byte("x"))
		for what, err := range map[string]error{
			"PutIfAbsent": err,
			"Put":         l.Put(ctx, name, []byte("x")),
			"Publish":     l.Publish(ctx, staged, name),
		} {
			if !errors.Is(err, ErrOutside) {
				t.Errorf("%s(%q): got %v, want ErrOutside", what, name, err)
			}
		}
	}
	if err := l.Delete(ctx, "dirlink/file"); !errors.Is(err, ErrOutside) {
		t.Errorf("Delete: got %v, want ErrOutside", err)
	}
	if err := l.MkdirAll("dirlink/sub"); !errors.Is(err, ErrOutside) {
		t.Errorf("MkdirAll: got %v, want ErrOutside", err)
	}
	if err := l.Chtimes("dirlink/file", time.Unix(0, 0)); !errors.Is(err, ErrOutside) {
		t.Errorf("Chtimes: got %v, want ErrOutside", err)
	}
	if got := dirNames(t, filepath.Join(outer, "secret")); !slices.Equal(got, []string{"file"}) {
		t.Errorf("outside the root now: %q", got)
	}
}

func TestOpenRefusesWhatIsNoRegularFile(t *testing.T) {
	l, dir := open(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	// The address of a socket is short; that of the directory need not be.
	t.Chdir(dir)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: "socket"}); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "d/file", "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	names := []string{"pipe", "d", ".", "missing", "d/file/x", "pipe/x", "socket"}
	openBothWays(t, l, func(t *testing.T) {
		for _, name := range names {
			if _, err := l.Open(ctx, name); !errors.Is(err, ErrNotExist) {
				t.Errorf("Open(%q): got %v, want ErrNotExist", name, err)
			}
		}
	})
	for _, name := range names {
		if _, err := l.Head(ctx, name); !errors.Is(err, ErrNotExist) {
			t.Errorf("Head(%q): got %v, want ErrNotExist", name, err)
		}
	}
	for info, err := range l.List(ctx, "pipe/", "", "") {
		t.Errorf("listing a pipe yielded %v, %v", info, err)
	}
	if _, err := l.PutIfAbsent(ctx, "pipe/x", nil); err == nil {
		t.Error("PutIfAbsent below a pipe succeeded")
	}
}

func TestIdentityChangesWithTheFile(t *testing.T) {
	l, dir := open(t)
	ctx := t.Context()
	when := time.Unix(1000, 5)
	put := func(text string) Info {
		if err := l.Put(ctx, "f", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := l.Chtimes("f", when); err != nil {
			t.Fatal(err)
		}
		info, err := l.Head(ctx, "f")
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := put("one")
	keep, err := os.Open(filepath.Join(dir, "f")) // so that its inode is not used again
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	second := put("two")
	if first.Identity == second.Identity || (first.Identity == Identity{}) {
		t.Errorf("identity %v of two files of one size and time", first.Identity)
	}
	if !second.ModTime.Equal(when) || second.Size != 3 {
		t.Errorf("got %+v", second)
	}
	o, err := l.Open(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.Info() != second {
		t.Errorf("Open says %+v, Head %+v", o.Info(), second)
	}
	if o.File() == nil {
		t.Error("no local file")
	}
}

func TestReplacedRootIsNoticed(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "table")
	write(t, dir, "f", "old")
	l, err := OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Head(t.Context(), "f"); !errors.Is(err, ErrNotExist) {
		t.Errorf("without a root: got %v, want ErrNotExist", err)
	}
	if _, err := l.PutIfAbsent(t.Context(), "g", nil); !errors.Is(err, ErrNotExist) {
		t.Errorf("without a root: got %v, want ErrNotExist", err)
	}
	write(t, dir, "f", "new")
	if got := read(t, l, "f"); got != "old" {
		t.Errorf("got %q before the new directory was looked at", got)
	}
	if info, err := l.Head(t.Context(), "f"); err != nil || info.Size != 3 {
		t.Errorf("got %v, %v of the new directory", info, err)
	}
	if got := read(t, l, "f"); got != "new" {
		t.Errorf("got %q from the new directory", got)
	}
}

func TestStoreAtRestHoldsNoDirectory(t *testing.T) {
	l, dir := open(t)
	held := func() (n int) {
		for _, fd := range dirNames(t, "/proc/self/fd") {
			if path, err := os.Readlink("/proc/self/fd/" + fd); err == nil && strings.HasPrefix(path, dir) {
				n++
			}
		}
		return n
	}
	if err := l.Put(t.Context(), "d/f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if held() == 0 {
		t.Fatal("holds nothing in use, so the test finds out nothing")
	}
	l.Rest()
	for deadline := time.Now().Add(10 * time.Second); held() > 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d directories are open", held())
		}
	}
	if got := read(t, l, "d/f"); got != "x" {
		t.Errorf("got %q after the rest", got)
	}
}

func TestStoreIsUsableAfterClose(t *testing.T) {
	l, _ := open(t)
	for range 2 {
		if err := l.Put(t.Context(), "f", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMkdirAllMakesWhatIsMissing(t *testing.T) {
	l, dir := open(t)
	for range 2 {
		if err := l.MkdirAll("a/b/c"); err != nil {
			t.Fatal(err)
		}
	}
	if fi, err := os.Stat(filepath.Join(dir, "a/b/c")); err != nil || !fi.IsDir() {
		t.Fatalf("got %v, %v", fi, err)
	}
	write(t, dir, "file", "")
	if err := l.MkdirAll("file/x"); !errors.Is(err, ErrNotExist) {
		t.Errorf("below a file: got %v", err)
	}
}

func TestPathIsBelowTheRoot(t *testing.T) {
	l, dir := open(t)
	if got := l.Path("a/b"); got != filepath.Join(dir, "a/b") || l.Root() != dir {
		t.Errorf("got %q below %q", got, l.Root())
	}
}

func TestDeleteTakesFilesOnly(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "d/f", "x")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for range 2 {
		if err := l.Delete(ctx, "d/f"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Delete(ctx, "missing/f"); err != nil {
		t.Errorf("below a missing directory: %v", err)
	}
	if err := l.Delete(ctx, "empty"); err == nil {
		t.Error("a directory was deleted")
	}
	if got := dirNames(t, dir); !slices.Equal(got, []string{"d", "empty"}) {
		t.Errorf("left: %q", got)
	}
}

func TestCancelledContextStopsBeforeWork(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "f", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f, err := os.Open(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, headErr := l.Head(ctx, "f")
	_, openErr := l.Open(ctx, "f")
	_, putErr := l.PutIfAbsent(ctx, "g", nil)
	errs := []error{headErr, openErr, putErr, l.Put(ctx, "g", nil), l.Delete(ctx, "f"), l.Publish(ctx, f, "g")}
	for _, err := range l.List(ctx, "", "", "") {
		errs = append(errs, err)
	}
	if len(errs) != 7 {
		t.Errorf("got %d errors", len(errs))
	}
	for i, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d: got %v", i, err)
		}
	}
	if got := dirNames(t, dir); !slices.Equal(got, []string{"f"}) {
		t.Errorf("left: %q", got)
	}
}

func TestErrorsNameTheFileAndTheCause(t *testing.T) {
	l, _ := open(t)
	_, err := l.Open(t.Context(), "missing")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "missing: cannot open: no such file") {
		t.Errorf("got %q", err)
	}
}

func TestPutReplacesWhole(t *testing.T) {
	l, dir := open(t)
	for _, text := range []string{"long text", "", "x"} {
		if err := l.Put(t.Context(), "d/f", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, l, "d/f"); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	if got := dirNames(t, filepath.Join(dir, "d")); !slices.Equal(got, []string{"f"}) {
		t.Errorf("left: %q", got)
	}
}
