package fsnode

import (
	"sync"
	"time"
)

// keeper lets tables rest that nobody uses: what can be loaded again is given
// up, and a table of which the kernel knows nothing is released as a whole. It
// sleeps when all of them rest.
type keeper struct {
	fs *FS

	mu     sync.Mutex
	awake  map[*table]struct{}
	ready  chan struct{}
	period time.Duration
}

func newKeeper(f *FS) *keeper {
	return &keeper{fs: f, awake: map[*table]struct{}{}, ready: make(chan struct{}, 1), period: f.opt.Idle / 4}
}

// visit makes the keeper look at the table until it rests. It never waits.
func (k *keeper) visit(t *table) {
	k.mu.Lock()
	k.awake[t] = struct{}{}
	k.mu.Unlock()
	select {
	case k.ready <- struct{}{}:
	default:
	}
}

// run looks at the tables until done is closed.
func (k *keeper) run(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-k.ready:
		}
		for burst, more := true, true; more; {
			select {
			case <-done:
				return
			case <-time.After(k.period):
			}
			used := true
			k.fs.guard("rest", func() { used, more = k.sweep() })
			if burst && !used && k.fs.opt.OnIdle != nil {
				k.fs.opt.OnIdle()
			}
			burst = used
		}
	}
}

// sweep lets those tables rest that are idle. It reports whether others are
// used, and whether there are any to look at again.
func (k *keeper) sweep() (used, more bool) {
	k.mu.Lock()
	tables := k.awake
	k.awake = map[*table]struct{}{}
	k.mu.Unlock()
	for t := range tables {
		if !t.rest() {
			used = used || !t.resting.Load()
			k.mu.Lock()
			k.awake[t] = struct{}{}
			k.mu.Unlock()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return used, len(k.awake) > 0
}

// rest gives up what the table holds if it is idle. False says that it must be
// looked at again, although it may not be used until then.
func (t *table) rest() bool {
	if t.idle() < t.fs.opt.Idle {
		return false
	}
	inc := t.present()
	if inc == nil || t.release() {
		return true
	}
	t.resting.Store(true)
	if t.idle() < t.fs.opt.Idle { // used meanwhile, perhaps without seeing that it rests
		t.resting.Store(false)
		return false
	}
	inc.texts.clear()
	inc.storedDirs.clear()
	t.fs.spool.clear(inc)
	inc.history.clear()
	inc.snap.Idle()
	inc.store.Rest()
	// What else keeps a table that the kernel has forgotten ends by itself.
	return t.known.Load() > 0
}

// release closes a table that is idle, and of which the kernel knows nothing,
// unless somebody could miss what it holds: staged files, directories just
// made, unlinks not committed, names in their grace. What failed in it is
// remembered. Its next use opens it anew, under other node ids.
//
// No operation on the table is under way: it would be one on a node, and the
// kernel forgets no node that it has a request for. Open files of the table
// have their directories known, and whatever handle is left reads on from its
// own descriptor.
func (t *table) release() bool {
	t.openMu.Lock()
	defer t.openMu.Unlock()
	t.pollMu.Lock()
	defer t.pollMu.Unlock()
	inc := t.present()
	if inc == nil || !inc.live.Idle() {
		return inc == nil
	}
	t.mu.Lock()
	if t.known.Load() > 0 || t.idle() < t.fs.opt.Idle {
		t.mu.Unlock()
		return false
	}
	t.inc = nil
	t.mu.Unlock()
	t.unlisten()
	t.fs.end(inc)
	if err := inc.close(t.fs.ctx); err != nil {
		t.fs.report(t, "close", "", toErrno(err), err)
	}
	return true
}

// unlisten ends the events of the log.
func (t *table) unlisten() {
	t.hears.Store(false)
	t.fs.watcher.remove(t)
}
