package metacache

import (
	"hash/maphash"
	"math/bits"
)

// pathTable finds the slot of a file by its path: open addressing over 32-bit
// entries, under a random seed so that no log can be made to collide. An entry
// is 0, or in the lower bits slot+1 and in the others some bits of the hash,
// which spare most comparisons of paths that differ.
type pathTable struct {
	seed    maphash.Seed
	entries []uint32
	// slotBits is the number of bits of slot+1.
	slotBits int
}

// newPathTable returns a table for so many files.
func newPathTable(seed maphash.Seed, files int) pathTable {
	return pathTable{seed: seed, entries: make([]uint32, files+files/2+1), slotBits: bits.Len(uint(files))}
}

// hashPath keeps half of the hash: its upper bits say where a path belongs in a
// table, its lower bits are the tag.
func hashPath(seed maphash.Seed, path string) uint32 { return uint32(maphash.String(seed, path)) }

// find returns the slot with this path.
func (t *pathTable) find(path string, pathOf func(slot int) string) (slot int, ok bool) {
	slot, _, ok = t.search(hashPath(t.seed, path), func(slot int) bool { return pathOf(slot) == path })
	return slot, ok
}

// put enters a slot, in place of the one that is the same, which it returns.
func (t *pathTable) put(hash uint32, slot int, same func(slot int) bool) (before int, replaced bool) {
	before, at, replaced := t.search(hash, same)
	t.entries[at] = hash<<t.slotBits | uint32(slot+1)
	return before, replaced
}

// search returns the slot with this hash that is the same, and its place in
// the table; without one, the place where it belongs.
func (t *pathTable) search(hash uint32, same func(slot int) bool) (slot, at int, ok bool) {
	tag, slotMask := hash<<t.slotBits, uint32(1)<<t.slotBits-1
	for at = t.home(hash); ; {
		e := t.entries[at]
		if e == 0 {
			return 0, at, false
		}
		if e&^slotMask == tag {
			if slot = int(e&slotMask) - 1; same(slot) {
				return slot, at, true
			}
		}
		if at++; at == len(t.entries) {
			at = 0
		}
	}
}

// home is where the search for a hash begins: hashes in order have homes in
// order.
func (t *pathTable) home(hash uint32) int { return int(uint64(hash) * uint64(len(t.entries)) >> 32) }

func (t *pathTable) bytes() int64 { return 4 * int64(len(t.entries)) }

// hashedSlot is a file that is to be entered.
type hashedSlot struct {
	hash, slot uint32
}

// regionBits: a table is filled in 2^regionBits regions one after the other,
// each of which fits the processor's caches, so that a large one takes a
// fraction of the time.
const regionBits = 7

// byRegion returns the slots with these hashes in the order of their regions,
// and of the slots in each.
func byRegion(hashes [][]uint32, slots int) []hashedSlot {
	const shift = 32 - regionBits
	var next [1 << regionBits]int
	for _, some := range hashes {
		for _, hash := range some {
			next[hash>>shift]++
		}
	}
	sum := 0
	for i, n := range next {
		next[i] = sum
		sum += n
	}
	out := make([]hashedSlot, slots)
	slot := uint32(0)
	for _, some := range hashes {
		for _, hash := range some {
			at := &next[hash>>shift]
			out[*at] = hashedSlot{hash, slot}
			*at++
			slot++
		}
	}
	return out
}
