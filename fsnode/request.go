package fsnode

import (
	"context"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/writer"
)

// interruptGrace is how long an operation may go on after the caller got a
// signal. Any signal with a handler interrupts a request, but few programs
// expect stat(2) or open(2) to fail with EINTR, and most operations are over
// at once. One that hangs can be interrupted.
const interruptGrace = time.Second

// request is the context of an operation: done some time after the caller was
// interrupted.
type request struct {
	context.Context // for values only
	interrupt       <-chan struct{}
	grace           time.Duration

	mu    sync.Mutex
	since time.Time     // when the interrupt was noticed
	done  chan struct{} // made when somebody waits for it
	over  chan struct{}
}

// begin makes the context of an operation; the caller must call end.
func (f *FS) begin(interrupt <-chan struct{}) *request {
	return &request{Context: f.ctx, interrupt: interrupt, grace: interruptGrace}
}

// end stops what waits for the interrupt: go-fuse uses the channel again for
// another request.
func (r *request) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		close(r.over)
	}
	r.interrupt = nil
}

// Err implements context.Context.
func (r *request) Err() error {
	if err := r.Context.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() {
		select {
		case <-r.interrupt:
			r.since = time.Now()
		default:
			return nil
		}
	}
	if time.Since(r.since) < r.grace {
		return nil
	}
	return context.Canceled
}

// Done implements context.Context.
func (r *request) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil {
		r.done, r.over = make(chan struct{}), make(chan struct{})
		go r.watch(r.interrupt, r.done, r.over)
	}
	return r.done
}

// watch closes done when the interrupt is old enough, or the mount ends.
func (r *request) watch(interrupt <-chan struct{}, done, over chan struct{}) {
	select {
	case <-over:
		return
	case <-r.Context.Done():
	case <-interrupt:
		select {
		case <-over:
			return
		case <-r.Context.Done():
		case <-time.After(r.left()):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupt != nil {
		close(done)
	}
}

// left is how long the request may go on after its interrupt.
func (r *request) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() {
		r.since = time.Now()
	}
	return r.grace - time.Since(r.since)
}

// caller names the thread that asked.
func caller(h *fuse.InHeader) writer.Caller { return writer.Caller{PID: h.Pid} }
