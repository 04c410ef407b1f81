package fsnode

import "github.com/deltafs/deltafs/metacache"

// A node id is 64 bits:
//
//	1 | slot (14) | schema ordinal (9) | FileID (40)    a data file
//	0 | serial (63)                                     a node of the table
//
// Serial 1 is the root. The id of a data file says which file it is, so
// nothing has to be remembered for it.
const (
	fileIDBits  = 40
	ordinalBits = 9
	slotBits    = 14

	dataBit = uint64(1) << 63
	// maxSlot is one less than fits: all ones is an id that go-fuse reserves.
	maxSlot    = 1<<slotBits - 2
	maxOrdinal = 1<<ordinalBits - 1
	maxFileID  = 1<<fileIDBits - 1
)

// fileRef names a data file of the mount.
type fileRef struct {
	slot    uint32
	ordinal uint32
	id      metacache.FileID
}

// nodeID packs the reference; false when a part does not fit.
func (r fileRef) nodeID() (uint64, bool) {
	if r.slot > maxSlot || r.ordinal > maxOrdinal || r.id == 0 || r.id > maxFileID {
		return 0, false
	}
	return dataBit | uint64(r.slot)<<(ordinalBits+fileIDBits) | uint64(r.ordinal)<<fileIDBits | uint64(r.id), true
}

// isDataFile reports whether the node id names a data file.
func isDataFile(nodeID uint64) bool { return nodeID&dataBit != 0 }

// unpackFile is the inverse of fileRef.nodeID for the id of a data file.
func unpackFile(nodeID uint64) fileRef {
	return fileRef{
		slot:    uint32(nodeID >> (ordinalBits + fileIDBits) & (1<<slotBits - 1)),
		ordinal: uint32(nodeID >> fileIDBits & maxOrdinal),
		id:      metacache.FileID(nodeID & maxFileID),
	}
}
