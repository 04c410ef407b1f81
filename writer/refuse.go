package writer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
)

// refuse moves a file to the rejected ones and takes its name; s.op is held.
// It returns the reason, which the file repeats from now on. Open handles can
// still read it.
func (l *Live) refuse(s *Staged, cause error) error {
	s.dropEarly(context.Background())
	b := s.binding()
	s.mu.Lock()
	slot := s.slot
	s.mu.Unlock()
	if _, err := l.area.reject(slot, rejectionOf(b.key(), cause)); err != nil {
		l.opts.Report("reject", b.key().String(), fault.Wrap(ErrUnsure, err, "cannot move a refused file to the rejected ones"))
	} else {
		slot = ""
	}
	l.mu.Lock()
	l.unbind(s, b.key())
	if b.replaces != nil {
		l.leftovers.leave(b, time.Now())
	}
	l.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result, s.slot = cause, slot; s.state != stateGone {
		s.state = stateRejected
	}
	return cause
}

// keepRejected puts a copy of a file that was refused under a new name among
// the rejected ones; under its old name it stays. s.op is held.
func (l *Live) keepRejected(ctx context.Context, s *Staged, b binding, cause error) {
	err := s.use(ctx, func() error {
		slot, link, err := l.area.adopt(s.file, l.Version(), s.meta())
		if err != nil {
			return err
		}
		link.Close()
		s.mu.Lock()
		s.shared = true
		s.mu.Unlock()
		_, err = l.area.reject(slot, rejectionOf(b.key(), cause))
		return err
	})
	if err != nil {
		l.opts.Report("reject", b.key().String(), fault.Wrap(ErrUnsure, err, "cannot keep a copy of a refused file"))
	}
}

// rejectionOf says why a file was refused, for who finds it later.
func rejectionOf(k key, cause error) rejection {
	r := rejection{Wanted: k.String(), Time: time.Now(), Hint: fault.Hint(cause), Reason: cause.Error()}
	var known *fault.Error
	if errors.As(cause, &known) {
		short := *known
		short.Table, short.Version, short.File, short.Hint = "", nil, "", ""
		r.Reason = short.Error()
	}
	return r
}

// giveUp ends a file at unmount: bytes that were not committed are kept among
// the rejected ones. It returns an error only for a file that was ready to be
// committed; of the others its writer knows, and the report tells.
func (s *Staged) giveUp() error {
	s.op.Lock()
	defer s.op.Unlock()
	s.dropEarly(context.Background())
	b := s.binding()
	s.mu.Lock()
	st, slot, idle := s.state, s.slot, s.size == 0 || !s.touched
	s.mu.Unlock()
	switch {
	case st == stateSealed || st == stateGone || st == stateRejected || st == stateUnsure:
		return nil
	case idle || slot == "" || isMarker(b.name):
		s.live.area.drop(slot)
		return nil
	}
	reason, ready := "unmounted before it was complete", false
	switch {
	case !b.commits():
		reason = "unmounted while it had a temporary name"
	case st == stateComplete:
		reason, ready = "unmounted before it was committed", true
	}
	err := s.live.refuse(s, s.live.fault(ErrIncomplete, b.key().String(), "%s", reason).
		WithHint("its bytes are kept among the rejected files"))
	if ready {
		return err
	}
	s.live.opts.Report("unmount", b.key().String(), err)
	return nil
}

// isMarker reports whether a scratch file is of no use without the program
// that made it.
func isMarker(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "_success", "_metadata", "_common_metadata", ".ds_store", "thumbs.db":
		return true
	}
	return strings.HasPrefix(lower, "._") || strings.HasSuffix(lower, ".crc")
}

// StagedInfo describes one uncommitted file.
type StagedInfo struct {
	Dir, Name string
	Size      int64
	State     string
	Scratch   bool
	Staged    *Staged
}

// Staging lists every file not committed, for .stage and status.json, ordered
// by directory and name.
func (l *Live) Staging() []StagedInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []StagedInfo
	for _, s := range l.all {
		s.mu.Lock()
		if s.state != stateSealed && s.touched {
			out = append(out, StagedInfo{
				Dir: s.bind.place.dir, Name: s.bind.name, Size: s.size, State: s.state.String(),
				Scratch: !s.bind.commits(), Staged: s,
			})
		}
		s.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b StagedInfo) int {
		return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Staged.id, b.Staged.id))
	})
	return out
}

// Rejected lists the refused and interrupted files.
func (l *Live) Rejected(ctx context.Context) ([]RejectedFile, error) { return l.area.rejected() }

// RemoveRejected deletes a rejected file. ErrNotExist.
func (l *Live) RemoveRejected(ctx context.Context, name string) error {
	if l.opts.ReadOnly {
		return l.fault(ErrReadOnly, name, "the mount is read-only")
	}
	err := l.area.removeRejected(name)
	if errors.Is(err, fs.ErrNotExist) {
		return l.fault(ErrNotExist, name, "no such rejected file")
	}
	return err
}
