package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the background process: Start runs this binary again.
func TestMain(m *testing.M) {
	if child := FromParent(); child != nil {
		os.Exit(childMain(child, os.Args[1], os.Args[2:]))
	}
	os.Exit(m.Run())
}

func childMain(child *Child, role string, args []string) int {
	switch role {
	case "ready":
		stopped := untilTerminated()
		if err := child.Ready(nil); err != nil {
			return 1
		}
		cwd, _ := os.Getwd()
		stderr, _ := os.Readlink("/proc/self/fd/2")
		sid, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
		report := fmt.Sprintf("cwd=%s stderr=%s leader=%v env=%q", cwd, stderr, int(sid) == os.Getpid(), os.Getenv(pipeEnv))
		os.WriteFile(args[0], []byte(report), 0o644)
		if conn, err := net.Dial("unix", args[1]); err == nil {
			conn.Close() // the report is complete
		}
		<-stopped
	case "fail":
		child.Fail(errors.New("the table is broken"))
		return 3
	case "hang":
		<-untilTerminated()
	}
	return 0
}

func untilTerminated() <-chan os.Signal {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	return terminated
}

func TestStartReturnsWhenTheChildIsReadyAndDetached(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report")
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	pid, err := Start(t.Context(), []string{"test", "ready", report, filepath.Join(dir, "s")}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGTERM); syscall.Wait4(pid, nil, 0, nil) })
	conn, err := socket.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	got, err := os.ReadFile(report)
	if want := `cwd=/ stderr=/dev/null leader=true env=""`; err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func TestStartReturnsTheChildsReasonAndCode(t *testing.T) {
	_, err := Start(t.Context(), []string{"test", "fail"}, time.Minute)
	var failure *Failure
	if !errors.As(err, &failure) || failure.Text != "the table is broken" || failure.Code != 3 {
		t.Errorf("got %#v", err)
	}
}

func TestStartReportsAChildThatEndsWithoutAWord(t *testing.T) {
	_, err := Start(t.Context(), []string{"test", "die"}, time.Minute)
	var failure *Failure
	if !errors.As(err, &failure) || !strings.Contains(failure.Text, "ended before it was ready") || failure.Code != 1 {
		t.Errorf("got %#v", err)
	}
}

func TestStartEndsAChildThatIsNotWantedAnyMore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	_, err := Start(ctx, []string{"test", "hang"}, time.Minute)
	if err == nil || err.Error() != "interrupted" {
		t.Errorf("got %v", err)
	}
}

func TestStartGivesUpAfterTheLimit(t *testing.T) {
	_, err := Start(t.Context(), []string{"test", "hang"}, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "not ready within 1ms") {
		t.Errorf("got %v", err)
	}
}

func TestNilChildDoesNothing(t *testing.T) {
	var c *Child
	if err := c.Ready(nil); err != nil {
		t.Error(err)
	}
	c.Fail(errors.New("x"))
}

func TestNotifyTellsTheServiceManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	if err := Notify("READY=1"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	if err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}
