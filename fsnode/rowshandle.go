package fsnode

import (
	"bufio"
	"context"
	"io"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// rowStream is text that is read once, from its beginning on.
type rowStream interface {
	io.Reader
	io.Closer
}

// rowsBuffer is how much text is read at a time.
const rowsBuffer = 128 << 10

// rowsHandle reads rows as text. They come in order: a read further on skips what
// is between, and one further back than the last read begins anew, which gives
// the same text.
type rowsHandle struct {
	ctx    context.Context
	cancel context.CancelFunc
	start  func(context.Context) (rowStream, error)

	// turn is held by whoever reads; it guards the rest.
	turn   chan struct{}
	stream rowStream // nil before it was begun and after it was given up
	text   *bufio.Reader
	stop   context.CancelFunc
	// last is what was read last; it ends at the offset next.
	last []byte
	next int64
	// end is why nothing follows.
	end error
}

func newRowsHandle(ctx context.Context, start func(context.Context) (rowStream, error)) *rowsHandle {
	h := &rowsHandle{start: start, turn: make(chan struct{}, 1)}
	h.ctx, h.cancel = context.WithCancel(ctx)
	return h
}

// release ends the query, and whoever waits for it.
func (h *rowsHandle) release() {
	h.cancel()
	h.turn <- struct{}{}
	h.giveUp()
	<-h.turn
}

// giveUp forgets the stream and how far it was.
func (h *rowsHandle) giveUp() {
	if h.stream != nil {
		h.stop()
		h.stream.Close()
	}
	h.stream, h.text, h.last, h.next, h.end = nil, nil, nil, 0, nil
}

// begin starts the text anew and waits for its first byte.
func (h *rowsHandle) begin(ctx context.Context) error {
	h.giveUp()
	run, stop := context.WithCancel(h.ctx)
	undisturbed := context.AfterFunc(ctx, stop)
	stream, err := h.start(run)
	if err == nil {
		h.stream, h.stop, h.text = stream, stop, bufio.NewReaderSize(stream, rowsBuffer)
		if _, err = h.text.Peek(1); err == io.EOF {
			err = nil
		}
	}
	if !undisturbed() {
		err = ctx.Err()
	}
	if err != nil {
		stop()
		h.giveUp()
	}
	return err
}

func (h *rowsHandle) read(ctx context.Context, buf []byte, off int64) (fuse.ReadResult, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := h.seek(ctx, off); err != nil {
		return nil, err
	}
	if back := h.next - off; back > 0 {
		return fuse.ReadResultData(buf[:copy(buf, h.last[int64(len(h.last))-back:])]), nil
	}
	n, err := h.fill(ctx, buf)
	if n == 0 && err != nil && err != io.EOF {
		return nil, err
	}
	return fuse.ReadResultData(buf[:n]), nil
}

// seek goes to an offset that is to be read: one of those read last, or next.
func (h *rowsHandle) seek(ctx context.Context, off int64) error {
	if h.stream == nil || off < h.next-int64(len(h.last)) {
		if err := h.begin(ctx); err != nil {
			return err
		}
	}
	var skipped []byte
	for h.next < off && h.end == nil {
		if skipped == nil {
			skipped = make([]byte, rowsBuffer)
		}
		if _, err := h.fill(ctx, skipped[:min(off-h.next, rowsBuffer)]); err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// fill reads on. Less than was asked for is the end, and an error comes after
// what was read before it.
func (h *rowsHandle) fill(ctx context.Context, buf []byte) (int, error) {
	if h.end != nil {
		return 0, h.end
	}
	if len(buf) == 0 {
		return 0, nil
	}
	undisturbed := context.AfterFunc(ctx, h.stop)
	n, err := io.ReadFull(h.text, buf)
	if !undisturbed() {
		// The query is given up, and begins anew with the next read.
		h.giveUp()
		return 0, ctx.Err()
	}
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	h.end = err
	h.last = append(h.last[:0], buf[:n]...)
	h.next += int64(n)
	return n, err
}
