package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func list(t *testing.T, l *Local, prefix, after, delimiter string) []string {
	t.Helper()
	var names []string
	for info, err := range l.List(t.Context(), prefix, after, delimiter) {
		if err != nil {
			t.Fatal(err)
		}
		if info.IsPrefix != strings.HasSuffix(info.Name, "/") {
			t.Errorf("%q: IsPrefix is %v", info.Name, info.IsPrefix)
		}
		if !info.IsPrefix && ((info.Identity == Identity{}) || info.ModTime.IsZero()) {
			t.Errorf("%q: incomplete %+v", info.Name, info)
		}
		names = append(names, info.Name)
	}
	return names
}

var listed = []string{"_delta_log/0.json", "_delta_log/1.json", "_delta_log/_sidecars/s", "a", "b/c", "b/d/e", "b-c", "b.c/x", "b0", "ä"}

func TestListIsInByteOrder(t *testing.T) {
	l, dir := open(t)
	for _, name := range listed {
		write(t, dir, name, name)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		prefix, after, delimiter string
		want                     []string
	}{
		{"", "", "", []string{"_delta_log/0.json", "_delta_log/1.json", "_delta_log/_sidecars/s", "a", "b-c", "b.c/x", "b/c", "b/d/e", "b0", "ä"}},
		{"", "", "/", []string{"_delta_log/", "a", "b-c", "b.c/", "b/", "b0", "empty/", "ä"}},
		{"_delta_log/", "", "/", []string{"_delta_log/0.json", "_delta_log/1.json", "_delta_log/_sidecars/"}},
		{"_delta_log/", "_delta_log/0.json", "", []string{"_delta_log/1.json", "_delta_log/_sidecars/s"}},
		{"_delta_log/1", "", "", []string{"_delta_log/1.json"}},
		{"_delta_log", "", "/", []string{"_delta_log/"}},
		{"b", "", "", []string{"b-c", "b.c/x", "b/c", "b/d/e", "b0"}},
		{"b", "", "/", []string{"b-c", "b.c/", "b/", "b0"}},
		{"b/", "b/c", "", []string{"b/d/e"}},
		{"", "b/c", "", []string{"b/d/e", "b0", "ä"}},
		{"", "b/", "/", []string{"b0", "empty/", "ä"}},
		{"", "b/c", "/", []string{"b0", "empty/", "ä"}},
		{"b/", "a", "/", []string{"b/c", "b/d/"}},
		{"b/", "b0", "", nil},
		{"missing/", "", "", nil},
		{"a/", "", "/", nil},
		{"zz", "", "", nil},
		{"", "ä", "", nil},
	}
	for _, tt := range tests {
		if got := list(t, l, tt.prefix, tt.after, tt.delimiter); !slices.Equal(got, tt.want) {
			t.Errorf("List(%q, %q, %q)\ngot  %q\nwant %q", tt.prefix, tt.after, tt.delimiter, got, tt.want)
		}
	}
	for info, err := range l.List(t.Context(), "", "", ",") {
		if err == nil {
			t.Errorf("another delimiter gave %v", info)
		}
	}
}

// TestRecursiveListEqualsFilter compares random listings with a filter over
// all names.
func TestRecursiveListEqualsFilter(t *testing.T) {
	l, dir := open(t)
	r := rand.New(rand.NewPCG(1, 1))
	parts := []string{"a", "a!", "a-", "a.", "a0", "b", "\x01"}
	all := map[string]bool{}
	for range 120 {
		// A directory ends in d, a file does not, so that they never clash.
		name := parts[r.IntN(len(parts))]
		for range r.IntN(3) {
			name = parts[r.IntN(len(parts))] + "d/" + name
		}
		write(t, dir, name, "")
		all[name] = true
	}
	probes := append(slices.Collect(func(yield func(string) bool) {
		for name := range all {
			if !yield(name) || !yield(name[:len(name)/2]) || !yield(filepath.Dir(name)+"/") {
				return
			}
		}
	}), "", "a", "ad/")
	slices.Sort(probes)
	for range 300 {
		prefix, after := probes[r.IntN(len(probes))], probes[r.IntN(len(probes))]
		if prefix == "./" {
			prefix = ""
		}
		var want []string
		for name := range all {
			if strings.HasPrefix(name, prefix) && name > after {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if got := list(t, l, prefix, after, ""); !slices.Equal(got, want) {
			t.Fatalf("List(%q, %q)\ngot  %q\nwant %q", prefix, after, got, want)
		}
	}
}

func TestListLeavesOutWhatIsNoObject(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "file", "12345")
	write(t, dir, "d/inner", "")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	symlink(t, "missing", filepath.Join(dir, "dangling"))
	symlink(t, "..", filepath.Join(dir, "outside"))
	symlink(t, "loop", filepath.Join(dir, "loop"))
	symlink(t, ".", filepath.Join(dir, "self"))
	symlink(t, "file", filepath.Join(dir, "link"))
	symlink(t, "../file", filepath.Join(dir, "d/up"))
	if got, want := list(t, l, "", "", ""), []string{"d/inner", "d/up", "file", "link"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := list(t, l, "", "", "/"), []string{"d/", "file", "link", "self/"}; !slices.Equal(got, want) {
		t.Errorf("with a delimiter: got %q, want %q", got, want)
	}
	for info, err := range l.List(t.Context(), "link", "", "") {
		if err != nil || info.Size != 5 {
			t.Errorf("through a link: %+v, %v", info, err)
		}
	}
}

func TestListStopsWhenToldTo(t *testing.T) {
	l, dir := open(t)
	for i := range 3 {
		write(t, dir, fmt.Sprintf("d%d/file", i), "")
	}
	n := 0
	for range l.List(t.Context(), "", "", "") {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d steps", n)
	}
}

func TestNamesThatVanishDuringAListingAreNoError(t *testing.T) {
	l, dir := open(t)
	for i := range 10 {
		write(t, dir, fmt.Sprintf("log/%d", i), "")
	}
	var got []string
	for info, err := range l.List(t.Context(), "log/", "log/4", "/") {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			if err := os.Remove(filepath.Join(dir, "log/7")); err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, info.Name)
	}
	if want := []string{"log/5", "log/6", "log/8", "log/9"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestListAsksForNoAttributesOfSkippedNames(t *testing.T) {
	l, dir := open(t)
	for i := range 10 {
		write(t, dir, fmt.Sprintf("log/%d", i), "")
	}
	var asked []string
	l.calls.lstat = func(d *directory, name string, st *unix.Stat_t) error {
		asked = append(asked, name)
		return systemCalls.lstat(d, name, st)
	}
	for range l.List(t.Context(), "log/", "log/5", "") {
		if len(asked) == 2 {
			break
		}
	}
	if want := []string{"6", "7"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

func TestListReportsWhatItCannotRead(t *testing.T) {
	l, dir := open(t)
	write(t, dir, "d/file", "")
	broken := errors.New("broken")
	l.calls.readDir = func(f *os.File) ([]fs.DirEntry, error) {
		if strings.HasSuffix(filepath.Clean(f.Name()), "/d") {
			return nil, broken
		}
		return systemCalls.readDir(f)
	}
	var errs []error
	for _, err := range l.List(t.Context(), "", "", "") {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], broken) {
		t.Errorf("got %v", errs)
	}
}
