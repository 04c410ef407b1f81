package snapshot

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// A checkpoint is compressed, so a few bytes can claim any number of rows and
// of bytes. What a checkpoint file may claim grows with its size, far beyond
// what paths and statistics compress to.
const (
	freeBytes     = 64 << 20
	bytesPerByte  = 1000
	freeValues    = 1 << 20
	valuesPerByte = 16
)

// errInflated refuses a checkpoint that decodes to more than its size can
// hold.
var errInflated = errors.New("it claims far more data than a file of its size can hold")

// maxBytes is how many bytes the values of a file of this size may take.
func maxBytes(size int64) int64 { return freeBytes + bytesPerByte*size }

// maxValues is how many values a column of a file of this size may have.
func maxValues(size int64) int64 { return freeValues + valuesPerByte*size }

// checkClaims refuses a footer that claims more than the file can hold, before
// anything is allocated for it.
func checkClaims(meta *format.FileMetaData, size int64) error {
	var rows, bytes int64
	for _, g := range meta.RowGroups {
		// Subtracting cannot overflow where adding would.
		if g.NumRows < 0 || g.NumRows > maxValues(size)-rows {
			return fmt.Errorf("%w: %d rows", errInflated, g.NumRows)
		}
		rows += g.NumRows
		for _, c := range g.Columns {
			m := &c.MetaData
			if m.NumValues < 0 || m.NumValues > maxValues(size) {
				return fmt.Errorf("%w: %d values", errInflated, m.NumValues)
			}
			if m.TotalUncompressedSize < 0 || m.TotalUncompressedSize > maxBytes(size)-bytes {
				return fmt.Errorf("%w: %d bytes", errInflated, m.TotalUncompressedSize)
			}
			bytes += m.TotalUncompressedSize
			if n := int64(c.OffsetIndexLength); n < 0 || n > size {
				return fmt.Errorf("%w: an index of %d bytes", errInflated, n)
			}
		}
	}
	return nil
}
