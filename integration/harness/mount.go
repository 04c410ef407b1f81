package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	readyLimit = 30 * time.Second
	stopLimit  = 20 * time.Second
)

// Options say how to mount.
type Options struct {
	// Flags go before the two arguments of `deltafs mount`.
	Flags []string
	// Dir is the mount point; empty means a new directory.
	Dir string
	// User mounts as this user (nil = the one who runs the tests).
	User *syscall.Credential
	// Env is added to the environment.
	Env []string
}

// Mount is a running mount of a table or a lake directory.
type Mount struct {
	// Source is what is mounted, Dir where.
	Source, Dir string

	t       testing.TB
	cmd     *exec.Cmd
	log     *syncBuffer
	ended   chan struct{} // closed when the process has ended
	waitErr error         // valid after ended
	gone    bool
}

// Start mounts source and waits until the mount answers. The mount ends with
// the test.
func Start(t testing.TB, source string, flags ...string) *Mount {
	t.Helper()
	return StartWith(t, source, Options{Flags: flags})
}

// StartWith is Start with options.
func StartWith(t testing.TB, source string, o Options) *Mount {
	t.Helper()
	if o.Dir == "" {
		o.Dir = MountPoint(t)
	}
	m := &Mount{Source: source, Dir: o.Dir, t: t, log: &syncBuffer{}, ended: make(chan struct{})}
	args := append([]string{"mount"}, o.Flags...)
	if !slices.ContainsFunc(o.Flags, func(f string) bool { return strings.HasSuffix(f, "-disk-cache") || strings.HasPrefix(f, "--cache-dir") }) {
		args = append(args, "--cache-dir", t.TempDir())
	}
	m.cmd = exec.Command(Binary(), append(args, source, o.Dir)...)
	m.cmd.Stdout, m.cmd.Stderr = m.log, m.log
	m.cmd.Env = append(append(os.Environ(), "TZ=UTC"), o.Env...)
	m.cmd.WaitDelay = time.Second
	m.cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: o.User,
		// A test binary that dies must not leave mounts behind. A killed
		// server leaves a dead mount point, which holds nothing.
		Pdeathsig: syscall.SIGTERM,
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		m.waitErr = m.cmd.Wait()
		close(m.ended)
	}()
	t.Cleanup(m.cleanup)
	m.waitReady()
	return m
}

// MountPoint makes an empty directory that is removed, never emptied, at the
// end of the test: if something is still mounted there, its files must not be
// deleted.
func MountPoint(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "deltafs-mnt-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	return dir
}

func (m *Mount) waitReady() {
	m.t.Helper()
	deadline := time.Now().Add(readyLimit)
	for !Mounted(m.Dir) {
		select {
		case <-m.ended:
			m.t.Fatalf("deltafs mount %s ended before it was ready: %v\n%s", m.Source, m.waitErr, m.log)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("deltafs mount %s is not ready after %v\n%s", m.Source, readyLimit, m.log)
		}
	}
}

// Mounted reports whether a file system is mounted at dir, dead or alive.
func Mounted(dir string) bool {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for _, l := range strings.Split(string(data), "\n") {
		if f := strings.Fields(l); len(f) > 4 && f[4] == dir {
			return true
		}
	}
	return false
}

// Unmount ends the mount cleanly with `deltafs umount` and waits for the
// process; either failing fails the test.
func (m *Mount) Unmount() {
	m.t.Helper()
	if r := Deltafs(m.t, "umount", m.Dir); !r.OK() {
		m.t.Fatalf("deltafs umount %s: exit status %d\n%s\n%s", m.Dir, r.Code, r.Out, m.log)
	}
	m.AwaitEnd()
}

// Signal sends a signal to the serving process.
func (m *Mount) Signal(sig syscall.Signal) { m.cmd.Process.Signal(sig) }

// AwaitEnd waits until the serving process has ended by itself, which must be
// with exit status 0, and left no mount.
func (m *Mount) AwaitEnd() {
	m.t.Helper()
	select {
	case <-m.ended:
	case <-time.After(stopLimit):
		m.t.Fatalf("the mount process did not end within %v\n%s", stopLimit, m.log)
	}
	if m.waitErr != nil {
		m.t.Fatalf("the mount process ended with %v\n%s", m.waitErr, m.log)
	}
	if Mounted(m.Dir) {
		m.t.Fatalf("the mount process ended and left %s mounted\n%s", m.Dir, m.log)
	}
	m.gone = true
}

// Kill ends the process as a crash would and detaches the dead mount.
func (m *Mount) Kill() {
	m.KillKeepMount()
	detach(m.Dir)
}

// KillKeepMount ends the process as a crash would and leaves the dead mount.
func (m *Mount) KillKeepMount() {
	m.t.Helper()
	m.cmd.Process.Kill()
	select {
	case <-m.ended:
	case <-time.After(stopLimit):
		// It waits for an answer of its own mount; ending that frees it.
		detach(m.Dir)
		m.t.Fatalf("the killed mount process did not end within %v", stopLimit)
	}
	m.gone = true
	m.t.Cleanup(func() { detach(m.Dir) })
}

// cleanup leaves no process and no mount, whatever the test did.
func (m *Mount) cleanup() {
	if m.t.Failed() {
		m.t.Logf("log of the mount of %s:\n%s", m.Source, m.log)
	}
	defer m.checkLog()
	if m.gone {
		return
	}
	m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.ended:
	case <-time.After(stopLimit):
		m.t.Errorf("the mount process ignored SIGTERM for %v\n%s", stopLimit, m.log)
		m.cmd.Process.Kill()
		detach(m.Dir)
		<-m.ended
	}
	if m.waitErr != nil {
		m.t.Errorf("the mount process ended with %v\n%s", m.waitErr, m.log)
	}
	if Mounted(m.Dir) {
		detach(m.Dir)
		m.t.Errorf("SIGTERM left %s mounted\n%s", m.Dir, m.log)
	}
}

// checkLog fails the test if the process ran into a defect of its own.
func (m *Mount) checkLog() {
	for _, sign := range []string{"DATA RACE", "defect:", "panic:"} {
		if strings.Contains(m.Log(), sign) {
			m.t.Errorf("the mount of %s had a defect (%s):\n%s", m.Source, sign, m.log)
			return
		}
	}
}

// detach takes a dead or stuck mount off its directory.
func detach(dir string) {
	for range 20 {
		if !Mounted(dir) {
			return
		}
		if unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH) != nil {
			exec.Command("fusermount3", "-uz", dir).Run()
		}
	}
}

// Log is what the mount process printed so far.
func (m *Mount) Log() string { return m.log.String() }

// PID is the process id of the serving process.
func (m *Mount) PID() int { return m.cmd.Process.Pid }

// Path joins elements to the mount point.
func (m *Mount) Path(elem ...string) string {
	return filepath.Join(append([]string{m.Dir}, elem...)...)
}

// Current joins elements to current/.
func (m *Mount) Current(elem ...string) string {
	return m.Path(append([]string{"current"}, elem...)...)
}

// Latest is the version that the symbolic link latest names.
func (m *Mount) Latest() int64 {
	m.t.Helper()
	target, err := os.Readlink(m.Path("latest"))
	if err != nil {
		m.t.Fatal(err)
	}
	var v int64
	if _, err := fmt.Sscanf(target, "@v%d", &v); err != nil || target != fmt.Sprintf("@v%d", v) {
		m.t.Fatalf("latest -> %q, want @v<N>", target)
	}
	return v
}

// Failure is a line of .delta/errors.jsonl.
type Failure struct {
	Time   string `json:"time"`
	Op     string `json:"op"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Hint   string `json:"hint"`
}

// Failures reads .delta/errors.jsonl of the table at the given path of the
// mount.
func (m *Mount) Failures(table ...string) []Failure {
	m.t.Helper()
	data, err := os.ReadFile(m.Path(append(table, ".delta", "errors.jsonl")...))
	if err != nil {
		m.t.Fatal(err)
	}
	var out []Failure
	for _, text := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		if len(text) == 0 {
			continue
		}
		var f Failure
		if err := json.Unmarshal(text, &f); err != nil {
			m.t.Fatalf("errors.jsonl: %v in %s", err, text)
		}
		out = append(out, f)
	}
	return out
}

// Errno returns the errno inside err, or 0.
func Errno(err error) syscall.Errno {
	var e syscall.Errno
	errors.As(err, &e)
	return e
}

// syncBuffer is a bytes.Buffer that the process's output and the test may use
// at once.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
