package mountpoint

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/deltafs/deltafs/internal/fault"
)

// host is where a mount's needs are looked for.
type host struct {
	device   string // the FUSE device
	conf     string // fusermount3's configuration
	euid     int
	lookPath func(string) (string, error)
}

func thisHost() host {
	return host{device: "/dev/fuse", conf: "/etc/fuse.conf", euid: os.Geteuid(), lookPath: exec.LookPath}
}

// CheckFUSE says whether this process can mount a FUSE file system, for
// others to use too if allowOther is set. The error is ErrNoFUSE.
func CheckFUSE(allowOther bool) error { return thisHost().check(allowOther) }

const containerHint = "in a container: --device /dev/fuse --cap-add SYS_ADMIN"

func (h host) check(allowOther bool) error {
	_, err := os.Stat(h.device)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(ErrNoFUSE, "the FUSE device does not exist").
			InFile(h.device).WithHint("modprobe fuse; %s", containerHint)
	}
	if h.euid != 0 {
		return h.checkUser(allowOther)
	}
	f, err := os.OpenFile(h.device, os.O_RDWR, 0)
	if err != nil {
		return fault.Wrap(ErrNoFUSE, err, "the FUSE device cannot be opened").
			InFile(h.device).WithHint(containerHint)
	}
	return f.Close()
}

func (h host) checkUser(allowOther bool) error {
	if _, err := h.fusermount(); err != nil {
		return err
	}
	// fusermount3 opens the device with the user's rights.
	const readWrite = 4 | 2 // R_OK | W_OK of access(2)
	if err := syscall.Access(h.device, readWrite); err != nil {
		return fault.Wrap(ErrNoFUSE, err, "the FUSE device cannot be opened by ordinary users").
			InFile(h.device).WithHint("as root: chmod 666 %s", h.device)
	}
	if allowOther && !h.userAllowOther() {
		return fault.New(ErrNoFUSE, "user_allow_other is not set, so only root may let other users in").
			InFile(h.conf).WithHint("add a line user_allow_other to %s, or drop --allow-other", h.conf)
	}
	return nil
}

// fusermount finds the setuid helper that mounts for ordinary users.
func (h host) fusermount() (string, error) {
	for _, name := range []string{"fusermount3", "/bin/fusermount3", "fusermount", "/bin/fusermount"} {
		if path, err := h.lookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fault.New(ErrNoFUSE, "fusermount3 is not installed, and users other than root mount through it").
		WithHint("install the package fuse3")
}

func (h host) userAllowOther() bool {
	f, err := os.Open(h.conf)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) == "user_allow_other" {
			return true
		}
	}
	return false
}
