package sql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/sql/wire"
)

// Options configure an Engine.
type Options struct {
	// Command starts the child; nil is this program with the command worker.
	Command []string
	// MemoryLimit bounds the engine's memory, in bytes; 0 is DefaultMemory.
	MemoryLimit int64
	// Threads is how many threads work for one another; 0 is one a core.
	Threads int
	// SpillDir is where a directory is made for what does not fit into memory;
	// empty is the system's for temporary files.
	SpillDir string
	// Idle is how long the child stays when there is nothing to do; 0 is
	// DefaultIdle.
	Idle time.Duration
	// Logger receives what is worth knowing; nil discards.
	Logger *slog.Logger
}

const (
	// DefaultMemory is the engine's memory limit in bytes.
	DefaultMemory = 1 << 30
	// DefaultIdle is how long the child stays idle before it ends.
	DefaultIdle = 30 * time.Second
)

// Engine starts the child when there is work. It is safe for concurrent use,
// and costs nothing before its first use.
type Engine struct {
	opt Options

	mu     sync.Mutex
	closed bool
	spill  *spill
	child  *child
	// busy is how many queries the child has; idle runs when that is 0.
	busy int
	idle *time.Timer
}

// New makes an engine.
func New(o Options) *Engine {
	if o.Command == nil {
		// The link leads to this very binary, even if it was replaced or deleted.
		o.Command = []string{"/proc/self/exe", WorkerCommand}
	}
	if o.MemoryLimit <= 0 {
		o.MemoryLimit = DefaultMemory
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.SpillDir == "" {
		o.SpillDir = os.TempDir()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Engine{opt: o}
}

// WorkerCommand is the hidden command of the child.
const WorkerCommand = "worker"

// Available says whether queries can be answered: ErrUnavailable if this program
// was built without the engine.
func (e *Engine) Available() error {
	if e == nil || !built {
		return fault.New(ErrUnavailable, "this program was built without the SQL engine").
			WithHint("build it with CGO_ENABLED=1 on Linux")
	}
	return nil
}

// Close ends the child and removes what was spilled. Queries under way fail.
func (e *Engine) Close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	c, spill := e.child, e.spill
	e.closed, e.child, e.spill = true, nil, nil
	e.stopIdle()
	e.mu.Unlock()
	if c != nil {
		c.end()
	}
	return spill.remove()
}

// connect hands one end of a new conversation to the child, which is started if
// need be. done must be called when the conversation is over.
func (e *Engine) connect(ctx context.Context) (conn *wire.Conn, c *child, err error) {
	// A child that ended just now is noticed when it is spoken to.
	for range 2 {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if c, err = e.take(); err != nil {
			return nil, nil, err
		}
		if conn, err = c.converse(); err == nil {
			return conn, c, nil
		}
		e.lose(c)
		e.done()
	}
	return nil, nil, fault.Wrap(ErrUnavailable, err, "the SQL engine does not answer")
}

// take returns a child that is told not to end.
func (e *Engine) take() (*child, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fault.New(ErrUnavailable, "the SQL engine was closed")
	}
	if e.child == nil {
		if err := e.makeSpill(); err != nil {
			return nil, fault.Wrap(ErrUnavailable, err, "no directory for temporary files").
				WithHint("set TMPDIR to a directory that can be written")
		}
		c, err := startChild(e)
		if err != nil {
			return nil, fault.Wrap(ErrUnavailable, err, "the SQL engine cannot be started")
		}
		e.child = c
	}
	e.busy++
	e.stopIdle()
	return e.child, nil
}

func (e *Engine) makeSpill() (err error) {
	if e.closed {
		return fault.New(ErrUnavailable, "the SQL engine was closed")
	}
	if e.spill == nil {
		e.spill, err = newSpill(e.opt.SpillDir)
	}
	return err
}

// done takes a take back.
func (e *Engine) done() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy--; e.busy == 0 && e.child != nil {
		e.idle = time.AfterFunc(e.opt.Idle, e.rest)
	}
}

func (e *Engine) stopIdle() {
	if e.idle != nil {
		e.idle.Stop()
		e.idle = nil
	}
}

// rest ends a child that has nothing to do.
func (e *Engine) rest() {
	e.mu.Lock()
	c := e.child
	if e.busy > 0 {
		c = nil
	}
	if c != nil {
		e.child = nil
	}
	e.mu.Unlock()
	if c != nil {
		c.end()
	}
}

// lose forgets a child that has ended.
func (e *Engine) lose(c *child) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.child == c {
		e.child = nil
		e.stopIdle()
	}
}

// TempFile makes a file without a name for what must be written out for the
// engine; it is gone when it is closed.
func (e *Engine) TempFile() (*os.File, error) {
	e.mu.Lock()
	err := e.makeSpill()
	var dir string
	if err == nil {
		dir = e.spill.path
	}
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), filepath.Join(dir, "unnamed")), nil
	}
	// Not every file system has files without a name.
	f, nameErr := os.CreateTemp(dir, "file-")
	if nameErr != nil {
		return nil, errors.Join(os.NewSyscallError("open", err), nameErr)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	return f, nil
}
