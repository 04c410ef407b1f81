package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestNormalizeMovesFlagsInFrontOfArguments(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"deltafs", "deltafs"},
		{"deltafs --help", "deltafs --help"},
		{"deltafs nonsense a --b", "deltafs nonsense a --b"},
		{"deltafs mount S M --read-only", "deltafs mount --read-only -- S M"},
		{"deltafs mount S --uid 5 M -d", "deltafs mount --uid 5 -d -- S M"},
		{"deltafs mount --uid=5 S M", "deltafs mount --uid=5 -- S M"},
		{"deltafs mount S M --allow-other=false", "deltafs mount --allow-other=false -- S M"},
		{"deltafs mount S M --raed-only", "deltafs mount --raed-only -- S M"},
		{"deltafs mount -- S --read-only", "deltafs mount -- S --read-only"},
		{"deltafs mount -f -- -S -M", "deltafs mount -f -- -S -M"},
		{"deltafs files T --version 3 --json", "deltafs files --version 3 --json -- T"},
		{"deltafs files - --json", "deltafs files --json -- -"},
		{"deltafs history --limit -1 T", "deltafs history --limit -1 -- T"},
		{"deltafs unmount M --lazy", "deltafs unmount --lazy -- M"},
		{"deltafs mount S M -o ro,uid=5", "deltafs mount --read-only --uid=5 -- S M"},
		{"deltafs mount S M --generate-bash-completion", "deltafs mount S M --generate-bash-completion"},
		{"/sbin/mount.deltafs S M -n -s -o rw,x-a=b,dir_mode=0700", "/sbin/mount.deltafs mount --daemon --dir-mode=0700 -- S M"},
		{"/sbin/mount.fuse.deltafs S M", "/sbin/mount.fuse.deltafs mount --daemon -- S M"},
	} {
		got, err := normalize(newApp(io.Discard, io.Discard), strings.Fields(c.in))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.in, strings.Join(got, " "), err, c.want)
		}
	}
}

func TestNormalizeRefusesAFlagWithoutItsValue(t *testing.T) {
	for _, in := range []string{
		"deltafs mount S M --uid",
		"deltafs mount S --uid -- M",
		"deltafs mount S M -o",
		"mount.deltafs S M -f",
	} {
		if _, err := normalize(newApp(io.Discard, io.Discard), strings.Fields(in)); !errors.Is(err, errUsage) {
			t.Errorf("%s: got %v", in, err)
		}
	}
}

func TestMountOptionsBecomeFlags(t *testing.T) {
	cmd := mountCommand()
	for _, c := range []struct {
		list string
		want []string
	}{
		{"ro", []string{"--read-only"}},
		{"rw,defaults,_netdev,nofail,noauto,user,nodev,nosuid,exec,x-systemd.automount,x-gvfs-hide,comment=hi", nil},
		{"read_only,append-only", []string{"--read-only", "--append-only"}},
		{"allow_other=false,uid=1,gid=2,file_mode=0600", []string{"--allow-other=false", "--uid=1", "--gid=2", "--file-mode=0600"}},
		{"timezone=Europe/Vienna,list_versions=all,grace=1m", []string{"--timezone=Europe/Vienna", "--list-versions=all", "--grace=1m"}},
		{"log_file=/a=b", []string{"--log-file=/a=b"}},
		{"", nil},
		{"ro,,daemon", []string{"--read-only", "--daemon"}},
	} {
		got, err := expandMountOptions(cmd, []string{"-o", c.list})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("-o %s: got %q, %v; want %q", c.list, got, err, c.want)
		}
	}
	for _, spelling := range [][]string{{"-oro"}, {"-o=ro"}, {"--o=ro"}, {"--o", "ro"}, {"-o", "ro"}} {
		got, err := expandMountOptions(cmd, spelling)
		if err != nil || !slices.Equal(got, []string{"--read-only"}) {
			t.Errorf("%q: got %q, %v", spelling, got, err)
		}
	}
	kept := []string{"S", "--log-file", "-o", "M", "--", "-o", "ro"}
	if got, err := expandMountOptions(cmd, kept); err != nil || !slices.Equal(got, kept) {
		t.Errorf("what is no option list changed: %q, %v", got, err)
	}
}

func TestUnknownMountOptionIsNamed(t *testing.T) {
	for _, list := range []string{"ro,frobnicate", "frobnicate=1", "o=ro", "f", "d", "help", "uid", "=x"} {
		_, err := expandMountOptions(mountCommand(), []string{"-o", list})
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), "mount option") {
			t.Errorf("-o %s: got %v", list, err)
		}
	}
	_, err := expandMountOptions(mountCommand(), []string{"-o", "ro,frobnicate"})
	if err == nil || !strings.Contains(err.Error(), `"frobnicate"`) {
		t.Errorf("got %v", err)
	}
}
