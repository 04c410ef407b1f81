package snapshot

import "github.com/deltafs/deltafs/internal/fault"

// origin says where in the log an add action is, so that an index need not
// hold it: a commit file, or a row of a checkpoint.
//
//	version (36 bits) | row + 1 (28), 0 for the commit file
type origin uint64

const (
	originRowBits = 28
	maxOriginRow  = 1<<originRowBits - 2
)

// fromCommit is the origin of what commit v adds.
func fromCommit(v int64) origin { return origin(v) << originRowBits }

// fromCheckpoint is the origin of a row of a checkpoint of version v, counted
// through all parts.
func fromCheckpoint(v, row int64) (origin, error) {
	if row > maxOriginRow {
		return 0, fault.New(ErrCorrupt, "a checkpoint has more than %d rows", int64(maxOriginRow)).AtVersion(v)
	}
	return origin(v)<<originRowBits | origin(row+1), nil
}

func (o origin) version() int64 { return int64(o >> originRowBits) }

// row is the row of the checkpoint; false if the origin is the commit file.
func (o origin) row() (int64, bool) {
	n := int64(o & (1<<originRowBits - 1))
	return n - 1, n > 0
}
