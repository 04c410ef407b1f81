package fsnode

import (
	"context"
	"sync"
)

// gate counts the changes that are under way and can be shut against new
// ones, to take the mount away without cutting one off.
type gate struct {
	mu   sync.Mutex
	shut bool
	busy int
	idle chan struct{} // closed when busy falls to 0
}

// enter counts a change; closing says that it ends what was begun before (a
// flush) and may pass a gate that is shut.
func (g *gate) enter(closing bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut && !closing {
		return errStopping
	}
	if g.busy == 0 {
		g.idle = make(chan struct{})
	}
	g.busy++
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy--; g.busy == 0 {
		close(g.idle)
	}
}

// open reports whether a change may begin.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.shut
}

// stop shuts the gate and waits until no change is under way.
func (g *gate) stop(ctx context.Context) error {
	g.mu.Lock()
	g.shut = true
	busy, idle := g.busy, g.idle
	g.mu.Unlock()
	if busy == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reopen lets changes in again.
func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}
