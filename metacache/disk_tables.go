package metacache

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/dgraph-io/ristretto/v2/z"
	"google.golang.org/protobuf/proto"
)

// Tables of this size take 12 MB to build, and a million files twenty of them.
// A block, badger's unit of reading, is at least one value.
const (
	tableBytes = 4 << 20
	tableBlock = 32 << 10
	// tableLevel is where the tables lie: deep levels have no overlaps, so a
	// key is looked for in one table only.
	tableLevel = 6
)

// tableWriter writes a badger database that is opened read-only ever after.
//
// It builds the tables with badger's own builder and writes them as plain
// files. A badger that is open for writing instead maps its files into memory
// before they have room on the disk, so that a full disk kills the process
// (SIGBUS); here it is an error.
type tableWriter struct {
	dir string
	// ts is the timestamp of all keys.
	ts uint64
	// room is asked before n more bytes are written.
	room func(n int) error
	// pool has the memory that a table is built in, buf is for its bytes.
	pool *z.AllocatorPool
	buf  []byte
	// sealed are the files so far.
	sealed  []sealedFile
	changes []*pb.ManifestChange
}

// tableStream writes the tables with one kind of keys, in ascending order.
type tableStream struct {
	*tableWriter
	kind    byte
	builder *table.Builder
}

func (w *tableWriter) stream(kind byte) *tableStream { return &tableStream{tableWriter: w, kind: kind} }

// put appends a value, with its checksum behind it. It returns the value's
// memory, to be used again.
func (s *tableStream) put(number int, value []byte) ([]byte, error) {
	if s.builder == nil {
		s.builder = table.NewTableBuilder(table.Options{TableSize: tableBytes, BlockSize: tableBlock, AllocPool: s.pool})
	}
	key := tableKey(s.kind, number)
	value = binary.BigEndian.AppendUint32(value, valueSum(key, value))
	s.builder.Add(y.KeyWithTs(key, s.ts), y.ValueStruct{Value: value}, 0)
	if s.builder.ReachedCapacity() {
		return value[:0], s.flush()
	}
	return value[:0], nil
}

// flush writes what was put since the last one as a table.
func (s *tableStream) flush() error {
	if s.builder == nil {
		return nil
	}
	built := s.builder.Done()
	s.buf = slices.Grow(s.buf[:0], built.Size)[:built.Size]
	built.Copy(s.buf)
	s.discard()
	id := uint64(len(s.changes) + 1)
	if err := s.write(table.IDToFilename(id), s.buf); err != nil {
		return err
	}
	s.changes = append(s.changes, &pb.ManifestChange{Op: pb.ManifestChange_CREATE, Id: id, Level: tableLevel})
	return nil
}

// discard gives up what was not flushed.
func (s *tableStream) discard() {
	if s.builder != nil {
		s.builder.Close()
		s.builder = nil
	}
}

func (w *tableWriter) write(name string, data []byte) error {
	if err := w.room(len(data)); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	w.sealed = append(w.sealed, sealedFile{Name: name, Size: int64(len(data)), CRC: crc32.Checksum(data, castagnoli)})
	return err
}

// finish writes the list of tables as badger reads it: a magic number with a
// version, then the length, the checksum and the bytes of one set of changes.
func (w *tableWriter) finish() error {
	set, err := proto.Marshal(&pb.ManifestChangeSet{Changes: w.changes})
	if err != nil {
		return err
	}
	const version = 8
	data := binary.BigEndian.AppendUint32([]byte("Bdgr"), version)
	data = binary.BigEndian.AppendUint32(data, uint32(len(set)))
	data = binary.BigEndian.AppendUint32(data, crc32.Checksum(set, castagnoli))
	return w.write(badger.ManifestFilename, append(data, set...))
}

func tableKey(kind byte, number int) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, uint64(number))
}

// valueSum is over key and value, so that a value does not pass for another.
func valueSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// checkValue takes the checksum off a value.
func checkValue(key, value []byte) ([]byte, error) {
	n := len(value) - crc32.Size
	if n < 0 || binary.BigEndian.Uint32(value[n:]) != valueSum(key, value[:n]) {
		return nil, damaged(nil, "the value of %q has a wrong checksum", key)
	}
	return value[:n], nil
}
