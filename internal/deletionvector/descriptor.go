package deletionvector

import (
	"errors"
	"net/url"

	"github.com/google/uuid"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

// ErrBroken: a deletion vector is damaged or contradicts its descriptor.
var ErrBroken = errors.New("broken deletion vector")

// MaxSize is the largest vector that is read: twice what the protocol's bitmap
// needs for every row of a file with as many rows as a Parquet reader counts
// with 32 bits.
const MaxSize = 512 << 20

// The storage types of a descriptor.
const (
	inline   = "i"
	relative = "u"
	absolute = "p"
)

// encodedUUID is the length of a UUID in Z85.
const encodedUUID = 20

// Path returns the path of the file that holds the vector, spelled as add.path
// spells paths: a URI, relative to the table's root or absolute. It is "" for a
// vector in the descriptor itself.
func Path(d *action.DeletionVector) (string, error) {
	switch d.StorageType {
	case inline:
		return "", nil
	case absolute:
		if d.PathOrInlineDV == "" {
			return "", broken("the descriptor names no file")
		}
		return d.PathOrInlineDV, nil
	case relative:
		return relativePath(d.PathOrInlineDV)
	}
	return "", broken("the descriptor has the unknown storage type %q", d.StorageType)
}

func relativePath(text string) (string, error) {
	if len(text) < encodedUUID {
		return "", broken("the descriptor's file name is too short")
	}
	prefix, encoded := text[:len(text)-encodedUUID], text[len(text)-encodedUUID:]
	raw, err := decodeZ85(encoded)
	if err != nil {
		return "", err
	}
	name := "deletion_vector_" + uuid.UUID(raw).String() + ".bin"
	if prefix == "" {
		return name, nil
	}
	return url.PathEscape(prefix) + "/" + name, nil
}

// checkSizes refuses numbers that no vector has, before anything is read by
// them.
func checkSizes(d *action.DeletionVector) error {
	switch {
	case d.SizeInBytes < 0 || d.SizeInBytes > MaxSize:
		return broken("the descriptor states a size of %d bytes", d.SizeInBytes)
	case d.Cardinality < 0:
		return broken("the descriptor states a cardinality of %d", d.Cardinality)
	}
	return nil
}

func broken(format string, args ...any) *fault.Error {
	return fault.New(ErrBroken, format, args...)
}
