package fsnode

import (
	"sync"
	"time"
)

const (
	// passageTTL is how long after a lookup in current/ a thread may change
	// what it has found.
	passageTTL = 10 * time.Second
	maxPassage = 4096
)

// passages remember which thread has found which committed file in current/.
//
// A change of attributes names an inode, and a committed file's is the same in
// current/, where chmod and utimes succeed and change nothing, and in every
// snapshot, where they are EROFS. But no name of a file in current/ is cached,
// so who comes that way has just looked it up, while a name in a snapshot is
// looked up once for all.
type passages struct {
	mu   sync.Mutex
	last map[passage]time.Time
}

type passage struct {
	pid  uint32
	node uint64
}

// note remembers that a thread found a node in current/.
func (p *passages) note(pid uint32, node uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || len(p.last) >= maxPassage {
		p.last = map[passage]time.Time{}
	}
	p.last[passage{pid, node}] = time.Now()
}

// recent reports whether a thread found the node in current/ lately.
func (p *passages) recent(pid uint32, node uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.last[passage{pid, node}]
	return ok && time.Since(at) < passageTTL
}
