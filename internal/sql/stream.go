package sql

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/sql/wire"
)

// ahead is how many files the child may have besides the one that it reads.
const ahead = 1

// Stream is the result of a query. Reading it ends with io.EOF only if it is
// complete. Read and Close must not be called at the same time; what waits in
// Read ends with the context of the query.
type Stream struct {
	engine *Engine
	child  *child
	conn   *wire.Conn
	ctx    context.Context
	cancel context.CancelFunc

	// left is what is left of the data frame being read; err is how it ended.
	left int
	err  error

	// slots holds a token for each file that the child may be given, besides
	// the first one.
	slots chan struct{}
	fed   chan struct{} // closed when no more files are sent
	mu    sync.Mutex
	why   error // why the files ended early
}

// Run begins a query. The first file is asked for at once, and an error of it is
// that of Run; the others one by one, in a goroutine, until the stream is closed,
// and an error of theirs is that of the stream, after the rows of the files
// before. The stream must be closed.
func (e *Engine) Run(ctx context.Context, q Query, files Files) (*Stream, error) {
	if err := e.Available(); err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(files)
	first, err, ok := next()
	if err != nil {
		stop()
		return nil, err
	}
	s, err := e.begin(ctx, q)
	if err != nil {
		if ok {
			first.File.Close()
		}
		stop()
		return nil, err
	}
	go func() {
		defer close(s.fed)
		defer stop()
		if ok {
			s.feed(first, next)
		}
		_ = s.conn.Write(wire.Last, nil) // if it does not arrive the reader knows why
	}()
	return s, nil
}

// begin hands the query to the child.
func (e *Engine) begin(ctx context.Context, q Query) (*Stream, error) {
	conn, c, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{
		engine: e, child: c, conn: conn, ctx: ctx, cancel: cancel,
		slots: make(chan struct{}, ahead+1), fed: make(chan struct{}),
	}
	for range ahead {
		s.slots <- struct{}{}
	}
	context.AfterFunc(ctx, conn.Abort)
	if err := conn.WriteJSON(wire.Query, q); err != nil {
		err = s.broken(err)
		close(s.fed)
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// feed sends the files as they are needed.
func (s *Stream) feed(f File, next func() (File, error, bool)) {
	for more := true; more; {
		err := s.send(f)
		if err == nil {
			// The next file is opened when this one is about to be read.
			select {
			case <-s.slots:
			case <-s.ctx.Done():
				return
			}
			f, err, more = next()
		}
		if err != nil {
			s.mu.Lock()
			s.why = err
			s.mu.Unlock()
			return
		}
	}
}

// errHungUp: the child takes no more files; the reader knows why.
var errHungUp = errors.New("the SQL engine takes no more files")

func (s *Stream) send(f File) error {
	defer f.File.Close()
	if err := s.conn.WriteJSON(wire.File, f, f.File); err != nil {
		return errHungUp
	}
	return nil
}

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	for s.left == 0 {
		if err := s.next(); err != nil {
			s.err = err
			return 0, err
		}
	}
	n, err := s.conn.ReadBody(p[:min(len(p), s.left)])
	s.left -= n
	if err != nil {
		s.err = s.broken(err)
		return n, s.err
	}
	return n, nil
}

// next reads frames up to the next data.
func (s *Stream) next() error {
	kind, size, err := s.conn.ReadHeader()
	if err != nil {
		return s.broken(err)
	}
	if kind == wire.Data {
		s.left = size
		return nil
	}
	body := make([]byte, size)
	for n := 0; n < size; {
		m, err := s.conn.ReadBody(body[n:])
		if err != nil {
			return s.broken(err)
		}
		n += m
	}
	switch kind {
	case wire.Next:
		select {
		case s.slots <- struct{}{}:
			return nil
		default:
			return s.broken(errors.New("it has read more files than it got"))
		}
	case wire.End:
		return s.ending()
	case wire.Fail:
		var f wire.Failure
		if err := json.Unmarshal(body, &f); err != nil {
			return s.broken(err)
		}
		return fault.New(ErrFailed, "%s", f.Reason).InFile(f.File).OnColumn(f.Column)
	}
	return s.broken(errors.New("it does not make sense"))
}

// ending is how a result ends that is complete as far as the child knows.
func (s *Stream) ending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != nil && !errors.Is(s.why, errHungUp) {
		return s.why
	}
	return io.EOF
}

// broken is the failure of a conversation that ended early.
func (s *Stream) broken(cause error) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF) {
		cause = s.child.crashed()
	}
	return fault.Wrap(ErrCrashed, cause, "the SQL engine has crashed").
		WithHint("try again; if it happens again, the log says more")
}

// Close ends the query, however far it is.
func (s *Stream) Close() error {
	if s.child == nil {
		return nil
	}
	s.cancel()
	s.conn.Close()
	<-s.fed
	s.child = nil
	s.engine.done()
	if s.err == nil {
		s.err = errors.New("the result was closed")
	}
	return nil
}
