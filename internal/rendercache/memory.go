package rendercache

import (
	"context"
	"fmt"
	"io"
)

// maxInMemory is the length of chunks that may be kept in memory.
const maxInMemory = 16 << 20

// memory is a chunk in memory.
type memory []byte

func inMemory(ctx context.Context, chunk *Chunk) (content, error) {
	m := make(memory, chunk.Length)
	if err := chunk.Render(ctx, m); err != nil {
		return nil, err
	}
	return m, nil
}

// errBeyond: what is rendered does not fit the length that was promised.
var errBeyond = fmt.Errorf("rendered data is longer than promised: %w", io.ErrShortWrite)

// WriteAt implements io.WriterAt.
func (m memory) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m)) || len(p) > len(m)-int(off) {
		return 0, errBeyond
	}
	return copy(m[off:], p), nil
}

func (m memory) readAt(p []byte, off int64) error {
	if copy(p, m[off:]) < len(p) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (m memory) room() (disk, memory int64) { return 0, int64(len(m)) }
func (m memory) close()                     {}
