package metacache

import (
	"container/list"
	"sync"
)

// unpackedBytes bounds what a cache keeps unpacked, for all its tables.
const unpackedBytes = 16 << 20

// lru keeps the values used last, up to a number of bytes.
type lru struct {
	limit int64

	mu      sync.Mutex
	bytes   int64
	entries map[lruKey]*list.Element
	order   list.List // of *lruEntry, the last used in front
}

// lruKey names a value of a base.
type lruKey struct {
	base   *diskBase
	kind   byte
	number int
}

type lruEntry struct {
	key   lruKey
	value any
	bytes int64
}

func newLRU(limit int64) *lru { return &lru{limit: limit, entries: map[lruKey]*list.Element{}} }

func (l *lru) get(key lruKey) (any, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[key]
	if !ok {
		return nil, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*lruEntry).value, true
}

func (l *lru) put(key lruKey, value any, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.entries[key]; ok {
		return
	}
	l.entries[key] = l.order.PushFront(&lruEntry{key, value, bytes})
	l.bytes += bytes
	for l.bytes > l.limit {
		l.remove(l.order.Back())
	}
}

// drop forgets everything of a base.
func (l *lru) drop(base *diskBase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.entries {
		if key.base == base {
			l.remove(e)
		}
	}
}

func (l *lru) remove(e *list.Element) {
	entry := l.order.Remove(e).(*lruEntry)
	delete(l.entries, entry.key)
	l.bytes -= entry.bytes
}
