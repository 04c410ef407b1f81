package mountpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckRefusesWhatCannotBeMountedOn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	full := filepath.Join(dir, "full")
	empty := filepath.Join(dir, "empty")
	write(t, file)
	mkdir(t, full, empty)
	write(t, filepath.Join(full, "x"))
	for _, c := range []struct {
		name, path    string
		allowNonEmpty bool
		want          string // part of the message; "" is fit
	}{
		{"missing", filepath.Join(dir, "missing"), false, "does not exist"},
		{"missing parent", filepath.Join(dir, "a", "b"), false, "does not exist"},
		{"file", file, false, "not a directory"},
		{"file, non-empty allowed", file, true, "not a directory"},
		{"below a file", filepath.Join(file, "x"), false, "cannot be used"},
		{"not empty", full, false, "not empty"},
		{"not empty but allowed", full, true, ""},
		{"empty", empty, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			point, err := Check(c.path, c.allowNonEmpty)
			if c.want == "" {
				if err != nil || point != c.path {
					t.Errorf("got %q, %v", point, err)
				}
				return
			}
			if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrUnfit with %q", err, c.want)
			}
		})
	}
}

func TestCheckReturnsThePathWithSymlinksFollowed(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "real", "mnt"))
	symlink(t, "real", filepath.Join(dir, "link"))
	symlink(t, filepath.Join("link", "mnt"), filepath.Join(dir, "mnt"))
	for _, path := range []string{filepath.Join(dir, "link", "mnt"), filepath.Join(dir, "mnt")} {
		got, err := Check(path, false)
		if want := filepath.Join(dir, "real", "mnt"); err != nil || got != want {
			t.Errorf("Check(%s) = %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestCheckOverlapFollowsSymlinks(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "lake", "table")
	apart := filepath.Join(dir, "mnt")
	mkdir(t, filepath.Join(table, "inside"), apart, filepath.Join(dir, "lake", "table2"))
	symlink(t, filepath.Join("lake", "table"), filepath.Join(dir, "alias"))
	for _, c := range []struct {
		name, point, path string
		want              string
	}{
		{"apart", apart, table, ""},
		{"a name that begins alike", filepath.Join(dir, "lake", "table2"), table, ""},
		{"same", table, table, "is the mount point itself"},
		{"same by a link", table, filepath.Join(dir, "alias"), "is the mount point itself"},
		{"mount point inside", filepath.Join(table, "inside"), filepath.Join(dir, "alias"), "lies inside the table"},
		{"table inside", filepath.Join(dir, "lake"), filepath.Join(dir, "alias"), "lies inside the mount point"},
		{"everything is inside the root", "/", table, "lies inside the mount point"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckOverlap(c.point, "table", c.path)
			if c.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, ErrOverlap) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrOverlap with %q", err, c.want)
			}
		})
	}
}

func TestCheckOutsideJudgesAFileThatDoesNotExistYet(t *testing.T) {
	dir := t.TempDir()
	mnt := filepath.Join(dir, "mnt")
	mkdir(t, mnt)
	symlink(t, mnt, filepath.Join(dir, "link"))
	if err := CheckOutside(mnt, "log file", filepath.Join(dir, "link", "new", "log")); !errors.Is(err, ErrOverlap) {
		t.Errorf("inside: got %v", err)
	}
	if err := CheckOutside(mnt, "log file", filepath.Join(dir, "log")); err != nil {
		t.Errorf("beside: got %v", err)
	}
}

func mkdir(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
