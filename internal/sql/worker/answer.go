//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/internal/sql/wire"
)

// query is one that is being answered.
type query struct {
	sql.Query
	ctx  context.Context
	conn *wire.Conn
	db   *connection
	// left is how many rows may still be written; negative is no limit.
	left int64
}

// source is a file as it came, to be closed when it was read.
type source struct {
	sql.File
	err error
}

// path is where the engine finds the file.
func (s *source) path() string { return fmt.Sprintf("%s%d", descriptors, s.File.File.Fd()) }

// answer serves one conversation.
func answer(ctx context.Context, e *engine, socket *os.File) {
	conn, err := wire.NewConn(socket)
	if err != nil {
		return // the peer sees the end
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := serve(ctx, cancel, e, conn); err != nil && ctx.Err() == nil {
		_ = conn.WriteJSON(wire.Fail, failure(err)) // the peer may have hung up
	}
}

func failure(err error) wire.Failure {
	f := wire.Failure{Reason: err.Error()}
	var known *fault.Error
	if errors.As(err, &known) {
		f = wire.Failure{File: known.File, Column: known.Column, Reason: known.Reason}
	}
	return f
}

func serve(ctx context.Context, cancel context.CancelFunc, e *engine, conn *wire.Conn) error {
	kind, body, err := conn.Read()
	if err != nil || kind != wire.Query {
		return errors.Join(errors.New("no query came"), err)
	}
	q := &query{ctx: ctx, conn: conn}
	if err := json.Unmarshal(body, &q.Query); err != nil {
		return fmt.Errorf("the query: %w", err)
	}
	q.left = q.Limit
	if q.db, err = e.connect(); err != nil {
		return err
	}
	defer q.db.close()
	defer context.AfterFunc(ctx, q.db.interrupt)()
	sources := make(chan source)
	received := make(chan struct{})
	go func() {
		defer close(received)
		q.receive(sources)
		cancel() // the peer has hung up
	}()
	err = q.write(sources)
	if err == nil {
		err = conn.Write(wire.End, nil)
	}
	if err != nil && ctx.Err() == nil {
		_ = conn.WriteJSON(wire.Fail, failure(err)) // the peer may have hung up
	}
	conn.Abort()
	cancel()
	<-received
	return nil
}

// receive takes files in until the peer hangs up. It ends when the conversation
// does.
func (q *query) receive(to chan<- source) {
	open := true
	for {
		kind, body, err := q.conn.Read()
		if err != nil {
			return
		}
		switch {
		case kind == wire.Last && open:
			open = false
			close(to)
		case kind == wire.File && open:
			s := source{}
			s.File.File, s.err = q.conn.TakeFile()
			if s.err == nil {
				s.err = json.Unmarshal(body, &s.File)
			}
			select {
			case to <- s:
			case <-q.ctx.Done():
				s.File.File.Close()
			}
		default:
			return
		}
	}
}

// write writes the result.
func (q *query) write(sources <-chan source) error {
	switch q.Format {
	case sql.CSV, sql.JSONL:
		return q.writeText(sources)
	case sql.Parquet:
		return q.writeParquet(sources)
	}
	return fmt.Errorf("no such format: %q", q.Format)
}

// next returns the next file; false at the end of them.
func (q *query) next(sources <-chan source) (source, bool, error) {
	select {
	case s, ok := <-sources:
		return s, ok, s.err
	case <-q.ctx.Done():
		return source{}, false, q.ctx.Err()
	}
}
