package writer

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"golang.org/x/sys/unix"
)

// tailSize is the part at the end of a Parquet file that makes it one: the
// length of the footer and the magic. A write elsewhere in a file that has all
// its bytes is checked when it is flushed.
const tailSize = 8

// WriteAt stores bytes. The write that completes the file validates it and
// makes it durable, and returns ErrMisfit or ErrIncomplete if it is refused.
func (s *Staged) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	s.op.Lock()
	defer s.op.Unlock()
	if err := s.changeable(); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n := 0
	err := s.use(ctx, func() (err error) {
		n, err = s.store(ctx, p, off)
		return err
	})
	return n, err
}

// store writes p and checks the file if p may have completed it; op is held.
func (s *Staged) store(ctx context.Context, p []byte, off int64) (int, error) {
	s.dropEarly(ctx)
	s.mu.Lock()
	size := s.size
	s.mu.Unlock()
	if err := s.own(ctx, size); err != nil {
		return 0, s.poison(err)
	}
	n, err := s.file.WriteAt(p, off)
	s.mu.Lock()
	wasWhole := s.written.covers(s.size)
	end := off + int64(n)
	s.written.add(off, end)
	s.size = max(s.size, end)
	s.changed()
	tail := !wasWhole || end > s.size-tailSize
	s.mu.Unlock()
	if err != nil {
		return n, s.poison(err)
	}
	if !tail {
		return n, nil
	}
	if err := s.settleIfWhole(ctx); err != nil {
		return 0, err
	}
	return n, nil
}

// Truncate sets the size; a same-size truncate changes nothing. Truncating a
// refused file to nothing makes it a new one.
func (s *Staged) Truncate(ctx context.Context, size int64) error {
	s.op.Lock()
	defer s.op.Unlock()
	s.mu.Lock()
	same, st, old := size == s.size, s.state, s.size
	anew := size == 0 && (st == stateRejected || st == statePoisoned && s.retry)
	s.mu.Unlock()
	if anew {
		return s.live.renew(ctx, s)
	}
	if same && st != statePoisoned && st != stateRejected {
		if st == stateOpen {
			return s.settleIfWhole(ctx)
		}
		return nil
	}
	if err := s.changeable(); err != nil {
		return err
	}
	s.dropEarly(ctx)
	return s.use(ctx, func() error {
		if err := s.own(ctx, min(size, old)); err != nil {
			return s.poison(err)
		}
		if err := s.file.Truncate(size); err != nil {
			return err
		}
		s.mu.Lock()
		s.written.cut(size)
		s.size = size
		s.changed()
		s.mu.Unlock()
		return s.settleIfWhole(ctx)
	})
}

// Allocate reserves space (fallocate without flags or with KEEP_SIZE). What
// it adds to the size is a hole.
func (s *Staged) Allocate(ctx context.Context, off, length int64, keepSize bool) error {
	s.op.Lock()
	defer s.op.Unlock()
	if err := s.changeable(); err != nil {
		return err
	}
	s.dropEarly(ctx)
	s.mu.Lock()
	size := s.size
	s.mu.Unlock()
	return s.use(ctx, func() error {
		if err := s.own(ctx, size); err != nil {
			return s.poison(err)
		}
		err := unix.Fallocate(int(s.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, off, length)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if keepSize || off+length <= size {
			return nil
		}
		if err := s.file.Truncate(off + length); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.size = off + length
		s.changed()
		return nil
	})
}

// changeable returns why the bytes cannot change; op is held.
func (s *Staged) changeable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case stateSealed:
		return s.errSealed()
	case statePoisoned, stateRejected, stateUnsure:
		return s.result
	}
	return nil
}

// changed notes that the bytes changed; s.mu is held.
func (s *Staged) changed() {
	s.touched, s.closed = true, false
	s.modTime, s.timeSet = time.Now(), false
	s.verdict = nil
	if s.state == stateComplete {
		s.state = stateOpen
	}
}

// poison makes a failed write final: a file with a hole where bytes should be
// must never commit. It returns the failure, for people.
func (s *Staged) poison(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := s.live.fault(nil, s.label, "the bytes cannot be stored, and the file will not be committed").
		WithHint("see to the file system of the table, then write the whole file again")
	failed.Err = err
	if s.result = failed; s.state != stateGone {
		s.state = statePoisoned
	}
	return failed
}

// own gives the file bytes of its own, of which the first keep are those of
// the committed file that it replaces; op is held. They count as written.
func (s *Staged) own(ctx context.Context, keep int64) error {
	s.mu.Lock()
	have, shared, file, origin, oldSlot := s.slot != "", s.shared, s.file, s.origin, s.slot
	s.mu.Unlock()
	if have && !shared {
		return s.reopenIfClosed()
	}
	slot, own, err := s.live.area.create(s.live.Version(), s.meta())
	if err != nil {
		return err
	}
	if keep > 0 {
		from, old := io.ReaderAt(origin), file
		if have {
			from = file
		} else if origin != nil {
			old = origin.File()
		}
		if err = copyBytes(own, from, old, keep); err != nil {
			own.Close()
			s.live.area.drop(slot)
			return err
		}
	}
	if have {
		s.live.area.drop(oldSlot)
		file.Close()
	}
	if origin != nil {
		origin.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slot, s.file, s.origin, s.shared = slot, own, nil, false
	s.written.add(0, keep)
	s.written.cut(keep)
	s.size = keep
	if s.state == stateGone {
		s.live.area.drop(slot) // it lives with its handles alone
	}
	return nil
}

// reopenIfClosed opens a staged file that lost its last handle meanwhile.
func (s *Staged) reopenIfClosed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return nil
	}
	return fault.New(ErrNotExist, "the staged file is not open")
}

// copyBytes copies the first n bytes, sharing blocks where the file system
// can.
func copyBytes(to *os.File, from io.ReaderAt, fromFile *os.File, n int64) error {
	if fromFile != nil && unix.IoctlFileClone(int(to.Fd()), int(fromFile.Fd())) == nil {
		return to.Truncate(n)
	}
	if fromFile != nil {
		from = fromFile
	}
	_, err := io.Copy(to, io.NewSectionReader(from, 0, n))
	return err
}
