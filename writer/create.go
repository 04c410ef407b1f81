package writer

import (
	"context"
	"fmt"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// maxNameLen is the longest name that Linux lets a directory entry have.
const maxNameLen = 255

// reserved is the refusal of a name that engines give a meaning of its own.
func (l *Live) reserved(name string) error {
	return l.fault(ErrReserved, name, "the name is reserved for Delta engines").
		WithHint("engines write to the table's own path; here, drop Parquet files")
}

// newName checks that a file may get this name in a directory.
func (l *Live) newName(p place, name string) error {
	shown := joinPath(p.shown, name)
	switch {
	case isReserved(name):
		return l.reserved(name)
	case len(name) > maxNameLen:
		return l.fault(ErrReserved, shown, "the name is longer than %d bytes", maxNameLen)
	case p.scratch && !l.isOwnDir(p):
		return l.fault(ErrNotPartition, shown, "the directory is no partition directory that can be written")
	case !p.scratch && isForeign(name):
		return l.fault(ErrMisfit, shown, "only .parquet files are loaded").
			WithHint("convert it to Parquet, or give it a name that ends in .parquet if it is Parquet")
	}
	return nil
}

// Create makes a new staged file. ErrExist, ErrReadOnly, ErrReserved,
// ErrMisfit for a name of another data format. The caller owns one write
// handle on it.
func (l *Live) Create(ctx context.Context, c Caller, dir, name string) (*Staged, error) {
	if err := l.writable(ctx); err != nil {
		return nil, err
	}
	v, p, err := l.at(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := l.newName(p, name); err != nil {
		return nil, err
	}
	process := l.callers.process(c)
	// A commit under the name may be on its way, of a file that is called
	// otherwise until then.
	defer l.keys.lock(p.key(name))()
	_, taken, err := l.exists(ctx, v, p, name, process)
	if err != nil {
		return nil, err
	}
	errExist := l.fault(ErrExist, joinPath(p.shown, name), "the name is taken")
	if taken {
		return nil, errExist
	}
	s := l.newStaged(binding{place: p, name: name, bound: true, process: process})
	if s.slot, s.file, err = l.area.create(l.Version(), s.meta()); err != nil {
		failed := l.fault(nil, joinPath(p.shown, name), "the file cannot be staged in the table")
		failed.Err = err
		return nil, failed.WithHint("the mount needs to write to the table's directory, and space there")
	}
	s.touched, s.users, s.writers = true, 1, 1
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names[p.key(name)] != nil {
		l.area.drop(s.slot)
		s.file.Close()
		return nil, errExist
	}
	l.bindTo(s, s.bind)
	return s, nil
}

func (l *Live) newStaged(b binding) *Staged {
	return &Staged{id: l.ids.Add(1), live: l, bind: b, label: b.key().String(), modTime: time.Now()}
}

// bindTo makes the binding's name lead to the file, and to no other new file;
// l.mu is held.
func (l *Live) bindTo(s *Staged, b binding) {
	s.bind = b
	s.links++
	k := b.key()
	if b.replaces != nil {
		l.replacing[k] = append(l.replacing[k], s)
	} else {
		if old := l.names[k]; old != nil {
			old.links--
		}
		l.names[k] = s
	}
	l.all[s.id] = s
	s.mu.Lock()
	s.label = k.String()
	s.mu.Unlock()
}

// unbind takes the name away from the file; l.mu is held.
func (l *Live) unbind(s *Staged, k key) {
	if l.names[k] == s {
		delete(l.names, k)
		s.links--
	}
	others := l.replacing[k][:0:0]
	for _, o := range l.replacing[k] {
		if o != s {
			others = append(others, o)
		}
	}
	if len(others) < len(l.replacing[k]) {
		s.links--
	}
	if len(others) > 0 {
		l.replacing[k] = others
	} else {
		delete(l.replacing, k)
	}
	if s.bind.key() == k {
		s.bind.bound = false
	}
	if s.links == 0 {
		delete(l.all, s.id)
	}
}

// want is a thread about to open a committed file for writing. Threads are
// told apart, for each of them looks the name up again. It is the name that
// counts and not the file: another writer may replace the file in between, and
// the kernel does not look a third time.
type want struct {
	thread uint32
	key    key
}

const (
	// wantTTL is how long the kernel may take to look a name up again, and bindTTL
	// to open what it found, on a machine that does something else meanwhile.
	wantTTL  = time.Minute
	bindTTL  = time.Minute
	maxWants = 1000
)

// WantWrite is called when a process opens the committed file f for writing,
// under a name that the kernel does not tell. If the name is in current/, the
// caller's next Lookup of it there binds a fresh staged file to it, and
// WantWrite returns nil (fsnode: ESTALE, the kernel looks up again). A second
// call shows that the file is being opened through a snapshot and returns
// ErrReadOnly.
func (l *Live) WantWrite(ctx context.Context, c Caller, f snapshot.File) error {
	name := joinPath(f.Dir, f.Name)
	if err := l.removable(ctx, name); err != nil {
		return err
	}
	w, now := want{c.PID, key{f.Dir, f.Name}}, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	since, again := l.wants[w]
	if again && now.Sub(since) < wantTTL {
		delete(l.wants, w)
		return l.fault(ErrReadOnly, name, "the file belongs to a snapshot").WithHint("write to its name in current/")
	}
	if len(l.wants) >= maxWants {
		clear(l.wants)
	}
	l.wants[w] = now
	return nil
}

// takeWant reports whether the caller is about to open what has this name for
// writing.
func (l *Live) takeWant(c Caller, k key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := want{c.PID, k}
	since, ok := l.wants[w]
	delete(l.wants, w)
	return ok && time.Since(since) < wantTTL
}

// bindReplacement binds a staged file to the name of a committed one. It has
// the old bytes until it is written.
func (l *Live) bindReplacement(ctx context.Context, p place, name string, process uint32, f snapshot.File) (Node, error) {
	origin, err := l.back.OpenFile(ctx, f)
	if err != nil {
		return Node{}, err
	}
	s := l.newStaged(binding{place: p, name: name, bound: true, replaces: &f, process: process})
	s.origin, s.size, s.modTime = origin, origin.Size(), f.ModTime
	s.written.add(0, origin.Size())
	l.mu.Lock()
	l.bindTo(s, s.bind)
	l.mu.Unlock()
	time.AfterFunc(bindTTL, func() {
		s.op.Lock()
		defer s.op.Unlock()
		s.mu.Lock()
		opened := s.readers+s.writers > 0
		s.mu.Unlock()
		if !opened {
			l.abandon(s)
		}
	})
	return Node{Staged: s, Private: true}, nil
}

// abandon is called when the last writer has gone; s.op is held. A replacement
// that was not committed gives the name back. Its bytes, if it has any of its
// own, stay as scratch under a hidden name beside it, ".<name>.<id>.partial".
func (l *Live) abandon(s *Staged) {
	defer l.burst.nudge()
	b := s.binding()
	if b.replaces == nil || !b.bound {
		return
	}
	s.mu.Lock()
	st, idle := s.state, s.size == 0 || !s.touched
	over := st == stateSealed || st == stateRejected || st == stateUnsure
	if !over {
		s.instead, s.moved = b.replaces, !idle
	}
	s.mu.Unlock()
	if over {
		return
	}
	if idle {
		l.vanish(s, b.key())
		return
	}
	kept := binding{place: b.place, name: fmt.Sprintf(".%s.%d.partial", b.name, s.id), bound: true, process: b.process, partial: true}
	l.mu.Lock()
	lost := !s.bind.bound // its process has just put another file in its place
	if !lost {
		l.unbind(s, b.key())
		l.bindTo(s, kept)
	}
	l.mu.Unlock()
	if lost {
		return
	}
	l.record(s)
}

// vanish takes a name away from a file, and the file with its last name.
// Handles on it go on working.
func (l *Live) vanish(s *Staged, k key) {
	l.mu.Lock()
	l.unbind(s, k)
	last := s.links == 0
	l.mu.Unlock()
	if !last {
		return
	}
	s.mu.Lock()
	slot := s.slot
	drop := s.state != stateSealed && s.state != stateUnsure
	if drop {
		s.state = stateGone
		if s.users == 0 && s.origin != nil {
			s.origin.Close()
			s.origin = nil
		}
	}
	s.mu.Unlock()
	if drop {
		s.dropEarly(context.Background())
		l.area.drop(slot)
	}
}

// renew makes a refused or failed file a new, empty one under its name, if the
// name is still free; s.op is held.
func (l *Live) renew(ctx context.Context, s *Staged) error {
	s.mu.Lock()
	result := s.result
	s.mu.Unlock()
	b := s.binding()
	defer l.keys.lock(b.key())()
	if b = s.binding(); !b.bound {
		v, err := l.view(ctx)
		if err != nil {
			return err
		}
		if _, taken, err := l.exists(ctx, v, b.place, b.name, b.process); err != nil || taken {
			return result
		}
		b.bound, b.replaces = true, nil
	}
	if err := s.clear(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.bind.bound {
		l.bindTo(s, b)
	}
	return nil
}

// clear throws the bytes away. A file of its own is used again, for the disk
// may be full of it.
func (s *Staged) clear() error {
	s.dropEarly(context.Background())
	s.mu.Lock()
	slot, file, reuse := s.slot, s.file, s.slot != "" && s.file != nil && !s.shared
	s.mu.Unlock()
	if reuse {
		if err := file.Truncate(0); err != nil {
			return err
		}
	} else {
		var err error
		if slot, file, err = s.live.area.create(s.live.Version(), s.meta()); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reuse {
		s.live.area.drop(s.slot)
		if s.file != nil {
			s.file.Close()
		}
	}
	s.file, s.slot, s.size, s.written = file, slot, 0, intervals{}
	s.state, s.result, s.retry, s.shared = stateOpen, nil, false, false
	s.changed()
	return nil
}

// record notes on disk what the file is meant to become now. Failing to do so
// harms no more than the name under which a crash would leave it.
func (l *Live) record(s *Staged) {
	s.mu.Lock()
	slot := s.slot
	s.mu.Unlock()
	if slot == "" {
		return
	}
	if err := l.area.note(slot, s.meta()); err != nil {
		l.opts.Report("rename", s.binding().key().String(), fault.Wrap(ErrUnsure, err, "cannot record the new name"))
	}
}
