package mountpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// The server of a mount holds an abstract Unix socket named after the mount's
// device number for as long as it lives. Whoever connects to it sees the
// connection end when the process ends, commits and all: no files to clean
// up, no process ids to trust, and nothing asked of the file system.
//
// The kernel gives a device number to the next mount as soon as it is free,
// while the old server may still be committing, so there are a few names for
// each.
const serverSlots = 8

func serverSocket(device string, slot int) string {
	return fmt.Sprintf("@deltafs/%s/%d", device, slot)
}

// Announce makes this process known as the server of the mount at point, until
// it exits.
func Announce(point string) error {
	m, err := Own(point)
	if err != nil {
		return err
	}
	for slot := range serverSlots {
		err := listen(serverSocket(m.Device, slot))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return fmt.Errorf("every socket name for device %s is taken", m.Device)
}

// listen opens a socket that nothing closes but the end of the process, no
// finalizer either. Connections wait in its backlog and are never accepted: to
// exist is enough.
func listen(name string) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}); err != nil {
		_ = syscall.Close(fd)
		return os.NewSyscallError("bind", err)
	}
	return os.NewSyscallError("listen", syscall.Listen(fd, syscall.SOMAXCONN))
}

// Servers are connections to the processes that serve a mount: one, and any
// that served its device number before and has not ended yet.
type Servers []*net.UnixConn

// Connect finds the servers of m. There is none if they are gone or in another
// network namespace; those of users other than root and the one who mounted
// do not count.
func Connect(m Mount) Servers {
	var servers Servers
	for slot := range serverSlots {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: serverSocket(m.Device, slot)})
		if err != nil {
			continue
		}
		if uid, err := peerUID(conn); err != nil || (uid != 0 && uid != m.UID) {
			conn.Close()
			continue
		}
		servers = append(servers, conn)
	}
	return servers
}

// Wait returns when every server has ended, or ctx is done.
func (s Servers) Wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		for _, conn := range s {
			_ = conn.SetReadDeadline(time.Unix(1, 0))
		}
	})
	defer stop()
	for _, conn := range s {
		// A server never writes: a read ends with its process or the deadline.
		_, _ = conn.Read(make([]byte, 1))
	}
	return ctx.Err()
}

// Close gives up the connections.
func (s Servers) Close() {
	for _, conn := range s {
		conn.Close()
	}
}

func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(cred.Uid), nil
}
