package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// failLink makes every link fail without having an effect.
func failLink(l *Local, errno error) {
	l.calls.link = func(*directory, string, string) error { return errno }
	l.calls.linkFile = func(*directory, *os.File, string) error { return errno }
}

// nameDrafts stands for a file system without unnamed files.
func nameDrafts(l *Local) {
	l.calls.openUnnamed = func(*directory) (*os.File, error) { return nil, unix.EOPNOTSUPP }
}

// put calls PutIfAbsent, expecting this outcome, an error if and only if it
// is Unsure, and no temporary file.
func put(t *testing.T, l *Local, name, text string, want Outcome) error {
	t.Helper()
	got, err := l.PutIfAbsent(t.Context(), name, []byte(text))
	if got != want || (err != nil) != (want == Unsure) {
		t.Errorf("PutIfAbsent(%q) = %v, %v, want outcome %v", name, got, err, want)
	}
	checkNoTemp(t, filepath.Dir(l.Path(name)))
	return err
}

func checkNoTemp(t *testing.T, dir string) {
	t.Helper()
	for _, name := range dirNames(t, dir) {
		if strings.HasPrefix(name, ".") {
			t.Errorf("left in %s: %s", dir, name)
		}
	}
}

func TestPutIfAbsentWinsOnce(t *testing.T) {
	l, _ := open(t)
	put(t, l, "log/0.json", "first", Won)
	put(t, l, "log/0.json", "second", Lost)
	put(t, l, "log/0.json", "first", Lost)
	if got := read(t, l, "log/0.json"); got != "first" {
		t.Errorf("got %q", got)
	}
}

func TestPutIfAbsentLosesToWhateverHasTheName(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "d/file", "")
	symlink(t, "missing", filepath.Join(dir, "dangling"))
	put(t, l, "d", "x", Lost)
	put(t, l, "dangling", "x", Lost)
	if _, err := os.Lstat(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written through a link: %v", err)
	}
}

func TestPutIfAbsentWithoutHardLinksRenames(t *testing.T) {
	for i, errno := range []error{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EPERM} {
		l, _ := open(t)
		failLink(l, errno)
		if i == 0 {
			nameDrafts(l)
		}
		put(t, l, "f", "first", Won)
		put(t, l, "f", "second", Lost)
		if got := read(t, l, "f"); got != "first" {
			t.Errorf("%v: got %q", errno, got)
		}
	}
}

func TestPutIfAbsentWithoutAnAtomicCallIsReadOnly(t *testing.T) {
	for _, errno := range []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP} {
		l, dir := open(t)
		failLink(l, unix.EPERM)
		l.calls.renameNoReplace = func(*directory, string, string) error { return errno }
		if err := put(t, l, "f", "x", Unsure); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "hard links") {
			t.Errorf("%v: got %v, want ErrReadOnly with a reason", errno, err)
		}
		if got := dirNames(t, dir); len(got) != 0 {
			t.Errorf("left: %q", got)
		}
	}
}

func TestPutIfAbsentChecksAFailedLink(t *testing.T) {
	// The link of a draft with a temporary name, and of one without.
	type link func(base string) error
	tests := []struct {
		name string
		link func(d *directory, real link, base string) error
		want Outcome
	}{
		{"the answer of a link that was made is lost", func(_ *directory, real link, base string) error {
			if err := real(base); err != nil {
				return err
			}
			return unix.EIO
		}, Won},
		{"a repeated request finds its own link", func(_ *directory, real link, base string) error {
			if err := real(base); err != nil {
				return err
			}
			return unix.EEXIST
		}, Won},
		{"another had the same content", func(d *directory, _ link, base string) error {
			if err := d.WriteFile(base, []byte("ours"), 0o644); err != nil {
				return err
			}
			return unix.EEXIST
		}, Lost},
		{"an error without a trace", func(*directory, link, string) error { return unix.EIO }, Unsure},
		{"an error while another wins", func(d *directory, _ link, base string) error {
			if err := d.WriteFile(base, []byte("theirs"), 0o644); err != nil {
				return err
			}
			return unix.ETIMEDOUT
		}, Unsure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			named, _ := open(t)
			nameDrafts(named)
			named.calls.link = func(d *directory, temp, base string) error {
				return tt.link(d, func(base string) error { return systemCalls.link(d, temp, base) }, base)
			}
			put(t, named, "f", "ours", tt.want)
			unnamed, _ := open(t)
			unnamed.calls.linkFile = func(d *directory, f *os.File, base string) error {
				return tt.link(d, func(base string) error { return systemCalls.linkFile(d, f, base) }, base)
			}
			put(t, unnamed, "f", "ours", tt.want)
		})
	}
}

func TestPutIfAbsentWorksWithoutUnnamedFilesOrProc(t *testing.T) {
	for what, change := range map[string]func(*Local){
		"unnamed files": nameDrafts,
		"proc":          func(l *Local) { l.calls.linkFile = func(*directory, *os.File, string) error { return unix.ENOENT } },
	} {
		l, _ := open(t)
		change(l)
		put(t, l, "f", "first", Won)
		put(t, l, "f", "second", Lost)
		if got := read(t, l, "f"); got != "first" {
			t.Errorf("without %s: got %q", what, got)
		}
	}
}

// A process killed before the link must leave nothing.
func TestDraftHasNoNameWhileItWaits(t *testing.T) {
	l, dir := open(t)
	l.calls.linkFile = func(d *directory, f *os.File, base string) error {
		if got := dirNames(t, dir); len(got) != 0 {
			t.Errorf("names before the link: %q", got)
		}
		return systemCalls.linkFile(d, f, base)
	}
	put(t, l, "f", "x", Won)
}

func TestDraftIsPlacedOnceAndWhole(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "log/0", "zero")
	one, err := l.Draft(t.Context(), "log/1", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Draft(t.Context(), "log/1", []byte("other"))
	if err != nil {
		t.Fatal(err)
	}
	if got := dirNames(t, filepath.Join(dir, "log")); !slices.Equal(got, []string{"0"}) {
		t.Errorf("drafts are visible: %q", got)
	}
	if outcome, err := one.Place(t.Context(), "log/1"); outcome != Won || err != nil {
		t.Errorf("%v, %v", outcome, err)
	}
	if outcome, err := other.Place(t.Context(), "log/1"); outcome != Lost || err != nil {
		t.Errorf("the second: %v, %v", outcome, err)
	}
	one.Discard()
	other.Discard()
	if got := read(t, l, "log/1"); got != "one" {
		t.Errorf("got %q", got)
	}
	if got := dirNames(t, filepath.Join(dir, "log")); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("left: %q", got)
	}
}

func TestDraftOfAReplacedDirectoryIsNotPlaced(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "log/0", "zero")
	d, err := l.Draft(t.Context(), "log/1", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	if err := os.Rename(filepath.Join(dir, "log"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "log/0", "another zero")
	if outcome, err := d.Place(t.Context(), "log/1"); outcome != Unsure || !errors.Is(err, ErrNotExist) {
		t.Errorf("%v, %v", outcome, err)
	}
	for _, name := range []string{"log", "old"} {
		if got := dirNames(t, filepath.Join(dir, name)); !slices.Equal(got, []string{"0"}) {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

func TestThereIsNoDraftWithoutUnnamedFiles(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "log/0", "zero")
	nameDrafts(l)
	if _, err := l.Draft(t.Context(), "log/1", []byte("one")); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("got %v", err)
	}
	checkNoTemp(t, filepath.Join(dir, "log"))
}

func TestPutIfAbsentIsUnsureWhenTheNameIsNotDurable(t *testing.T) {
	l, _ := open(t)
	l.calls.syncDir = func(*os.File) error { return unix.EIO }
	if err := put(t, l, "f", "x", Unsure); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v", err)
	}
}

func TestWritesBelowAFileFail(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "file", "x")
	put(t, l, "other", "", Won)
	if outcome, err := l.PutIfAbsent(t.Context(), "file/x", nil); outcome != Unsure || !errors.Is(err, ErrNotExist) {
		t.Errorf("PutIfAbsent: %v, %v", outcome, err)
	}
	if err := l.Put(t.Context(), "file/x", nil); !errors.Is(err, ErrNotExist) {
		t.Errorf("Put: %v", err)
	}
}

func TestCanWrite(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "d/file", "")
	if err := errors.Join(l.CanWrite(""), l.CanWrite("d/")); err != nil {
		t.Error(err)
	}
	if err := l.CanWrite("none/"); !errors.Is(err, ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// readOnlyDir returns a directory that nobody can write to. Permissions do
// not stop root, a mount does.
func readOnlyDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestReadOnlyDirectory(t *testing.T) {
	l, err := OpenLocal(readOnlyDir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	staged := stage(t, "x")
	_, putErr := l.PutIfAbsent(t.Context(), "f", nil)
	for what, err := range map[string]error{
		"PutIfAbsent": putErr, "Put": l.Put(t.Context(), "f", nil), "Publish": l.Publish(t.Context(), staged, "f"),
		"MkdirAll": l.MkdirAll("d"), "CanWrite": l.CanWrite(""),
	} {
		if !errors.Is(err, ErrReadOnly) && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if got := dirNames(t, l.Root()); !slices.Equal(got, nil) {
		t.Errorf("left: %q", got)
	}
}
