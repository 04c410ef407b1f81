package metacache

import (
	"cmp"
	"math"
	"strings"
	"sync"

	"github.com/google/btree"
)

// delta is what the versions of a run changed after its base. Entries are
// only ever added, and a reader passes over those of later versions, so that
// it needs the lock for a few entries at a time.
type delta struct {
	mu    sync.RWMutex
	byKey *btree.BTreeG[*entry]
	// byPath has the last entry of each path.
	byPath map[string]*entry
	// byID has the last file of each ID.
	byID  map[FileID]*entry
	bytes int64
}

// entry is a change and the version that made it. It is immutable once it is
// in a delta.
type entry struct {
	change
	version int64
	// older is the entry before of the same path.
	older *entry
}

const (
	deltaDegree = 32
	// entryBytes is about what an entry takes beside its text: itself and its
	// places in the tree and the maps.
	entryBytes = 270
)

func newDelta() *delta {
	return &delta{
		byKey:  btree.NewG(deltaDegree, func(a, b *entry) bool { return compareEntries(a, b) < 0 }),
		byPath: map[string]*entry{},
		byID:   map[FileID]*entry{},
	}
}

// compareEntries orders by key, the latest version first. The rank, where it is
// known, agrees with the key and spares most comparisons of strings.
func compareEntries(a, b *entry) int {
	if a.rank != b.rank && a.rank != unranked && b.rank != unranked {
		return cmp.Compare(a.rank, b.rank)
	}
	if c := a.file.Key.Compare(b.file.Key); c != 0 {
		return c
	}
	return cmp.Compare(b.version, a.version)
}

// isAt reports whether an entry stands before the file of the base with a rank,
// or in its place, and not before the one before that.
func (e *entry) isAt(rank int, f *File) bool {
	if e.rank != unranked {
		return e.rank == rank
	}
	return e.file.Key.Compare(f.Key) < 0
}

// newEntry copies a change.
func newEntry(c change, version int64) *entry {
	c.file.own()
	return &entry{change: c, version: version}
}

// own gives a file one text of its own for all its strings.
func (f *File) own() {
	parts := []string{f.Path, f.Raw, f.DV, f.Name, f.Dir}
	inPath := strings.HasSuffix(f.Path, f.Name) && strings.HasPrefix(f.Path, f.Dir)
	if inPath {
		parts = parts[:3]
	}
	text := strings.Join(parts, "")
	take := func(s *string) {
		*s, text = text[:len(*s)], text[len(*s):]
	}
	take(&f.Path)
	take(&f.Raw)
	take(&f.DV)
	if inPath {
		f.Name, f.Dir = f.Path[len(f.Path)-len(f.Name):], f.Path[:len(f.Dir)]
		return
	}
	take(&f.Name)
	take(&f.Dir)
}

// addBatch is how many entries are added before readers get their turn.
const addBatch = 256

// add adds the entries of a version, in order. Nobody reads that version yet.
func (d *delta) add(entries []*entry) {
	for len(entries) > 0 {
		n := min(len(entries), addBatch)
		d.addSome(entries[:n])
		entries = entries[n:]
	}
}

func (d *delta) addSome(entries []*entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		e.older = d.byPath[e.file.Path]
		d.byPath[e.file.Path] = e
		d.byKey.ReplaceOrInsert(e)
		if !e.ended {
			d.byID[e.file.ID] = e
		}
		d.bytes += entryBytes + int64(len(e.file.Path)+len(e.file.Raw)+len(e.file.DV))
	}
}

func (d *delta) size() int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.bytes
}

// at returns the last entry of a path up to a version, or nil.
func (d *delta) at(path string, version int64) *entry {
	d.mu.RLock()
	e := d.byPath[path]
	d.mu.RUnlock()
	for e != nil && e.version > version {
		e = e.older
	}
	return e
}

// idOf returns the ID of a file that was live in some version, 0 if none was.
func (d *delta) idOf(path, dv string) FileID {
	for e := d.at(path, math.MaxInt64); e != nil; e = e.older {
		if !e.ended && e.file.DV == dv {
			return e.file.ID
		}
	}
	return 0
}

// each visits all entries, of all versions.
func (d *delta) each(visit func(*entry)) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	d.byKey.Ascend(func(e *entry) bool {
		visit(e)
		return true
	})
}

// withID returns the file with an ID as it was last added, or nil.
func (d *delta) withID(id FileID) *entry {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.byID[id]
}

// cursor walks over the entries of a delta as they are in one version: of each
// key the last one up to it.
type cursor struct {
	delta   *delta
	version int64
	// from is where the walk goes on after the buffer.
	from   entry
	buffer []*entry
	at     int
	ended  bool
}

// A cursor takes few entries at first, as most readers want a directory, and
// looks anew where to go on after many that are none of this version's.
const (
	firstEntries = 8
	mostEntries  = 256
	mostSkipped  = 32
)

// cursor begins at a key; rank is that of the first file of the base whose key
// is not less, or unranked.
func (d *delta) cursor(version int64, rank int, key Key) *cursor {
	return &cursor{delta: d, version: version, from: pivot(change{rank: rank, file: File{Key: key}}, math.MaxInt64)}
}

// pivot is where a key's entries up to a version begin; they end where those
// before all versions begin.
func pivot(c change, version int64) entry { return entry{change: c, version: version} }

const beforeAll = math.MinInt64

// peek returns the next entry, nil at the end.
func (c *cursor) peek() *entry {
	for c.at == len(c.buffer) {
		if c.ended {
			return nil
		}
		c.fill()
	}
	return c.buffer[c.at]
}

func (c *cursor) advance() { c.at++ }

func (c *cursor) fill() {
	want := min(max(firstEntries, 4*len(c.buffer)), mostEntries)
	c.buffer, c.at, c.ended = make([]*entry, 0, want), 0, true
	var last *entry
	skipped := 0
	c.delta.mu.RLock()
	defer c.delta.mu.RUnlock()
	c.delta.byKey.AscendGreaterOrEqual(&c.from, func(e *entry) bool {
		same := last != nil && last.file.Key == e.file.Key
		switch {
		case !same && e.version <= c.version:
			last = e
			c.buffer = append(c.buffer, e)
			skipped = 0
			c.from = pivot(e.change, beforeAll)
		case same:
			skipped++
		default:
			skipped++
			c.from = pivot(e.change, c.version)
		}
		c.ended = len(c.buffer) < want && skipped < mostSkipped
		return c.ended
	})
}
