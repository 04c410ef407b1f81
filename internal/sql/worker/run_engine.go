//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// controlFd is the descriptor that the parent speaks through.
const controlFd = 3

// Run answers queries until the parent hangs up.
func Run(ctx context.Context, o Options) error {
	control, err := controlSocket()
	if err != nil {
		return fmt.Errorf("this command is for deltafs itself: %w", err)
	}
	defer control.Close()
	db, err := openEngine(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var queries sync.WaitGroup
	for {
		socket, err := receive(control)
		if err != nil {
			cancel()
			queries.Wait()
			db.close()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		queries.Go(func() { answer(ctx, db, socket) })
	}
}

func controlSocket() (*net.UnixConn, error) {
	syscall.CloseOnExec(controlFd)
	f := os.NewFile(controlFd, "control")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("descriptor 3 is no Unix socket"), c.Close())
	}
	return unix, nil
}

// receive waits for the socket of the next query.
func receive(control *net.UnixConn) (*os.File, error) {
	oob := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := control.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no socket came"), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("no socket came"), err)
	}
	return os.NewFile(uintptr(fds[0]), "query"), nil
}
