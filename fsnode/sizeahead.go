package fsnode

import (
	"context"
	"iter"
	"sync"

	"github.com/deltafs/deltafs/snapshot"
)

const (
	// sizedFirst is how many files a directory sizes ahead at first, sizedMost
	// at most: twice as many whenever somebody goes on.
	sizedFirst = 16
	sizedMost  = 1024
)

// sizeAhead finds out the sizes of the files that come next in a directory, as
// soon as somebody asks for one size after the other: the kernel asks for each
// alone, and waits.
type sizeAhead struct {
	mu sync.Mutex
	// last is the last file whose size was asked for and not known, upTo that up
	// to which sizes were read.
	last, upTo string
	count      int
	running    bool
}

// asked notes that the size of a file was asked for and is not known. It returns
// how many of the files behind it to look at, 0 for none. If any, ended must be
// called.
func (a *sizeAhead) asked(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.last != "" && name > a.last
	a.last = name
	switch {
	case a.running || !next:
		return 0
	case a.upTo != "" && name > a.upTo:
		a.count = min(2*a.count, sizedMost)
	default:
		a.count = sizedFirst
	}
	a.running = true
	return a.count
}

func (a *sizeAhead) ended(upTo string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running, a.upTo = false, upTo
}

// readSizesBehind reads the sizes of the files behind one in its directory, of
// which listAfter lists the names.
func (f *FS) readSizesBehind(a *sizeAhead, d *dataFile, listAfter func(context.Context, string) iter.Seq2[child, error]) {
	if d.sized() {
		return
	}
	n := a.asked(d.Name)
	if n == 0 {
		return
	}
	f.aheads.start(func() {
		upTo := d.Name
		defer func() { a.ended(upTo) }()
		var files []snapshot.File
		for c, err := range listAfter(f.ctx, d.Name) {
			if err != nil || n == 0 {
				break
			}
			n--
			if file, ok := c.node.(*dataFile); ok {
				upTo = file.Name
				if !file.sized() {
					files = append(files, *file.File)
				}
			}
		}
		d.inc.snap.ReadSizes(f.ctx, files)
	})
}
