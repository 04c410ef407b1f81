package writer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
)

// errNotYet is what a backend says of bytes that may still become a file.
var errNotYet = errors.New("not yet a complete file")

// Flush commits a complete file under a data name; empty or scratch files are
// left alone, an incomplete one with no other write handle is ErrIncomplete.
// The result of a commit is remembered and repeated. It is meant for handles
// that write: the flush of a reader says nothing about the file.
func (s *Staged) Flush(ctx context.Context) error {
	s.op.Lock()
	defer s.op.Unlock()
	done, err := s.finish(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if err != nil || done != missing {
		return err
	}
	if s.writers != 1 {
		return nil
	}
	return s.errIncomplete()
}

// Sync makes the bytes durable; a complete data file is committed.
func (s *Staged) Sync(ctx context.Context) error {
	s.op.Lock()
	defer s.op.Unlock()
	done, err := s.finish(ctx)
	if err != nil || done == finished {
		return err
	}
	return s.use(ctx, func() error {
		if s.file == nil {
			return nil
		}
		if err := s.file.Sync(); err != nil {
			return s.poison(err)
		}
		return nil
	})
}

// progress is how far a file has come.
type progress int

const (
	finished progress = iota // committed, or there is nothing to do
	waiting                  // scratch or empty
	missing                  // bytes are missing
)

// finish commits the file if it is complete and has a data name; op is held.
func (s *Staged) finish(ctx context.Context) (progress, error) {
	s.mu.Lock()
	st, result, idle := s.state, s.result, s.size == 0 || !s.touched
	s.mu.Unlock()
	switch st {
	case stateSealed, stateGone:
		return finished, nil
	case statePoisoned, stateRejected, stateUnsure:
		return finished, result
	}
	b := s.binding()
	if !b.commits() || idle {
		return waiting, nil
	}
	complete, err := s.settle(ctx, b)
	switch {
	case isRefusal(err):
		return finished, s.live.refuse(s, err)
	case err != nil:
		return finished, err
	case !complete:
		return missing, nil
	}
	return finished, s.live.commitStaged(ctx, s)
}

// errIncomplete says what is missing; s.mu is held.
func (s *Staged) errIncomplete() error {
	e := s.live.fault(ErrIncomplete, s.label, "the bytes do not end in a Parquet footer")
	if gap := s.written.gap(s.size); gap.from < gap.to {
		e = s.live.fault(ErrIncomplete, s.label, "bytes %d to %d were never written", gap.from, gap.to-1)
	}
	return e.WithHint("the bytes are kept, uncommitted; write the rest, or write the whole file again")
}

// settleIfWhole checks the file where it is bound, if it may be complete, and
// moves it to the rejected files if it is refused.
func (s *Staged) settleIfWhole(ctx context.Context) error {
	b := s.binding()
	if !b.commits() {
		return nil
	}
	var beside func(*verdict, func())
	if s.live.mayEarly(s, b) {
		beside = func(v *verdict, beginSync func()) { s.live.makeEarly(context.WithoutCancel(ctx), s, b, v, beginSync) }
	}
	_, err := s.settleBeside(ctx, b, beside)
	if isRefusal(err) {
		return s.live.refuse(s, err)
	}
	return err
}

// settle finds out whether the file is complete and fits where b says, and
// makes it durable if it is; op is held. A refusal changes nothing here.
func (s *Staged) settle(ctx context.Context, b binding) (complete bool, err error) {
	return s.settleBeside(ctx, b, nil)
}

// settleBeside is settle, and calls beside, if it is given, for a file that fits.
// What beside does after it has called its second argument, it does while the
// file is made durable.
func (s *Staged) settleBeside(ctx context.Context, b binding, beside func(*verdict, func())) (complete bool, err error) {
	s.mu.Lock()
	st, whole, size := s.state, s.written.covers(s.size), s.size
	if st == stateComplete && s.verdict.at == b.place.dir {
		s.mu.Unlock()
		return true, nil
	}
	s.mu.Unlock()
	if st != stateOpen && st != stateComplete || !whole || size < tailSize {
		return false, nil
	}
	ctx = context.WithoutCancel(ctx)
	var v *verdict
	err = s.use(ctx, func() error {
		if err := s.own(ctx, size); err != nil {
			return err
		}
		if !endsInMagic(s.file, size) {
			return errNotYet
		}
		v, err = s.live.judge(ctx, s.file, size, b)
		if err != nil {
			return err
		}
		if err := s.syncBeside(v, beside); err != nil {
			s.dropEarly(ctx)
			return s.poison(err)
		}
		return nil
	})
	if errors.Is(err, errNotYet) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.at = b.place.dir
	if s.verdict = v; s.state != stateGone {
		s.state = stateComplete
	}
	return true, nil
}

func (s *Staged) syncBeside(v *verdict, beside func(*verdict, func())) error {
	if beside == nil {
		return s.file.Sync()
	}
	synced := make(chan error, 1)
	beginSync := sync.OnceFunc(func() { go func() { synced <- s.file.Sync() }() })
	beside(v, beginSync)
	beginSync()
	return <-synced
}

// isRefusal reports whether the error is about the file, not about the way to
// it.
func isRefusal(err error) bool {
	return errors.Is(err, ErrMisfit) || errors.Is(err, ErrIncomplete) || errors.Is(err, ErrNotPartition)
}

// endsInMagic reports whether the file ends as a Parquet file does, plain or
// with an encrypted footer.
func endsInMagic(f *os.File, size int64) bool {
	var tail [4]byte
	if _, err := f.ReadAt(tail[:], size-4); err != nil {
		return false
	}
	return bytes.Equal(tail[:], []byte("PAR1")) || bytes.Equal(tail[:], []byte("PARE"))
}
