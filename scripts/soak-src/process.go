package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is one that the soak started.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait, after done
	// reported is set when an end in the middle was reported.
	reported bool
}

func startProcess(command string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(command, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = os.Stdout, os.Stderr
	// An interrupt of the soak is passed on by the soak alone, in its order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks it to end and waits.
func (p *process) stop(limit time.Duration) error {
	if !p.ended() {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(limit):
		return errors.Join(fmt.Errorf("did not end within %v", limit), p.cmd.Process.Kill())
	}
}
