package metacache

import (
	"errors"
	"hash/crc32"
)

// A run on disk is a directory:
//
//	seal              what the run is and which files it has; written last
//	MANIFEST, *.sst   a badger database with the base, never changed
//	versions          a log of the versions, appended to
//
// In the database every key is a kind and a number, and a reader knows each
// number that must be there, so that a lost value is noticed and never taken
// for a file that is not there.

// errDamaged says that a run on disk can no longer be read. What it held has
// to be loaded again from the log of the table.
var errDamaged = errors.New("damaged metadata cache")

// Kinds of values in the database of a run.
const (
	// filesKind has blockFiles files in rank order by rank/blockFiles.
	filesKind = 'f'
	// dirsKind has chunkDirs directories by number/chunkDirs.
	dirsKind = 'd'
	// pathsKind has a bucket of path hashes by the first bits of the hash.
	pathsKind = 'p'
	// idsKind has chunkIDs IDs in order by their place/chunkIDs; only if the
	// IDs do not follow from the ranks.
	idsKind = 'i'
	// idRootKind has under 0 the first ID of each chunk of idsKind.
	idRootKind = 'r'
)

const (
	blockFiles  = 512
	chunkDirs   = 256
	bucketPaths = 256
	chunkIDs    = 512
)

// maxValue bounds a value, unpacked. Longer ones would need paths of tens of
// kilobytes; such a run is not kept.
const maxValue = 16 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
