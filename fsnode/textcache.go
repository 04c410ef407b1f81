package fsnode

import (
	"container/list"
	"sync"
)

// textCacheBytes bounds the generated text kept for each table.
const textCacheBytes = 16 << 20

// textKey names a text: a file of .delta as of a version, which never changes.
type textKey struct {
	name    string
	version int64
}

// textCache keeps the texts used last. Generating takes a lock of its own, so
// that a text is generated once.
type textCache struct {
	makeMu sync.Mutex

	mu    sync.Mutex
	byKey map[textKey]*list.Element
	order list.List
	size  int
}

type cachedText struct {
	key  textKey
	text []byte
}

// get returns the text of the key, made if need be. The caller must not change
// it.
func (c *textCache) get(key textKey, make func() ([]byte, error)) ([]byte, error) {
	if b, ok := c.find(key); ok {
		return b, nil
	}
	c.makeMu.Lock()
	defer c.makeMu.Unlock()
	if b, ok := c.find(key); ok {
		return b, nil
	}
	b, err := make()
	if err != nil {
		return nil, err
	}
	c.put(key, b)
	return b, nil
}

// clear forgets all texts.
func (c *textCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey, c.size = nil, 0
	c.order.Init()
}

func (c *textCache) find(key textKey) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(cachedText).text, true
}

func (c *textCache) put(key textKey, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[textKey]*list.Element{}
	}
	c.byKey[key] = c.order.PushFront(cachedText{key, b})
	c.size += len(b)
	for c.size > textCacheBytes && c.order.Len() > 1 {
		last := c.order.Remove(c.order.Back()).(cachedText)
		delete(c.byKey, last.key)
		c.size -= len(last.text)
	}
}
