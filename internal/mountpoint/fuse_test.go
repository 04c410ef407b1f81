package mountpoint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckFUSESaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	device, closed := filepath.Join(dir, "fuse"), filepath.Join(dir, "closed")
	allowing, silent := filepath.Join(dir, "allowing"), filepath.Join(dir, "silent")
	write(t, device)
	mkdir(t, closed) // cannot be opened for writing, not even by root
	content(t, allowing, "# fuse.conf\n  user_allow_other\n")
	content(t, silent, "#user_allow_other\nmount_max = 10\n")
	installed := func(name string) (string, error) { return "/usr/bin/" + name, nil }
	absent := func(string) (string, error) { return "", exec.ErrNotFound }
	for _, c := range []struct {
		name       string
		host       host
		allowOther bool
		want       string
	}{
		{"root", host{device: device, lookPath: absent}, true, ""},
		{"no device", host{device: filepath.Join(dir, "none"), lookPath: installed}, false, "does not exist"},
		{"device refused", host{device: closed, lookPath: installed}, false, "cannot be opened"},
		{"user", host{device: device, euid: 1000, lookPath: installed, conf: silent}, false, ""},
		{"user without fusermount3", host{device: device, euid: 1000, lookPath: absent}, false, "package fuse3"},
		{"user lets others in", host{device: device, euid: 1000, lookPath: installed, conf: allowing}, true, ""},
		{"user must not let others in", host{device: device, euid: 1000, lookPath: installed, conf: silent}, true, "user_allow_other"},
		{"no configuration", host{device: device, euid: 1000, lookPath: installed, conf: filepath.Join(dir, "none")}, true, "user_allow_other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.host.check(c.allowOther)
			if c.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, ErrNoFUSE) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrNoFUSE with %q", err, c.want)
			}
		})
	}
}

func content(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
