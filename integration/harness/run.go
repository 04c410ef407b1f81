package harness

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runLimit bounds every command a test runs.
const runLimit = 60 * time.Second

// Result is how a command ended.
type Result struct {
	// Code is the exit status, -1 if a signal ended the command.
	Code int
	// Out is what it printed, standard output and error together.
	Out string
}

// OK reports whether the command exited with 0.
func (r Result) OK() bool { return r.Code == 0 }

// Run runs a command and returns how it ended. A command that does not exist
// or does not end within a minute fails the test.
func Run(t testing.TB, name string, args ...string) Result {
	t.Helper()
	return RunInput(t, nil, name, args...)
}

// RunInput is Run with a standard input.
func RunInput(t testing.TB, stdin io.Reader, name string, args ...string) Result {
	t.Helper()
	return RunAs(t, nil, stdin, name, args...)
}

// RunAs is RunInput as another user (nil = the same).
func RunAs(t testing.TB, cred *syscall.Credential, stdin io.Reader, name string, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	// A grandchild may hold the pipes open after the deadline.
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = stdin
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if cred != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		cmd.Env = append(cmd.Env, "HOME=/tmp")
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s %s did not end within %v:\n%s", name, strings.Join(args, " "), runLimit, out)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return Result{Code: cmd.ProcessState.ExitCode(), Out: string(out)}
}

// Must is Run for a command that has to succeed.
func Must(t testing.TB, name string, args ...string) string {
	t.Helper()
	r := Run(t, name, args...)
	if !r.OK() {
		t.Fatalf("%s %s: exit status %d\n%s", name, strings.Join(args, " "), r.Code, r.Out)
	}
	return r.Out
}

// Deltafs runs the binary under test.
func Deltafs(t testing.TB, args ...string) Result {
	t.Helper()
	return Run(t, Binary(), args...)
}

// Eventually waits until the condition holds and fails the test if it does not
// within the limit. The condition returns what is still missing, or "".
func Eventually(t testing.TB, limit time.Duration, missing func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v still: %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
