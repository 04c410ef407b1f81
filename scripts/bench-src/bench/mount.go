package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// mount is a mounted file system and the process behind it.
type mount struct {
	point string
	pid   int
	ended chan error
}

// startMount starts a file system on a new mount point and returns when it is
// mounted; the command gets the mount point as its last argument.
func (b *bench) startMount(command string, args ...string) (*mount, error) {
	point, err := os.MkdirTemp(b.work, "mnt-")
	if err != nil {
		return nil, err
	}
	before, err := device(point)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(command, append(args, point)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m := &mount{point: point, pid: cmd.Process.Pid, ended: make(chan error, 1)}
	go func() {
		m.ended <- cmd.Wait()
		close(m.ended)
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if now, err := device(point); err == nil && now != before {
			return m, nil
		}
		select {
		case err := <-m.ended:
			return nil, errors.Join(fmt.Errorf("%s ended before it was mounted", command), err)
		default:
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("%s does not mount", command), m.stop())
		}
	}
}

func device(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return st.Dev, err
}

// stop unmounts, and waits for the process.
func (m *mount) stop() error {
	if err := unix.Kill(m.pid, unix.SIGTERM); err != nil {
		return err
	}
	select {
	case <-m.ended:
		return os.Remove(m.point)
	case <-time.After(time.Minute):
		unix.Kill(m.pid, unix.SIGKILL)
		unix.Unmount(m.point, unix.MNT_DETACH)
		return fmt.Errorf("the mount of process %d did not end", m.pid)
	}
}

// mountTable mounts a table with deltafs. cache is the directory of its disk
// cache; if it is empty the mount has none.
func (b *bench) mountTable(table, cache string, flags ...string) (*mount, error) {
	args := append([]string{"mount", "--log-level", "warn"}, flags...)
	if b.knowsCache() {
		if cache == "" {
			args = append(args, "--no-disk-cache")
		} else {
			args = append(args, "--cache-dir", cache)
		}
	}
	return b.startMount(b.deltafs, append(args, table)...)
}

// knowsCache says whether this deltafs has a disk cache.
func (b *bench) knowsCache() bool {
	out, err := exec.Command(b.deltafs, "mount", "--help").CombinedOutput()
	return err == nil && strings.Contains(string(out), "--cache-dir")
}

// newDir makes a new directory in the work directory.
func (b *bench) newDir(name string) (string, error) {
	dir := filepath.Join(b.work, name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}
