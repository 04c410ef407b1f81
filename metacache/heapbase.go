package metacache

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// heapBase is a base on the heap. A file has a slot, its place in the load,
// and a rank, its place in the order. The files of a directory are put in
// order when the first of them is asked for, so that the first listing of a
// large table does not wait for the order of all.
type heapBase struct {
	chunks []chunk
	slots  int
	sum    Totals
	paths  pathTable
	names  nameFilter
	held   int64

	dirs []heapDir
	// placeOf says where in dirs the directory with a number in dirColumn is.
	placeOf []uint32
	// order holds slots by rank; those of a directory are in order once the
	// directory is.
	order   []uint32
	sorting sync.Mutex

	// The file with rank 0 has firstID, the others follow, unless own is set.
	firstID FileID
	own     *ownIDs
}

type heapDir struct {
	baseDir
	// sorted is set with heapBase.sorting held.
	sorted atomic.Bool
}

var _ base = (*heapBase)(nil)

func (h *heapBase) count() int     { return len(h.order) }
func (h *heapBase) totals() Totals { return h.sum }
func (h *heapBase) bytes() int64   { return h.held }
func (h *heapBase) close()         {}

// weigh finds out what bytes returns.
func (h *heapBase) weigh() {
	const dirBytes = 100
	h.held = h.paths.bytes() + h.names.bytes() + 4*int64(len(h.order)) + dirBytes*int64(len(h.dirs))
	for i := range h.chunks {
		h.held += h.chunks[i].bytes()
	}
	if h.own != nil {
		h.held += h.own.bytes()
	}
}

// at returns the chunk of a slot and its place there.
func (h *heapBase) at(slot int) (*chunk, int) { return &h.chunks[slot/chunkFiles], slot % chunkFiles }

func (h *heapBase) path(slot int) string {
	c, i := h.at(slot)
	return c.path(i)
}

func (h *heapBase) name(slot int) string {
	c, i := h.at(slot)
	return c.name(i)
}

func (h *heapBase) dv(slot int) string {
	c, i := h.at(slot)
	return c.dv(i)
}

func (h *heapBase) file(ctx context.Context, rank int) (File, error) {
	n := h.dirWith(rank)
	h.sort(n)
	return h.fileIn(&h.dirs[n], rank), ctx.Err()
}

// fileIn returns the file with a rank in a directory that is in order.
func (h *heapBase) fileIn(dir *heapDir, rank int) File {
	slot := int(h.order[rank])
	c, i := h.at(slot)
	f := c.file(i)
	f.Dir = dir.path
	f.ID = h.firstID + FileID(rank)
	if h.own != nil {
		f.ID = h.own.id(slot)
	}
	return f
}

func (h *heapBase) seekDir(ctx context.Context, dir string) (int, error) {
	return sort.Search(len(h.dirs), func(n int) bool { return CompareDirs(h.dirs[n].path, dir) >= 0 }), ctx.Err()
}

func (h *heapBase) dir(ctx context.Context, number int) (baseDir, bool, error) {
	if number >= len(h.dirs) {
		return baseDir{}, false, ctx.Err()
	}
	return h.dirs[number].baseDir, true, ctx.Err()
}

// isOrdered reports whether the files of a directory are in order.
func (h *heapBase) isOrdered(d baseDir) bool {
	return d.files == 0 || h.dirs[h.dirWith(d.first)].sorted.Load()
}

func (h *heapBase) seekName(ctx context.Context, d baseDir, name string) (int, error) {
	if d.files > 0 {
		h.sort(h.dirWith(d.first))
	}
	return d.first + sort.Search(d.files, func(i int) bool { return h.name(int(h.order[d.first+i])) >= name }), ctx.Err()
}

// dirWith returns the directory of the file with a rank.
func (h *heapBase) dirWith(rank int) int {
	return sort.Search(len(h.dirs), func(n int) bool { return h.dirs[n].end() > rank })
}

func (h *heapBase) scan(ctx context.Context, first, end int) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		rank := first
		for n := h.dirWith(first); rank < end; n++ {
			if err := ctx.Err(); err != nil {
				yield(File{}, err)
				return
			}
			h.sort(n)
			for dir := &h.dirs[n]; rank < min(end, dir.end()); rank++ {
				if !yield(h.fileIn(dir, rank), nil) {
					return
				}
			}
		}
	}
}

func (h *heapBase) byPath(ctx context.Context, path string) (int, bool, error) {
	slot, ok := h.paths.find(path, h.path)
	if !ok {
		return 0, false, ctx.Err()
	}
	return h.rank(slot), true, ctx.Err()
}

func (h *heapBase) byID(ctx context.Context, id FileID) (int, bool, error) {
	if h.own == nil {
		rank := int(id) - int(h.firstID)
		return rank, rank >= 0 && rank < len(h.order), ctx.Err()
	}
	slot, ok := h.own.find(id)
	if !ok {
		return 0, false, ctx.Err()
	}
	return h.rank(slot), true, ctx.Err()
}

// rank returns the rank of a slot.
func (h *heapBase) rank(slot int) int {
	c, i := h.at(slot)
	n := int(h.placeOf[c.number(dirColumn, i)])
	h.sort(n)
	d := &h.dirs[n]
	return d.first + sort.Search(d.files, func(i int) bool { return h.compare(int(h.order[d.first+i]), slot) >= 0 })
}

// compare orders the slots of one directory.
func (h *heapBase) compare(a, b int) int {
	if a == b {
		return 0
	}
	ca, ia := h.at(a)
	cb, ib := h.at(b)
	if c := strings.Compare(ca.name(ia), cb.name(ib)); c != 0 {
		return c
	}
	return strings.Compare(ca.path(ia), cb.path(ib))
}

// ownIDs says the IDs of files that do not follow each other.
type ownIDs struct {
	bySlot []packed
	// slots are ascending by ID.
	slots []uint32
}

// setIDs gives each slot its ID.
func (h *heapBase) setIDs(ids []FileID) {
	type slotID struct {
		id   FileID
		slot uint32
	}
	byID := make([]slotID, len(h.order))
	for i, slot := range h.order {
		byID[i] = slotID{ids[slot], slot}
	}
	slices.SortFunc(byID, func(a, b slotID) int { return cmp.Compare(a.id, b.id) })
	o := &ownIDs{slots: make([]uint32, len(byID))}
	for i := range byID {
		o.slots[i] = byID[i].slot
	}
	numbers := make([]uint64, 0, chunkFiles)
	for some := range slices.Chunk(ids, chunkFiles) {
		numbers = numbers[:0]
		for _, id := range some {
			numbers = append(numbers, uint64(id))
		}
		o.bySlot = append(o.bySlot, pack(numbers))
	}
	h.own = o
	h.weigh()
}

func (o *ownIDs) id(slot int) FileID { return FileID(o.bySlot[slot/chunkFiles].at(0, slot%chunkFiles)) }

func (o *ownIDs) find(id FileID) (slot int, ok bool) {
	i := sort.Search(len(o.slots), func(i int) bool { return o.id(int(o.slots[i])) >= id })
	if i == len(o.slots) || o.id(int(o.slots[i])) != id {
		return 0, false
	}
	return int(o.slots[i]), true
}

func (o *ownIDs) bytes() int64 {
	n := 4 * len(o.slots)
	for i := range o.bySlot {
		n += len(o.bySlot[i].data)
	}
	return int64(n)
}
