package sql

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/deltafs/deltafs/internal/sql/wire"
)

// child is a running child process.
type child struct {
	control *os.File
	log     *slog.Logger

	// ended is closed when the process has ended; fate says how.
	ended chan struct{}
	fate  error
	last  lastWords

	mu       sync.Mutex
	stopping bool
}

// startChild starts the process. A goroutine on a thread of its own waits for
// it: the kernel ends the child when the thread that started it ends.
func startChild(e *Engine) (*child, error) {
	ours, theirs, err := wire.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	c := &child{control: ours, log: e.opt.Logger, ended: make(chan struct{})}
	cmd := exec.Command(e.opt.Command[0], e.opt.Command[1:]...)
	cmd.Args = append(cmd.Args,
		"--memory", strconv.FormatInt(e.opt.MemoryLimit, 10),
		"--threads", strconv.Itoa(e.opt.Threads),
		"--spill", e.spill.path)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = &c.last
	// A signal from the terminal is for the parent, which then ends the child.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.fate = cmd.Wait()
		close(c.ended)
		c.report(cmd.ProcessState.Pid())
		e.lose(c)
	}()
	if err := <-started; err != nil {
		ours.Close()
		return nil, err
	}
	return c, nil
}

// converse gives the child one end of a new pair of sockets.
func (c *child) converse() (*wire.Conn, error) {
	ours, theirs, err := wire.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	err = c.send(theirs)
	if err != nil {
		ours.Close()
		return nil, err
	}
	return wire.NewConn(ours)
}

func (c *child) send(socket *os.File) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return errors.New("the child is being ended")
	}
	rights := syscall.UnixRights(int(socket.Fd()))
	return os.NewSyscallError("sendmsg", syscall.Sendmsg(int(c.control.Fd()), []byte{0}, rights, nil, syscall.MSG_NOSIGNAL))
}

// end asks the child to end, waits for it a little and then kills it.
func (c *child) end() {
	const grace = 2 * time.Second
	c.mu.Lock()
	if !c.stopping {
		c.stopping = true
		c.control.Close()
	}
	c.mu.Unlock()
	select {
	case <-c.ended:
	case <-time.After(grace):
	}
}

// crashed waits for the end of a child that stopped answering and says why it
// ended.
func (c *child) crashed() error {
	const grace = 5 * time.Second
	select {
	case <-c.ended:
	case <-time.After(grace):
		return errors.New("it closed the connection")
	}
	if c.fate == nil {
		return errors.New("it ended early")
	}
	return fmt.Errorf("it ended by %w", c.fate)
}

// report logs an end that nobody asked for.
func (c *child) report(pid int) {
	c.mu.Lock()
	stopping := c.stopping
	if !stopping {
		c.stopping = true
		c.control.Close()
	}
	c.mu.Unlock()
	if stopping && c.fate == nil {
		return
	}
	c.log.Error("the SQL engine has crashed", "op", "sql", "pid", pid, "err", c.fate, "stderr", c.last.String())
}

// lastWords keeps the beginning of what a process says: a crash names its
// reason first.
type lastWords struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *lastWords) Write(p []byte) (int, error) {
	const most = 4 << 10
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p[:min(len(p), most-w.buf.Len())])
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(w.buf.String())
}
