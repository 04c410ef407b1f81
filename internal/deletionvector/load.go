package deletionvector

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

// Object is an opened file with deletion vectors.
type Object interface {
	io.ReaderAt
	io.Closer
}

// Opener opens the file at a path as Path returns it, and says how long it is.
type Opener func(ctx context.Context, path string) (Object, int64, error)

// Load returns the rows that d deletes. What fails in open is returned as it
// is; everything else that is wrong is ErrBroken, but for failures to read.
func Load(ctx context.Context, d *action.DeletionVector, open Opener) (*roaring64.Bitmap, error) {
	if err := checkSizes(d); err != nil {
		return nil, err
	}
	path, err := Path(d)
	if err != nil {
		return nil, err
	}
	var data []byte
	if path == "" {
		data, err = inlineData(d)
	} else {
		data, err = fileData(ctx, d, path, open)
	}
	if err != nil {
		return nil, err
	}
	rows, err := decode(data, d.Cardinality)
	return rows, inFile(err, path)
}

// CheckRows refuses a vector that deletes rows which a file with this many rows
// does not have.
func CheckRows(deleted *roaring64.Bitmap, rows int64) error {
	if deleted.IsEmpty() || rows > 0 && deleted.Maximum() < uint64(rows) {
		return nil
	}
	return broken("the vector deletes row %d of a file with %d rows", deleted.Maximum(), rows)
}

func inlineData(d *action.DeletionVector) ([]byte, error) {
	data, err := decodeZ85(d.PathOrInlineDV)
	if err != nil {
		return nil, err
	}
	// The text is padded to a multiple of four bytes.
	if padding := int64(len(data)) - d.SizeInBytes; padding < 0 || padding > 3 {
		return nil, broken("the descriptor states %d bytes and holds %d", d.SizeInBytes, len(data))
	}
	return data[:d.SizeInBytes], nil
}

// fileVersion begins every file with deletion vectors.
const fileVersion = 1

// A vector in a file lies between its size and its CRC-32, four bytes each.
const (
	sizeField = 4
	crcField  = 4
)

func fileData(ctx context.Context, d *action.DeletionVector, path string, open Opener) ([]byte, error) {
	object, size, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer object.Close()
	data, err := framed(object, size, d)
	return data, inFile(err, path)
}

// framed reads the vector at the descriptor's offset. Without an offset it is
// the first one, behind the version.
func framed(file io.ReaderAt, size int64, d *action.DeletionVector) ([]byte, error) {
	offset := int64(1)
	if d.Offset != nil {
		offset = *d.Offset
	}
	length := sizeField + d.SizeInBytes + crcField
	if offset < 1 || offset > size || length > size-offset {
		return nil, broken("%d bytes at offset %d lie outside the file of %d bytes", d.SizeInBytes, offset, size)
	}
	var version [1]byte
	if _, err := readFull(file, version[:], 0); err != nil {
		return nil, err
	}
	if version[0] != fileVersion {
		return nil, broken("the file has version %d, not %d", version[0], fileVersion)
	}
	frame := make([]byte, length)
	if _, err := readFull(file, frame, offset); err != nil {
		return nil, err
	}
	if stated := binary.BigEndian.Uint32(frame); int64(stated) != d.SizeInBytes {
		return nil, broken("the file states %d bytes at offset %d, the descriptor %d", stated, offset, d.SizeInBytes)
	}
	data, sum := frame[sizeField:length-crcField], binary.BigEndian.Uint32(frame[length-crcField:])
	if crc32.ChecksumIEEE(data) != sum {
		return nil, broken("the checksum of the vector at offset %d does not match", offset)
	}
	return data, nil
}

func readFull(r io.ReaderAt, p []byte, offset int64) (int, error) {
	n, err := r.ReadAt(p, offset)
	if n == len(p) {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		return n, broken("the file ends at byte %d", offset+int64(n))
	}
	return n, err
}

// inFile adds the file to an error that names none.
func inFile(err error, path string) error {
	var f *fault.Error
	if path != "" && errors.As(err, &f) && f.File == "" {
		f.InFile(path)
	}
	return err
}
