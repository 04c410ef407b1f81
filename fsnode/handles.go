package fsnode

import (
	"context"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// handle is what the kernel's file handle stands for.
type handle interface{ release() }

// fileHandle is an open file.
type fileHandle interface {
	handle
	read(ctx context.Context, buf []byte, off int64) (fuse.ReadResult, error)
}

// handleTable numbers the open handles.
type handleTable struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]handle
}

func (t *handleTable) add(h handle) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[uint64]handle{}
	}
	t.last++
	t.open[t.last] = h
	return t.last
}

func (t *handleTable) get(fh uint64) (handle, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.open[fh]
	return h, ok
}

func (t *handleTable) remove(fh uint64) {
	t.mu.Lock()
	h, ok := t.open[fh]
	delete(t.open, fh)
	t.mu.Unlock()
	if ok {
		h.release()
	}
}

// each calls fn with every open handle.
func (t *handleTable) each(fn func(handle)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.open {
		fn(h)
	}
}

// lookupHandle returns the handle if it is open and of type H.
func lookupHandle[H handle](t *handleTable, fh uint64) (H, bool) {
	h, ok := t.get(fh)
	if !ok {
		var none H
		return none, false
	}
	x, ok := h.(H)
	return x, ok
}
