package snapshot

import (
	"sync"
	"sync/atomic"

	"github.com/deltafs/deltafs/metacache"
)

// sizeBook remembers in which size files are served. Most are served as they
// are, in the size that the log says: of those a bit each is kept, and of others
// a bounded number, for what was forgotten is found out again.
type sizeBook struct {
	mu     sync.Mutex
	raw    map[sizePage]*[pageFiles / 64]uint64
	others map[sizePage]*[pageFiles]int64
	// contradicted is set when a file of a table that is shown raw was found to
	// have another size than the log says.
	contradicted atomic.Bool
}

// sizePage names neighbouring files that are shown alike.
type sizePage struct {
	ordinal uint32
	number  metacache.FileID
}

const (
	pageFiles = 512
	// mostPages bounds the other sizes to 16 MiB.
	mostPages = 4096
)

func pageOf(f File) (page sizePage, at uint) {
	return sizePage{f.SchemaOrdinal, f.ID / pageFiles}, uint(f.ID % pageFiles)
}

// keepRaw remembers that a file is served as it is.
func (b *sizeBook) keepRaw(f File, size int64) {
	if size != f.logged {
		b.keep(f, size)
		return
	}
	page, at := pageOf(f)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.raw[page] == nil {
		if b.raw == nil {
			b.raw = map[sizePage]*[pageFiles / 64]uint64{}
		}
		b.raw[page] = new([pageFiles / 64]uint64)
	}
	b.raw[page][at/64] |= 1 << (at % 64)
}

// keep remembers the size of a file.
func (b *sizeBook) keep(f File, size int64) {
	page, at := pageOf(f)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.others[page] == nil {
		if b.others == nil {
			b.others = map[sizePage]*[pageFiles]int64{}
		}
		for old := range b.others { // in no order
			if len(b.others) < mostPages {
				break
			}
			delete(b.others, old)
		}
		b.others[page] = new([pageFiles]int64)
	}
	b.others[page][at] = size + 1 // 0 is unknown
}

// isRaw reports whether a file of this size is known to be served as it is.
func (b *sizeBook) isRaw(f File, size int64) bool {
	page, at := pageOf(f)
	b.mu.Lock()
	defer b.mu.Unlock()
	return size == f.logged && b.raw[page] != nil && b.raw[page][at/64]&(1<<(at%64)) != 0
}

// get returns the size in which a file is served, if it is known.
func (b *sizeBook) get(f File) (int64, bool) {
	if b.isRaw(f, f.logged) {
		return f.logged, true
	}
	page, at := pageOf(f)
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.others[page]; p != nil && p[at] > 0 {
		return p[at] - 1, true
	}
	return 0, false
}
