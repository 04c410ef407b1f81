package fsnode

import (
	"context"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

// notifier runs what talks to the kernel of its own accord, in order, on a
// goroutine that serves no operation. A notification about a name waits for
// the lock of its directory in the kernel, which an operation may hold until we
// answer it. If the process is killed in this wait, it cannot end, and whoever
// uses the mount hangs with it until the connection is aborted. So names that
// change as a matter of course are not cached; only a table that is gone or was
// made again has its names invalidated.
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

// maxReadBack is how many commits are read to find out what they changed; where
// there are more, everything counts as changed.
const maxReadBack = 32

// notifyChanges invalidates the attributes and listings of the directories in
// current/ that the versions after from, up to to, have changed.
func (f *FS) notifyChanges(inc *incarnation, from, to int64) {
	k := f.kernel()
	if k == nil || inc.stale() {
		return
	}
	if to-from > maxReadBack {
		for _, id := range f.nodes.liveDirs(inc) {
			k.InodeNotify(id, -1, 0)
		}
		return
	}
	dirs := map[string]bool{"": true}
	if err := inc.changes(f.ctx, from, to, dirs); err != nil {
		f.log.Debug("changes unknown", "table", inc.t.source, "version", to, "err", err)
	}
	for dir := range dirs {
		if id, ok := f.nodes.idOf(inc.liveDir(dir).key()); ok {
			k.InodeNotify(id, -1, 0)
		}
	}
}

// changes adds to dirs the directory of every file that came or went between
// two versions. It costs what the commits in between cost.
func (inc *incarnation) changes(ctx context.Context, from, to int64, dirs map[string]bool) error {
	after, err := inc.snap.At(ctx, to)
	if err != nil || len(after.PartitionFields()) == 0 {
		return err
	}
	before, err := inc.snap.At(ctx, from)
	if err != nil {
		return err
	}
	for v := from + 1; v <= to; v++ {
		actions, err := inc.snap.ReadCommit(ctx, v)
		if err != nil {
			return err
		}
		for _, a := range actions {
			var f snapshot.File
			var ok bool
			var err error
			switch a := a.(type) {
			case *action.Add:
				f, ok, err = after.ByPath(ctx, a.Path)
			case *action.Remove:
				f, ok, err = before.ByPath(ctx, a.Path)
			}
			if err != nil {
				return err
			}
			if ok {
				dirs[f.Dir] = true
			}
		}
	}
	return nil
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
