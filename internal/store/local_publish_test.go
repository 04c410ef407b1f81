package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stage writes a file, long ago, outside of any store.
func stage(t *testing.T, text string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "staged"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-100 * time.Hour)
	if err := os.Chtimes(f.Name(), old, old); err != nil {
		t.Fatal(err)
	}
	return f
}

func stat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return fi
}

// checkPublished compares content and age.
func checkPublished(t *testing.T, l *Local, name, want string, since time.Time) {
	t.Helper()
	if got := read(t, l, name); got != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
	// The clock of file times may be one tick behind.
	if mtime := stat(t, l.Path(name)).ModTime(); mtime.Before(since.Add(-time.Second)) {
		t.Errorf("%s is from %v, before it was published at %v", name, mtime, since)
	}
	checkNoTemp(t, filepath.Dir(l.Path(name)))
}

func TestPublishLinksTheStagedFile(t *testing.T) {
	l, dir := open(t)
	staged, now := stage(t, "rows"), time.Now()
	if err := l.Publish(t.Context(), staged, "a=1/b=2/f.parquet"); err != nil {
		t.Fatal(err)
	}
	checkPublished(t, l, "a=1/b=2/f.parquet", "rows", now)
	if !os.SameFile(stat(t, staged.Name()), stat(t, filepath.Join(dir, "a=1/b=2/f.parquet"))) {
		t.Error("copied, although a link was possible")
	}
	if mode := stat(t, filepath.Join(dir, "a=1")).Mode().Perm(); mode&^0o755 != 0 || mode&0o700 != 0o700 {
		t.Errorf("directory mode %o", mode)
	}
}

func TestPublishFromAnUnlinkedOrReadOnlyFile(t *testing.T) {
	l, _ := open(t)
	staged, now := stage(t, "rows"), time.Now()
	readOnly, err := os.Open(staged.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	if err := l.Publish(t.Context(), readOnly, "one"); err != nil {
		t.Fatal(err)
	}
	checkPublished(t, l, "one", "rows", now)
	gone := stage(t, "gone")
	if err := os.Remove(gone.Name()); err != nil {
		t.Fatal(err)
	}
	if err := l.Publish(t.Context(), gone, "two"); err != nil {
		t.Fatal(err)
	}
	checkPublished(t, l, "two", "gone", now)
}

func TestPublishAgainIsNoError(t *testing.T) {
	l, _ := open(t)
	staged := stage(t, "rows")
	for range 2 {
		if err := l.Publish(t.Context(), staged, "f"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPublishNeverReplaces(t *testing.T) {
	for name, errno := range map[string]error{"link": nil, "copy": unix.EXDEV, "copy without links": unix.EPERM} {
		t.Run(name, func(t *testing.T) {
			l, dir := open(t)
			if errno != nil {
				failLink(l, errno)
			}
			write(t, dir, "f", "theirs")
			if err := l.Publish(t.Context(), stage(t, "ours"), "f"); !errors.Is(err, ErrExist) {
				t.Errorf("got %v, want ErrExist", err)
			}
			if got := read(t, l, "f"); got != "theirs" {
				t.Errorf("got %q", got)
			}
			checkNoTemp(t, dir)
		})
	}
}

func TestPublishAcrossFileSystemsCopies(t *testing.T) {
	l, dir := open(t)
	l.calls.linkFile = func(*directory, *os.File, string) error { return unix.EXDEV }
	staged, now := stage(t, "rows"), time.Now()
	if _, err := staged.Seek(2, 0); err != nil {
		t.Fatal(err)
	}
	if err := l.Publish(t.Context(), staged, "d/f"); err != nil {
		t.Fatal(err)
	}
	checkPublished(t, l, "d/f", "rows", now)
	if at, err := staged.Seek(0, 1); err != nil || at != 2 {
		t.Errorf("the staged file's offset moved to %d, %v", at, err)
	}
	if got := dirNames(t, dir); !slices.Equal(got, []string{"d"}) {
		t.Errorf("made %q", got)
	}
}

func TestPublishCopyCanBeCancelled(t *testing.T) {
	l, dir := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	l.calls.linkFile = func(*directory, *os.File, string) error {
		cancel()
		return unix.EXDEV
	}
	if err := l.Publish(ctx, stage(t, "rows"), "f"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := dirNames(t, dir); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

func TestPublishReportsOtherFailures(t *testing.T) {
	l, dir := open(t)
	failLink(l, unix.EIO)
	if err := l.Publish(t.Context(), stage(t, "rows"), "f"); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v, want EIO", err)
	}
	if got := dirNames(t, dir); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}
