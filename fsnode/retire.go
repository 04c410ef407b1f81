package fsnode

import (
	"sync"
	"time"
)

// retireAfter is how long a committed staged file is kept for who looked it up
// just before it was committed.
const retireAfter = time.Minute

// retirees are staged files that were closed, oldest first. A file that is
// committed is another inode from then on, but the kernel forgets the old one
// only when it is short of memory: without this a mount would grow with every
// append. The kernel looks each name in current/ up again before it uses what
// was found there, so it asks for a dropped node only in a race, and then for
// the name once more.
type retirees struct {
	mu    sync.Mutex
	after time.Duration
	queue []retiree
}

type retiree struct {
	file *stagedFile
	at   time.Time
}

// add notes that a file was closed, and returns those that were long ago.
func (r *retirees) add(file *stagedFile) (due []*stagedFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.queue = append(r.queue, retiree{file, now})
	for len(r.queue) > 0 && now.Sub(r.queue[0].at) > r.after {
		due = append(due, r.queue[0].file)
		r.queue[0].file = nil
		r.queue = r.queue[1:]
	}
	return due
}

// retire drops what was closed long ago and is committed or gone. Whatever is
// open, or still has a name of its own, is added again when it is closed.
func (f *FS) retire(file *stagedFile) {
	for _, old := range f.retirees.add(file) {
		if !old.Settled() {
			continue
		}
		if id, ok := f.nodes.idOf(old.key()); ok {
			f.drop(id)
		}
	}
}
