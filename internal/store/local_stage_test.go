package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestStagedFileIsPublishedOrGone, with and without files that have no name.
func TestStagedFileIsPublishedOrGone(t *testing.T) {
	for _, unnamed := range []bool{true, false} {
		l, dir := open(t)
		write(t, dir, "log/first", "")
		if !unnamed {
			nameDrafts(l)
		}
		for _, publish := range []bool{false, true} {
			f, err := l.Stage(t.Context(), "log/x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString("content"); err != nil {
				t.Fatal(err)
			}
			if got := dirNames(t, filepath.Join(dir, "log")); len(got) != 1 {
				t.Errorf("unnamed %v: the directory has %q", unnamed, got)
			}
			if publish {
				err = l.Publish(t.Context(), f, "log/x")
			}
			f.Close()
			if err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(filepath.Join(dir, "log/x")); err != nil || string(got) != "content" {
			t.Errorf("unnamed %v: published %q, %v", unnamed, got, err)
		}
		if got := dirNames(t, filepath.Join(dir, "log")); len(got) != 2 {
			t.Errorf("unnamed %v: the directory has %q", unnamed, got)
		}
	}
}

func TestStageMakesNoDirectory(t *testing.T) {
	l, dir := open(t)
	if _, err := l.Stage(t.Context(), "log/x"); !errors.Is(err, ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "log")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

// TestPutHasANameOnlyWhenItIsComplete: a process that is killed while it writes
// leaves nothing behind.
func TestPutHasANameOnlyWhenItIsComplete(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "x", "before")
	seen := []string{}
	l.calls.linkFile = func(d *directory, f *os.File, base string) error {
		seen = dirNames(t, dir)
		return systemCalls.linkFile(d, f, base)
	}
	if err := l.Put(t.Context(), "x", []byte("after")); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 {
		t.Errorf("while it was written the directory had %q", seen)
	}
	for name, link := range map[string]func(*directory, *os.File, string) error{
		"no links": func(*directory, *os.File, string) error { return syscall.EPERM },
		"no /proc": func(*directory, *os.File, string) error { return fs.ErrNotExist },
	} {
		l.calls.linkFile = link
		if err := l.Put(t.Context(), "x", []byte(name)); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "x")); string(got) != name {
			t.Errorf("%s: %q", name, got)
		}
	}
	l.calls.linkFile = func(*directory, *os.File, string) error { return syscall.EIO }
	if err := l.Put(t.Context(), "x", []byte("lost")); err == nil {
		t.Error("an I/O error is no error")
	}
	if got := dirNames(t, dir); len(got) != 1 {
		t.Errorf("the directory has %q", got)
	}
}
