package metacache

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
)

// maxSlots bounds the files of a heapBase.
const maxSlots = math.MaxUint32 - 1

// heapBuilder makes a heapBase of files in any order.
type heapBuilder struct {
	chunk  chunkBuilder
	chunks []chunk
	totals Totals

	dirs  []string
	dirOf map[string]uint32
	// recent are numbers of directories by a hash of the end of the path, where
	// most differ: a lookup in dirOf takes several times as long.
	recent [1 << recentBits]uint32
	// files counts by directory.
	files []int

	// hashes are those of the paths, names those of the visible names, both in
	// pieces of a chunk each.
	seed          maphash.Seed
	hashes, names [][]uint32
}

func newHeapBuilder() *heapBuilder {
	return &heapBuilder{dirOf: map[string]uint32{}, seed: maphash.MakeSeed()}
}

func (b *heapBuilder) slots() int { return len(b.chunks)*chunkFiles + b.chunk.len() }

// add takes a file, whose strings are borrowed.
func (b *heapBuilder) add(f *File) error {
	if b.slots() >= maxSlots {
		return fault.New(ErrTooLarge, "an index holds at most %d files", maxSlots)
	}
	if b.chunk.len() == 0 {
		files := cmp.Or(min(len(b.chunks), 1)*chunkFiles, 16)
		b.hashes = append(b.hashes, make([]uint32, 0, files))
		b.names = append(b.names, make([]uint32, 0, files))
	}
	last := len(b.hashes) - 1
	b.hashes[last] = append(b.hashes[last], hashPath(b.seed, f.Path))
	b.names[last] = append(b.names[last], hashPath(b.seed, f.Name))
	dir := b.dir(f.Dir)
	b.files[dir]++
	b.chunk.add(f, dir)
	b.totals.add(f, 1)
	if b.chunk.len() == chunkFiles {
		b.chunks = append(b.chunks, b.chunk.finish())
	}
	return nil
}

// dir returns the number of a directory.
func (b *heapBuilder) dir(path string) uint32 {
	recent := &b.recent[endHash(path)]
	if n := int(*recent); n < len(b.dirs) && b.dirs[n] == path {
		return *recent
	}
	number, ok := b.dirOf[path]
	if !ok {
		path = strings.Clone(path)
		number = uint32(len(b.dirs))
		b.dirs = append(b.dirs, path)
		b.files = append(b.files, 0)
		b.dirOf[path] = number
	}
	*recent = number
	return number
}

const recentBits = 14

// endHash is a hash of the last bytes.
func endHash(path string) uint64 {
	var word [wordSize]byte
	copy(word[:], path[max(0, len(path)-len(word)):])
	const golden = 0x9e3779b97f4a7c15 // spreads what differs over the upper bits
	return binary.LittleEndian.Uint64(word[:]) * golden >> (64 - recentBits)
}

// finish returns the base. Of two files of one path the later counts.
func (b *heapBuilder) finish(ctx context.Context) (*heapBase, error) {
	h := &heapBase{slots: b.slots(), sum: b.totals, names: newNameFilter(b.names, b.slots())}
	if b.chunk.len() > 0 {
		b.chunks = append(b.chunks, b.chunk.finish())
	}
	h.chunks = b.chunks
	dead, err := h.fillPaths(ctx, newPathTable(b.seed, h.slots), byRegion(b.hashes, h.slots))
	if err != nil {
		return nil, err
	}
	for slot := range dead {
		c, i := h.at(slot)
		f := c.file(i)
		h.sum.add(&f, -1)
		b.files[c.number(dirColumn, i)]--
	}
	h.group(b.dirs, b.files, dead)
	h.weigh()
	return h, nil
}

// fillPaths fills the table of paths and returns the slots that were replaced.
func (h *heapBase) fillPaths(ctx context.Context, paths pathTable, slots []hashedSlot) (dead map[int]bool, err error) {
	h.paths = paths
	for i, s := range slots {
		if i%chunkFiles == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		before, replaced := h.paths.put(s.hash, int(s.slot), func(other int) bool { return h.path(other) == h.path(int(s.slot)) })
		if !replaced {
			continue
		}
		if dead == nil {
			dead = map[int]bool{}
		}
		dead[before] = true
	}
	return dead, nil
}

// group puts the slots into the order of their directories, and leaves the
// order inside a directory to the first who asks.
func (h *heapBase) group(dirs []string, files []int, dead map[int]bool) {
	numbers := make([]uint32, 0, len(dirs))
	for n := range dirs {
		if files[n] > 0 {
			numbers = append(numbers, uint32(n))
		}
	}
	slices.SortFunc(numbers, func(a, b uint32) int { return CompareDirs(dirs[a], dirs[b]) })

	h.placeOf = make([]uint32, len(dirs))
	h.dirs = make([]heapDir, len(numbers))
	next := make([]int, len(dirs))
	first := 0
	for place, n := range numbers {
		h.placeOf[n] = uint32(place)
		h.dirs[place].baseDir = baseDir{path: dirs[n], first: first, files: files[n]}
		next[n] = first
		first += files[n]
	}
	h.order = make([]uint32, first)
	for slot := range h.slots {
		if dead != nil && dead[slot] {
			continue
		}
		c, i := h.at(slot)
		at := &next[c.number(dirColumn, i)]
		h.order[*at] = uint32(slot)
		*at++
	}
}
