package daemon

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Child is the background process's side of the start. A nil Child, of a
// process that nobody started in the background, does nothing.
type Child struct {
	pipe *os.File
}

// FromParent returns the connection to the parent if this process was started
// by [Start], else nil. It takes the mark out of the environment.
func FromParent() *Child {
	fd, err := strconv.Atoi(os.Getenv(pipeEnv))
	if err != nil {
		return nil
	}
	os.Unsetenv(pipeEnv)
	syscall.CloseOnExec(fd)
	return &Child{pipe: os.NewFile(uintptr(fd), "parent")}
}

// Ready lets go of the parent: standard input and output, and standard error
// unless it should be kept elsewhere, lead to /dev/null from here on, and the
// working directory is the root. stderr, if not nil, takes the place of
// standard error (a log file, for a crash's last words).
func (c *Child) Ready(stderr *os.File) error {
	if c == nil {
		return nil
	}
	if err := detach(stderr); err != nil {
		return err
	}
	defer c.pipe.Close()
	_, err := c.pipe.WriteString(ready)
	return err
}

// Stderr leads standard error elsewhere, after [Child.Ready].
func (c *Child) Stderr(file *os.File) error {
	if c == nil || file == nil {
		return nil
	}
	return os.NewSyscallError("dup3", syscall.Dup3(int(file.Fd()), 2, 0))
}

// Fail tells the parent why this process gives up.
func (c *Child) Fail(reason error) {
	if c == nil {
		return
	}
	defer c.pipe.Close()
	fmt.Fprint(c.pipe, reason.Error())
}

func detach(stderr *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if stderr == nil {
		stderr = null
	}
	for fd, file := range []*os.File{null, null, stderr} {
		if err := syscall.Dup3(int(file.Fd()), fd, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return os.Chdir("/")
}
