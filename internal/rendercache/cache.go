package rendercache

import (
	"container/list"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync"
)

// ErrNoRoom: the chunk is too large for memory, and the disk has no room for it.
var ErrNoRoom = errors.New("no room for rendered data")

// Defaults of Options.
const (
	DefaultSize  = 4 << 30
	DefaultFloor = 256 << 20
)

// Options configure a Cache.
type Options struct {
	// Dir is where chunks are kept, by any number of processes; "" keeps them in
	// temporary files of this one.
	Dir string
	// Size bounds what they take on disk, Floor is the free space that is left
	// to others.
	Size, Floor int64
	// Logger receives what is worth knowing; nil discards.
	Logger *slog.Logger
}

// Key is a hash of everything that a chunk is made of.
type Key [32]byte

// Chunk is a piece of a served file.
type Chunk struct {
	Key Key
	// Length is in bytes. What Render does not write is zeros.
	Length int64
	Render func(ctx context.Context, w io.WriterAt) error
}

// Cache keeps rendered chunks. It is safe for concurrent use.
type Cache struct {
	options Options
	log     *slog.Logger
	disk    *disk
	// rendering is held by who renders.
	rendering chan struct{}

	mu      sync.Mutex
	flights map[Key]*flight
	open    map[Key]*list.Element
	order   list.List // of *entry, the last used in front
	// bytes are those of the open chunks on disk, memory those in memory.
	bytes, memory int64
	closed        bool
}

// Bounds of what is open.
const (
	maxOpen   = 256
	maxMemory = 64 << 20
)

// New returns a cache. Its directory need not exist.
func New(o Options) *Cache {
	c := &Cache{
		options: o, log: o.Logger,
		rendering: make(chan struct{}, runtime.GOMAXPROCS(0)),
		flights:   map[Key]*flight{}, open: map[Key]*list.Element{},
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.disk = newDisk(o, c.log)
	return c
}

// ReadAt reads from a chunk, which is rendered unless it was. Bytes beyond its
// length must not be asked for.
func (c *Cache) ReadAt(ctx context.Context, chunk *Chunk, p []byte, off int64) error {
	e, err := c.get(ctx, chunk)
	if err != nil {
		return err
	}
	if err = e.readAt(p, off); err == nil {
		c.release(e)
		return nil
	}
	// Its file was cut short, or the disk does not read.
	c.log.Warn("rendered data is lost and made anew", "op", "render", "err", err)
	c.drop(e)
	c.release(e)
	if e, err = c.get(ctx, chunk); err != nil {
		return err
	}
	defer c.release(e)
	return e.readAt(p, off)
}

// Close gives up what is open. Who reads meanwhile is done first.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	for _, f := range c.flights {
		f.cancel()
	}
	c.mu.Unlock()
	c.trim()
}

// entry is a chunk that can be read.
type entry struct {
	key Key
	content
	// refs and kept are under Cache.mu: how many read it, and whether it is in
	// Cache.open.
	refs int
	kept bool
}

// content is where the bytes of a chunk are.
type content interface {
	readAt(p []byte, off int64) error
	// room is how many bytes it takes on disk and in memory.
	room() (disk, memory int64)
	close()
}

// get returns a chunk, which must be released.
func (c *Cache) get(ctx context.Context, chunk *Chunk) (*entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if element, ok := c.open[chunk.Key]; ok {
		c.order.MoveToFront(element)
		e := element.Value.(*entry)
		e.refs++
		c.mu.Unlock()
		return e, nil
	}
	f := c.join(ctx, chunk)
	c.mu.Unlock()
	return c.wait(ctx, f)
}

// keep puts a chunk among the open ones, or leaves it to those who read it;
// c.mu is held.
func (c *Cache) keep(e *entry) {
	if _, ok := c.open[e.key]; ok {
		return // made by others after all had given this one up
	}
	e.kept = true
	c.open[e.key] = c.order.PushFront(e)
	disk, memory := e.room()
	c.bytes, c.memory = c.bytes+disk, c.memory+memory
}

// drop takes a chunk from the open ones.
func (c *Cache) drop(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(e)
}

// remove is drop with c.mu held.
func (c *Cache) remove(e *entry) {
	if !e.kept {
		return
	}
	e.kept = false
	c.order.Remove(c.open[e.key])
	delete(c.open, e.key)
	disk, memory := e.room()
	c.bytes, c.memory = c.bytes-disk, c.memory-memory
}

func (c *Cache) release(e *entry) {
	c.mu.Lock()
	e.refs--
	last := e.refs == 0 && !e.kept
	c.mu.Unlock()
	if last {
		e.close()
	}
}

// trim closes what was used longest ago until what is open is within bounds.
func (c *Cache) trim() {
	var gone []*entry
	c.mu.Lock()
	for c.order.Len() > 0 && c.beyond() {
		e := c.order.Back().Value.(*entry)
		c.remove(e)
		if e.refs == 0 {
			gone = append(gone, e)
		}
	}
	c.mu.Unlock()
	for _, e := range gone {
		e.close()
	}
}

// beyond says that too much is open, though one chunk always may be.
func (c *Cache) beyond() bool {
	if c.closed {
		return true
	}
	n := c.order.Len()
	return n > maxOpen || n > 1 && (c.bytes > c.options.Size || c.memory > maxMemory)
}
