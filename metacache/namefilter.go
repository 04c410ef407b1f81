package metacache

// nameFilter tells most names that no file of a base has from those that one
// may have, in few bytes a file (a Bloom filter). It spares putting a directory
// in order to find out that a name is free in it.
type nameFilter []uint64

const (
	// filterBits are those of a name, filterProbes how many of them it sets: of
	// the names that no file has one in four hundred seems to be there.
	filterBits   = 16
	filterProbes = 4
)

// newNameFilter takes the hashes of so many names.
func newNameFilter(hashes [][]uint32, names int) nameFilter {
	f := make(nameFilter, (names*filterBits+63)/64)
	for _, some := range hashes {
		for _, hash := range some {
			for i := range filterProbes {
				bit := f.bit(hash, i)
				f[bit/64] |= 1 << (bit % 64)
			}
		}
	}
	return f
}

// bit is the i-th bit of a hash.
func (f nameFilter) bit(hash uint32, i int) uint64 {
	const golden = 0x9e3779b1 // each probe goes elsewhere
	probe := hash + uint32(i)*(hash*golden|1)
	return uint64(probe) * uint64(len(f)*64) >> 32
}

// mayHave is false for a hash of which no name was taken.
func (f nameFilter) mayHave(hash uint32) bool {
	if len(f) == 0 {
		return false
	}
	for i := range filterProbes {
		if bit := f.bit(hash, i); f[bit/64]&(1<<(bit%64)) == 0 {
			return false
		}
	}
	return true
}

func (f nameFilter) bytes() int64 { return 8 * int64(len(f)) }
