package writer

import (
	"context"
	"errors"
	"strings"
)

// move is a rename, understood.
type move struct {
	from, to         place
	oldName, newName string
	process          uint32
}

func (m move) shown() string { return joinPath(m.to.shown, m.newName) }
func (m move) oldKey() key   { return m.from.key(m.oldName) }
func (m move) newKey() key   { return m.to.key(m.newName) }

// Rename moves a staged file, possibly open, or a committed file; onto a data
// name it commits. With noReplace an existing target is ErrExist. When it is
// refused, the file keeps its old name.
func (l *Live) Rename(ctx context.Context, c Caller, dir, name, newDir, newName string, noReplace bool) error {
	if err := l.writable(ctx); err != nil {
		return err
	}
	v, err := l.view(ctx)
	if err != nil {
		return err
	}
	from, err := resolve(ctx, v, dir)
	if err != nil {
		return err
	}
	to, err := resolve(ctx, v, newDir)
	if err != nil {
		return err
	}
	m := move{from, to, name, newName, l.callers.process(c)}
	if m.oldKey() == m.newKey() {
		return nil
	}
	source, err := l.resolveSource(ctx, v, m)
	if err != nil {
		return err
	}
	if source.Dir != nil {
		return l.renameDir(ctx, v, m)
	}
	if err := l.newName(m.to, newName); err != nil {
		return err
	}
	if source.Staged != nil {
		return l.renameStaged(ctx, source.Staged, m, noReplace)
	}
	return l.renameCommitted(ctx, *source.File, m, noReplace)
}

func (l *Live) resolveSource(ctx context.Context, v view, m move) (Node, error) {
	if n, ok := l.lookupOwn(v, m.from, m.oldName, Caller{}, m.process); ok {
		return n, nil
	}
	return l.lookupCommitted(ctx, v, m.from, m.oldName)
}

// moveTarget finds what a rename would replace. It is asked with the lock of
// the target's name held, so that no commit of this mount changes it.
func (l *Live) moveTarget(ctx context.Context, m move, noReplace bool) (Node, error) {
	v, err := l.view(ctx)
	if err != nil {
		return Node{}, err
	}
	n, taken, err := l.exists(ctx, v, m.to, m.newName, m.process)
	switch {
	case err != nil:
		return Node{}, err
	case taken && noReplace:
		return Node{}, l.fault(ErrExist, m.shown(), "the name is taken")
	case n.Dir != nil:
		return Node{}, l.fault(ErrIsDir, m.shown(), "it is a directory")
	case taken && n.File == nil && n.Staged == nil:
		return Node{}, l.fault(ErrExist, m.shown(), "several files have this name").
			WithHint("list the directory for their own names")
	}
	if n.Staged != nil {
		// Not what a file replaces that has this name as a second one.
		if b := n.Staged.binding(); b.key() == m.newKey() {
			n.File = b.replaces
		}
	}
	if n.File != nil {
		return n, l.removable(ctx, m.shown())
	}
	return n, nil
}

// renameStaged gives a staged file another name, and commits it there if it is
// complete. An empty one, and an incomplete one that is still being written,
// takes the name along; a committed file of that name stays until the newcomer
// commits.
func (l *Live) renameStaged(ctx context.Context, s *Staged, m move, noReplace bool) error {
	s.op.Lock()
	defer s.op.Unlock()
	// The old name too: while the file is committed under the new one, nobody
	// may put another in its place and have it dropped.
	defer l.keys.lock(m.oldKey(), m.newKey())()
	if err := l.renamable(s, m); err != nil {
		return err
	}
	s.dropEarly(ctx)
	target, err := l.moveTarget(ctx, m, noReplace)
	if err != nil || target.Staged == s {
		return err
	}
	b := binding{place: m.to, name: m.newName, bound: true, replaces: target.File, process: m.process}
	if old := s.binding(); b.commits() && old.replaces != nil && old.key() == m.oldKey() {
		b.drops = &unlinked{file: *old.replaces, key: m.oldKey(), seen: l.Version()}
	} else if b.commits() {
		b.drops = old.drops
	}
	committed := false
	if b.commits() {
		if committed, err = l.commitMoved(ctx, s, b); err != nil {
			return err
		}
		if !committed && s.isLeft() {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.errIncomplete()
		}
	}
	if target.Staged != nil {
		l.vanish(target.Staged, m.newKey())
	}
	l.mu.Lock()
	if !committed {
		l.bindTo(s, b)
	}
	l.unbind(s, m.oldKey())
	l.mu.Unlock()
	if !committed {
		l.record(s)
	}
	return nil
}

// isLeft reports whether the file has bytes and nobody is writing it.
func (s *Staged) isLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size > 0 && (s.writers == 0 || s.closed)
}

// renamable reports whether the file still has its old name and may take
// another.
func (l *Live) renamable(s *Staged, m move) error {
	s.mu.Lock()
	st, result := s.state, s.result
	s.mu.Unlock()
	l.mu.Lock()
	named := l.names[m.oldKey()] == s || s.bind.bound && s.bind.key() == m.oldKey()
	l.mu.Unlock()
	switch {
	case !named:
		return l.fault(ErrNotExist, m.oldKey().String(), "no such name")
	case st == stateSealed:
		return l.fault(ErrReserved, m.oldKey().String(), "the file is committed under another name").
			WithHint("rename that one")
	case st == statePoisoned || st == stateUnsure:
		return result
	}
	return nil
}

// commitMoved commits the file under the name that b says, if it is complete;
// s.op and the lock of the name are held. A refused file keeps its old name,
// and a copy of it is kept among the rejected ones, since many programs remove
// a temporary file that they cannot rename.
func (l *Live) commitMoved(ctx context.Context, s *Staged, b binding) (committed bool, err error) {
	ctx = context.WithoutCancel(ctx)
	complete, err := s.settle(ctx, b)
	if err == nil && !complete {
		return false, nil
	}
	if err == nil {
		err = l.commitAs(ctx, s, b)
	}
	if isRefusal(err) || errors.Is(err, ErrConflict) {
		l.keepRejected(ctx, s, b, err)
	}
	return err == nil, err
}

// renameDir moves a scratch directory; no other can move.
func (l *Live) renameDir(ctx context.Context, v view, m move) error {
	from, to := m.from.child(v, m.oldName), m.to.child(v, m.newName)
	refused := l.fault(ErrReserved, m.shown(), "directories of the table cannot be renamed").
		WithHint("rename the files one by one")
	taken, err := l.dirExists(ctx, v, to)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.scratchDirs[from.dir] || taken || isReserved(m.newName):
		return refused
	case !to.scratch || !isScratchDir(m.newName) && !l.scratchDirs[m.to.dir]:
		return refused
	case isBelow(to.dir, from.dir):
		return l.fault(ErrReserved, m.shown(), "a directory cannot move into itself")
	case l.names[m.newKey()] != nil:
		return l.fault(ErrNotDir, m.shown(), "it is a file")
	case l.below(to.dir) != "":
		return l.fault(ErrNotEmpty, m.shown(), "the directory is not empty")
	}
	moved := func(dir string) string { return to.dir + strings.TrimPrefix(dir, from.dir) }
	for dir := range l.scratchDirs {
		if isBelow(dir, from.dir) {
			delete(l.scratchDirs, dir)
			l.scratchDirs[moved(dir)] = true
		}
	}
	for k, s := range l.names {
		if isBelow(k.dir, from.dir) {
			delete(l.names, k)
			l.names[key{moved(k.dir), k.name}] = s
			if s.bind.key() == k {
				s.bind.place = placeOf(v, joinPath(to.shown, strings.TrimPrefix(strings.TrimPrefix(k.dir, from.dir), "/")))
			}
		}
	}
	return nil
}

// Link gives a staged file a second name; a data name commits. The node is
// what the new name means.
func (l *Live) Link(ctx context.Context, c Caller, s *Staged, dir, name string) (Node, error) {
	if err := l.writable(ctx); err != nil {
		return Node{}, err
	}
	v, p, err := l.at(ctx, dir)
	if err != nil {
		return Node{}, err
	}
	if err := l.newName(p, name); err != nil {
		return Node{}, err
	}
	process := l.callers.process(c)
	b := binding{place: p, name: name, bound: true, process: process}
	s.op.Lock()
	defer s.op.Unlock()
	defer l.keys.lock(append(l.namesOf(s), b.key())...)()
	_, taken, err := l.exists(ctx, v, p, name, process)
	if err != nil {
		return Node{}, err
	}
	if taken {
		return Node{}, l.fault(ErrExist, joinPath(p.shown, name), "the name is taken")
	}
	if err := l.linkStaged(ctx, s, b); err != nil {
		return Node{}, err
	}
	if v, err = l.view(ctx); err == nil {
		if n, err := l.lookupCommitted(ctx, v, p, name); err == nil {
			return n, nil
		}
	}
	return Node{Staged: s}, nil
}

// namesOf are the names that lead to a new file; s.op is held, so that they
// become no more.
func (l *Live) namesOf(s *Staged) []key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []key
	for k, named := range l.names {
		if named == s {
			out = append(out, k)
		}
	}
	if s.bind.bound && s.bind.replaces != nil {
		out = append(out, s.bind.key())
	}
	return out
}

func (l *Live) linkStaged(ctx context.Context, s *Staged, b binding) error {
	s.mu.Lock()
	st, result := s.state, s.result
	s.mu.Unlock()
	switch st {
	case stateSealed, stateGone, stateRejected:
		return l.fault(ErrReserved, b.key().String(), "a committed file cannot have a second name").WithHint("copy it")
	case statePoisoned, stateUnsure:
		return result
	}
	s.dropEarly(ctx)
	if b.commits() {
		committed, err := l.commitMoved(ctx, s, b)
		if err == nil && !committed {
			s.mu.Lock()
			err = s.errIncomplete()
			s.mu.Unlock()
		}
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.links++
	l.names[b.key()] = s
	return nil
}
