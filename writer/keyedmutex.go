package writer

import (
	"cmp"
	"slices"
	"sync"
)

// keyedMutex is a mutex for each name. The zero value is ready.
type keyedMutex struct {
	mu   sync.Mutex
	held map[key]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int
}

// lock locks the keys, always in the same order, and returns how to unlock
// them.
func (m *keyedMutex) lock(keys ...key) (unlock func()) {
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.name, b.name))
	})
	keys = slices.Compact(keys)
	locks := make([]*keyLock, len(keys))
	m.mu.Lock()
	if m.held == nil {
		m.held = map[key]*keyLock{}
	}
	for i, k := range keys {
		if m.held[k] == nil {
			m.held[k] = &keyLock{}
		}
		locks[i] = m.held[k]
		locks[i].users++
	}
	m.mu.Unlock()
	for _, l := range locks {
		l.Lock()
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, l := range locks {
			l.Unlock()
			if l.users--; l.users == 0 {
				delete(m.held, keys[i])
			}
		}
	}
}
