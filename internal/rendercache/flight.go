package rendercache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// flight is the making of a chunk that at least one waits for.
type flight struct {
	key    Key
	cancel context.CancelFunc
	done   chan struct{}
	// The rest is under Cache.mu. Once it is done, entry or err is set, and each
	// waiter has a reference to the entry.
	waiters int
	entry   *entry
	err     error
}

// join waits for a chunk with others who do, or begins to make it; c.mu is held.
func (c *Cache) join(ctx context.Context, chunk *Chunk) *flight {
	if f, ok := c.flights[chunk.Key]; ok {
		f.waiters++
		return f
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{key: chunk.Key, cancel: cancel, done: make(chan struct{}), waiters: 1}
	c.flights[f.key] = f
	if c.closed {
		cancel()
	}
	go func() {
		defer cancel()
		made, err := c.make(ctx, chunk)
		c.land(f, made, err)
		c.trim()
	}()
	return f
}

// wait returns what a flight makes. The last who gives up ends it.
func (c *Cache) wait(ctx context.Context, f *flight) (*entry, error) {
	select {
	case <-f.done:
		return f.entry, f.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	f.waiters--
	e := f.entry
	if f.waiters == 0 {
		f.cancel()
		c.forget(f) // who comes now must not wait for a flight that was ended
	}
	c.mu.Unlock()
	if e != nil {
		c.release(e)
	}
	return nil, ctx.Err()
}

func (c *Cache) forget(f *flight) {
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// land hands what was made to those who wait.
func (c *Cache) land(f *flight, made content, err error) {
	c.mu.Lock()
	c.forget(f)
	if f.err = err; err == nil {
		// This reference is given back below.
		f.entry = &entry{key: f.key, content: made, refs: f.waiters + 1}
		c.keep(f.entry)
	}
	close(f.done)
	c.mu.Unlock()
	if err == nil {
		c.release(f.entry)
	}
}

// make finds a chunk on disk, or renders it.
func (c *Cache) make(ctx context.Context, chunk *Chunk) (made content, err error) {
	select {
	case c.rendering <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.rendering }()
	defer func() {
		if p := recover(); p != nil { // a damaged file must not end the process
			err = fmt.Errorf("rendering failed: %v", p)
			c.log.Error("rendering panicked", "op", "render", "err", err, "stack", string(debug.Stack()))
		}
	}()
	if kept := c.disk.find(chunk); kept != nil {
		return kept, nil
	}
	if made, err = c.disk.make(ctx, chunk); !errors.Is(err, errDisk) {
		return made, err
	}
	if chunk.Length > maxInMemory {
		return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	c.log.Warn("rendered data is kept in memory", "op", "render", "bytes", chunk.Length, "err", err)
	return inMemory(ctx, chunk)
}
