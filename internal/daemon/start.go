package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// pipeEnv tells the child which descriptor leads to its parent.
const pipeEnv = "DELTAFS_DAEMON_FD"

// ready is what the child writes instead of an error text. No error text
// begins with it.
const ready = "\x00ready"

// Failure is why the background process did not become ready.
type Failure struct {
	// Text is what the process said, one line without the program's name.
	Text string
	// Code is its exit code, with which the parent should end too.
	Code int
}

// Error is the text.
func (f *Failure) Error() string { return f.Text }

// Start runs this program again with args (the program's name first) in a
// session of its own and returns its process id once it is ready. If it is
// not within limit, or ctx ends, it is ended. The error is a *Failure if the
// process gave up by itself.
func Start(ctx context.Context, args []string, limit time.Duration) (int, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	// The link leads to this very binary, even if it was replaced or deleted.
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = args
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{w}
	cmd.Env = append(os.Environ(), pipeEnv+"="+strconv.Itoa(3))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return 0, fmt.Errorf("starting the background process: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("the background process was not ready within %v", limit))
	defer cancel()
	return await(ctx, cmd, r)
}

// await reads the child's report: everything until the pipe closes.
func await(ctx context.Context, cmd *exec.Cmd, r *os.File) (int, error) {
	defer context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })()
	text, err := io.ReadAll(r)
	if bytes.HasPrefix(text, []byte(ready)) {
		return cmd.Process.Pid, nil
	}
	if err != nil && ctx.Err() != nil {
		end(cmd)
		return 0, context.Cause(ctx)
	}
	waitErr := cmd.Wait()
	failure := &Failure{Text: string(text), Code: cmd.ProcessState.ExitCode()}
	if failure.Code <= 0 {
		failure.Code = 1
	}
	if failure.Text == "" {
		failure.Text = fmt.Sprintf("the background process ended before it was ready: %v", waitErr)
	}
	return 0, failure
}

// end stops a child that is not wanted any more, politely at first: it may
// have mounted.
func end(cmd *exec.Cmd) {
	const grace = 10 * time.Second
	_ = cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(grace, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
}
