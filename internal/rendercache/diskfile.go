package rendercache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"syscall"
	"time"
)

// A file has a header of headerSize bytes, then the chunk:
//
//	magic | key | length | written | CRC-32C of what was written | CRC-32C of the header
//
// What was written ends at written; zeros follow up to the length.
const (
	magic      = "deltafs rendered 1"
	headerSize = 4096
	headerUsed = len(magic) + len(Key{}) + 8 + 8 + 4
)

// errDamaged: the file is not the one that was written.
var errDamaged = errors.New("damaged file of rendered data")

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// diskFile is a chunk in a file.
type diskFile struct {
	file  *os.File
	bytes int64
	// named says that it is in the cache's directory.
	named bool
}

func (f *diskFile) readAt(p []byte, off int64) error {
	n, err := f.file.ReadAt(p, headerSize+off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (f *diskFile) room() (disk, memory int64) { return f.bytes, 0 }

// close notes when the file was last used: those used longest ago go first.
func (f *diskFile) close() {
	if f.named {
		touch(f.file, time.Now())
	}
	f.file.Close()
}

// sealed checks that a file is complete and what it was when it was written.
func sealed(f *os.File, chunk *Chunk) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != headerSize+chunk.Length {
		return errDamaged
	}
	var have [headerSize]byte
	if _, err := f.ReadAt(have[:], 0); err != nil {
		return err
	}
	written := int64(binary.LittleEndian.Uint64(have[headerUsed-12:]))
	if written < 0 || written > chunk.Length {
		return errDamaged
	}
	sum, err := sumOf(f, written)
	if err != nil {
		return err
	}
	if !bytes.Equal(have[:], header(chunk, written, sum)) {
		return errDamaged
	}
	return nil
}

// seal writes the header, behind which so many bytes were written.
func seal(f *os.File, chunk *Chunk, written int64) error {
	sum, err := sumOf(f, written)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(header(chunk, written, sum), 0)
	return err
}

func header(chunk *Chunk, written int64, sum uint32) []byte {
	b := append([]byte(magic), chunk.Key[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(chunk.Length))
	b = binary.LittleEndian.AppendUint64(b, uint64(written))
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
	return append(b, make([]byte, headerSize-len(b))...)
}

func sumOf(f *os.File, written int64) (uint32, error) {
	h := crc32.New(castagnoli())
	n, err := io.CopyBuffer(h, io.NewSectionReader(f, headerSize, written), make([]byte, 256<<10))
	if err == nil && n < written {
		err = errDamaged
	}
	return h.Sum32(), err
}

// blocks is what a file takes on disk.
func blocks(info os.FileInfo) int64 {
	const block = 512
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * block
	}
	return info.Size()
}

// diskWriter writes a chunk behind the header and asks for room on the way.
type diskWriter struct {
	file   *os.File
	length int64
	room   func() error

	written, asked int64
}

// askEvery is after how many bytes it is asked whether there is still room.
const askEvery = 8 << 20

// WriteAt implements io.WriterAt, for one writer at a time.
func (w *diskWriter) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off > w.length || int64(len(p)) > w.length-off {
		return 0, errBeyond
	}
	if w.asked -= int64(len(p)); w.asked < 0 {
		if err := w.room(); err != nil {
			return 0, err
		}
		w.asked = askEvery
	}
	n, err := w.file.WriteAt(p, headerSize+off)
	w.written = max(w.written, off+int64(n))
	if err != nil {
		err = fmt.Errorf("%w: %w", errDisk, err)
	}
	return n, err
}
