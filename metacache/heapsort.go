package metacache

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// sortItem is a slot and the part of its name by which it is sorted next.
type sortItem struct {
	key  uint64
	slot uint32
}

// fewItems are sorted by comparing names; more by keys first, as each look at
// a name is a miss of the processor's caches.
const fewItems = 16

// sort puts the files of a directory in order.
func (h *heapBase) sort(number int) {
	d := &h.dirs[number]
	if d.sorted.Load() {
		return
	}
	h.sorting.Lock()
	defer h.sorting.Unlock()
	if d.sorted.Load() {
		return
	}
	slots := h.order[d.first:d.end()]
	items := make([]sortItem, len(slots))
	for i, slot := range slots {
		items[i].slot = slot
	}
	h.sortItems(items, 0)
	for i := range items {
		slots[i] = items[i].slot
	}
	d.sorted.Store(true)
}

// sortItems sorts items whose names agree in the first done bytes; a name that
// is shorter counts as filled up with zeros.
func (h *heapBase) sortItems(items []sortItem, done int) {
	if len(items) > fewItems {
		done += h.common(items, done)
	}
	if len(items) <= fewItems || !h.setKeys(items, done) {
		slices.SortFunc(items, func(a, b sortItem) int { return h.compare(int(a.slot), int(b.slot)) })
		return
	}
	slices.SortFunc(items, func(a, b sortItem) int { return cmp.Compare(a.key, b.key) })
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].key == items[0].key {
			n++
		}
		if n > 1 {
			h.sortItems(items[:n], done+wordSize)
		}
		items = items[n:]
	}
}

// common returns how many more bytes than done all names share.
func (h *heapBase) common(items []sortItem, done int) int {
	first := h.name(int(items[0].slot))
	first = first[min(done, len(first)):]
	for _, item := range items[1:] {
		name := h.name(int(item.slot))
		name = name[min(done, len(name)):]
		n := 0
		for n < min(len(first), len(name)) && first[n] == name[n] {
			n++
		}
		if first = first[:n]; n == 0 {
			break
		}
	}
	return len(first)
}

// setKeys makes the next bytes of each name its key; false if there are none.
func (h *heapBase) setKeys(items []sortItem, done int) bool {
	more := false
	for i := range items {
		name := h.name(int(items[i].slot))
		if len(name) <= done {
			items[i].key = 0
			continue
		}
		more = true
		var word [wordSize]byte
		copy(word[:], name[done:])
		items[i].key = binary.BigEndian.Uint64(word[:])
	}
	return more
}
