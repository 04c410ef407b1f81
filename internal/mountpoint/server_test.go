package mountpoint

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
)

func TestServersEndWithTheirProcess(t *testing.T) {
	m := Mount{Device: t.Name(), UID: os.Getuid()}
	var listeners []net.Listener
	for slot := range 2 {
		l, err := net.Listen("unix", serverSocket(m.Device, slot))
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	servers := Connect(m)
	defer servers.Close()
	if len(servers) != 2 {
		t.Fatalf("found %d servers, want 2", len(servers))
	}
	done := make(chan error, 1)
	go func() { done <- servers.Wait(t.Context()) }()
	listeners[0].Close()
	select {
	case err := <-done:
		t.Fatalf("Wait returned with one server alive: %v", err)
	default:
	}
	listeners[1].Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if again := Connect(m); len(again) != 0 {
		t.Errorf("found %d servers after their end", len(again))
	}
}

func TestWaitForServersCanBeCancelled(t *testing.T) {
	m := Mount{Device: t.Name(), UID: os.Getuid()}
	l, err := net.Listen("unix", serverSocket(m.Device, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	servers := Connect(m)
	defer servers.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- servers.Wait(ctx) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAnnounceRefusesWhatIsNotAMountOfOurs(t *testing.T) {
	if err := Announce(t.TempDir()); !errors.Is(err, ErrNotMounted) {
		t.Errorf("got %v", err)
	}
}
