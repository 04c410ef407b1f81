package fsnode

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// notifier runs what talks to the kernel of its own accord, in order, on a
// goroutine that serves no operation. A notification waits for the lock of a
// directory in the kernel, which an operation may hold until we answer it.
type notifier struct {
	// guard runs a function and survives its defects.
	guard func(fn func())

	mu    sync.Mutex
	queue []func()
	ready chan struct{}
}

func newNotifier(guard func(func())) *notifier {
	return &notifier{guard: guard, ready: make(chan struct{}, 1)}
}

// do queues fn; it never waits.
func (n *notifier) do(fn func()) {
	n.mu.Lock()
	n.queue = append(n.queue, fn)
	n.mu.Unlock()
	select {
	case n.ready <- struct{}{}:
	default:
	}
}

// run works the queue off until done is closed.
func (n *notifier) run(done <-chan struct{}) {
	for {
		n.mu.Lock()
		batch := n.queue
		n.queue = nil
		n.mu.Unlock()
		for _, fn := range batch {
			select {
			case <-done:
				return
			default:
				n.guard(fn)
			}
		}
		select {
		case <-done:
			return
		case <-n.ready:
		}
	}
}

// kernel is the part of fuse.Server that the file system talks to.
type kernel interface {
	EntryNotify(parent uint64, name string) fuse.Status
	InodeNotify(node uint64, off, length int64) fuse.Status
}

// notifyChanges invalidates the names in current/ that the versions after
// from, up to to, have changed, and the attributes of their directories.
func (f *FS) notifyChanges(inc *incarnation, from, to int64) {
	k := f.kernel()
	if k == nil || inc.stale() {
		return
	}
	dirs := map[string]uint64{}
	n := 0
	err := inc.changes(f.ctx, from, to, func(dir, name string) bool {
		id, seen := dirs[dir]
		if !seen {
			id, _ = f.nodes.idOf(inc.liveDir(dir).key())
			dirs[dir] = id
		}
		if id != 0 {
			k.EntryNotify(id, name)
		}
		n++
		return n < maxNotices
	})
	if err != nil {
		f.log.Debug("changes unknown", "table", inc.t.source, "version", to, "err", err)
	}
	dirs[""], _ = f.nodes.idOf(inc.liveDir("").key())
	for _, id := range dirs {
		if id != 0 {
			k.InodeNotify(id, -1, 0)
		}
	}
}

// notifyAll invalidates every name of the table that the kernel knows.
func (f *FS) notifyAll(t *table) {
	k := f.kernel()
	if k == nil {
		return
	}
	for _, p := range f.nodes.places(t) {
		k.EntryNotify(p.parent, p.name)
	}
}
