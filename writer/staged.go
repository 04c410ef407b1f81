package writer

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// Staged is one file being written in this mount. It is safe for concurrent
// use. It lives, readable, while a handle or the kernel knows it, also after
// it was committed or unlinked.
type Staged struct {
	id   uint64
	live *Live

	// op lets one write, check or commit at a time through. It comes before
	// every other lock.
	op sync.Mutex

	// bind, links and sealedKey are guarded by Live.mu. links counts the names
	// that lead to the file; sealedKey is the one it was committed under.
	bind      binding
	links     int
	sealedKey key

	// mu guards what follows; it is held for moments.
	mu    sync.Mutex
	state state
	// slot is the name of the file in the staging area, "" before it has
	// bytes of its own; file is open while somebody has the file open.
	slot  slot
	file  *os.File
	users int
	// origin has the bytes until slot is there or, with shared, until the
	// file in slot is no other file too.
	origin committedReader
	shared bool

	label   string // for messages
	size    int64
	written intervals
	modTime time.Time
	// timeSet: the writer gave modTime. touched: changed since it was bound.
	timeSet, touched bool

	readers, writers int
	// closed: no write since the last close(2) of a handle that writes. The
	// kernel tells the end of a handle itself some time later.
	closed bool
	// closedAt is when the last handle was closed.
	closedAt time.Time
	// verdict of a complete file; result of one that failed. retry says that
	// every handle from before a failed write is closed.
	verdict *verdict
	result  error
	retry   bool
	// early is its append, made ready before it is closed.
	early *early
	// What a sealed file has become: its add.path, how to open it, and in
	// which version.
	addPath  string
	become   func(ctx context.Context) (committedReader, error)
	sealedAt int64
	// instead is the committed file that an abandoned replacement gave its name
	// back to. moved says that nobody has looked it up by its new name yet.
	instead *snapshot.File
	moved   bool
}

// state is where a staged file stands.
type state int

const (
	// stateOpen: being written, empty or incomplete.
	stateOpen state = iota
	// stateComplete: checked, durable, not committed.
	stateComplete
	// stateSealed: committed.
	stateSealed
	// statePoisoned: a write failed; result says how.
	statePoisoned
	// stateRejected: refused, the bytes are among the rejected files.
	stateRejected
	// stateUnsure: the commit may exist; nothing is done any more.
	stateUnsure
	// stateGone: unlinked, or given up unchanged.
	stateGone
)

var stateNames = [...]string{"open", "complete", "committed", "failed", "rejected", "unsure", "removed"}

func (s state) String() string { return stateNames[s] }

// binding is what a staged file is meant to become.
type binding struct {
	place place
	name  string
	// bound is false when no name leads to the file.
	bound bool
	// replaces is the committed file whose place it takes; only process sees
	// it until then. Without it the file is new, and process made it.
	replaces *snapshot.File
	process  uint32
	// drops is a committed file that goes with the commit too: the one whose
	// place the file was to take before it was renamed.
	drops *unlinked
	// partial says that the name is the one under which the bytes of a
	// replacement stayed that was not finished.
	partial bool
}

func (b binding) key() key { return b.place.key(b.name) }

// commits reports whether the file becomes data where it is.
func (b binding) commits() bool {
	return b.bound && (b.replaces != nil || !b.place.scratch && isData(b.name))
}

// ID is unique in this process and never 0.
func (s *Staged) ID() uint64 { return s.id }

// Attr returns size and times.
func (s *Staged) Attr() Attr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Attr{Size: s.size, ModTime: s.modTime}
}

// Committed is the committed file that the staged one has become, or that it
// gave its name back to. Who wants to write it must ask as for any committed
// file.
func (s *Staged) Committed(ctx context.Context) (snapshot.File, bool) {
	s.mu.Lock()
	path, sealed, instead := s.addPath, s.state == stateSealed, s.instead
	s.mu.Unlock()
	if instead != nil {
		return *instead, true
	}
	if !sealed {
		return snapshot.File{}, false
	}
	v, err := s.live.view(ctx)
	if err != nil {
		return snapshot.File{}, false
	}
	f, ok, err := v.ByPath(ctx, path)
	return f, ok && err == nil
}

// Settled reports whether the file is committed or gone, and neither open nor
// found by any name: whoever asks for its name gets another one.
func (s *Staged) Settled() bool {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.state == stateSealed || s.state == stateGone) && s.links == 0 && s.users == 0
}

// OpenHandle counts an open; CloseHandle undoes it. Closing commits nothing.
// ErrSealed when a committed file is opened for writing, and ErrNotExist when a
// replacement was given up since it was looked up: the name means another file
// now, see Committed.
func (s *Staged) OpenHandle(ctx context.Context, write bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if write && s.state == stateSealed {
		return s.errSealed()
	}
	if write && s.moved {
		return s.live.fault(ErrNotExist, s.label, "the file has another name now")
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	if write {
		s.writers++
	} else {
		s.readers++
	}
	return nil
}

// CloseHandle undoes OpenHandle. The last writer of a replacement gives its
// name back to the committed file.
func (s *Staged) CloseHandle(write bool) {
	s.mu.Lock()
	if write {
		s.writers--
	} else {
		s.readers--
	}
	last := write && s.writers == 0
	s.retry = s.retry || last && s.state == statePoisoned
	s.mu.Unlock()
	if last {
		s.op.Lock()
		s.dropEarly(context.Background())
		s.live.abandon(s)
		s.op.Unlock()
	}
	s.mu.Lock()
	s.release()
	unfinished := false
	if s.readers+s.writers == 0 {
		s.closedAt = time.Now()
		unfinished = s.touched && s.mayFinish()
	}
	s.mu.Unlock()
	if unfinished {
		s.live.unfinished.look(0)
	}
}

// acquire opens the bytes for one more user; s.mu is held.
func (s *Staged) acquire(ctx context.Context) error {
	if s.users > 0 {
		s.users++
		return nil
	}
	var err error
	switch {
	case s.state == stateSealed:
		s.origin, err = s.become(ctx)
	case s.state == stateGone || s.state == stateRejected:
		return s.live.fault(ErrNotExist, s.label, "the file is gone")
	case s.slot != "":
		s.file, err = s.live.area.reopen(s.slot)
	}
	if err != nil {
		return err
	}
	s.users++
	return nil
}

// release undoes acquire; s.mu is held. A replacement without bytes of its own
// keeps the committed file open, for that is where they come from.
func (s *Staged) release() {
	if s.users--; s.users > 0 {
		return
	}
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	if s.origin != nil && (s.slot != "" || s.state != stateOpen) {
		s.origin.Close()
		s.origin = nil
	}
}

// use calls fn while the bytes are open.
func (s *Staged) use(ctx context.Context, fn func() error) error {
	s.mu.Lock()
	err := s.acquire(ctx)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		s.release()
		s.mu.Unlock()
	}()
	return fn()
}

// ReadAt reads staged bytes (io.ReaderAt).
func (s *Staged) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.readAt(p, off)
	if errors.Is(err, os.ErrClosed) {
		return s.readAt(p, off) // the bytes have just moved to a file of their own
	}
	return n, err
}

func (s *Staged) readAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	size, file, origin := s.size, s.file, s.origin
	s.mu.Unlock()
	if off >= size {
		return 0, io.EOF
	}
	short := int64(len(p)) > size-off
	if short {
		p = p[:size-off]
	}
	n, err := readBytes(file, origin, p, off)
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

func readBytes(file *os.File, origin committedReader, p []byte, off int64) (int, error) {
	var from io.ReaderAt
	switch {
	case file != nil:
		from = file
	case origin != nil:
		from = origin
	default:
		return 0, errors.New("staged file has no bytes open")
	}
	n, err := from.ReadAt(p, off)
	if n == len(p) {
		err = nil
	}
	return n, err
}

// SetModTime keeps the writer's modification time for add.tags; after the
// commit it changes nothing.
func (s *Staged) SetModTime(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == stateOpen || s.state == stateComplete {
		s.modTime, s.timeSet = t, true
	}
}

// binding returns what the file is meant to become.
func (s *Staged) binding() binding {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	return s.bind
}

func (s *Staged) errSealed() *fault.Error {
	return s.live.fault(ErrSealed, s.label, "the file is committed and cannot change").
		WithHint("open it again by its name to replace it")
}

// meta is what is recorded about the file; op is held.
func (s *Staged) meta() stagedMeta {
	b := s.binding()
	return stagedMeta{Dir: b.place.dir, Name: b.name}
}
