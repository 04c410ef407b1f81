package writer

import (
	"context"
	"errors"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// Mkdir makes a partition or scratch directory, in this mount only until a
// file in it is committed. ErrNotPartition, ErrReserved, ErrExist.
func (l *Live) Mkdir(ctx context.Context, dir, name string) error {
	if err := l.writable(ctx); err != nil {
		return err
	}
	v, p, err := l.at(ctx, dir)
	if err != nil {
		return err
	}
	if isReserved(name) {
		return l.reserved(name)
	}
	child, err := p.enter(ctx, v, name)
	if err != nil {
		return err
	}
	if child.scratch && (!p.scratch && !isScratchDir(name) || p.scratch && !l.isOwnDir(p)) {
		return l.errNotPartition(p, name)
	}
	taken, err := l.dirExists(ctx, v, child)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if taken || l.scratchDirs[child.dir] || l.made[child.dir] != "" || l.names[p.key(name)] != nil {
		return l.fault(ErrExist, child.shown, "the name is taken")
	}
	if child.scratch {
		l.scratchDirs[child.dir] = true
	} else {
		l.made[child.dir] = name
	}
	return nil
}

// errNotPartition says what a directory would have to be called.
func (l *Live) errNotPartition(p place, name string) error {
	e := l.fault(ErrNotPartition, joinPath(p.shown, name), "the table has no partition column for a directory here")
	if p.next != nil {
		_, cause := snapshot.ParsePartition(*p.next, name)
		e = fault.Wrap(ErrNotPartition, cause, "only a directory of partition column %q can be made here", p.next.Name).
			AtTable(l.back.Name()).InFile(joinPath(p.shown, name))
		return e.WithHint("name it %s=<value>, or write the files into current/ one by one", snapshot.EscapeHive(p.next.Name))
	}
	return e.WithHint("drop the files one by one; directories whose name starts with a dot are scratch")
}

// dirExists reports whether the table holds the directory (or, in its place, a
// file).
func (l *Live) dirExists(ctx context.Context, v view, p place) (bool, error) {
	parent, name := splitPath(p.dir)
	_, err := v.Lookup(ctx, parent, name)
	switch {
	case err == nil, errors.Is(err, snapshot.ErrAmbiguous):
		return true, nil
	case errors.Is(err, snapshot.ErrNotExist):
		return false, nil
	}
	return false, err
}

// Rmdir removes an empty directory, after committing the pending unlinks below
// it. ErrNotEmpty.
func (l *Live) Rmdir(ctx context.Context, dir, name string) error {
	if err := l.writable(ctx); err != nil {
		return err
	}
	v, p, err := l.at(ctx, dir)
	if err != nil {
		return err
	}
	child, err := p.enter(ctx, v, name)
	if err != nil {
		return err
	}
	existed, err := l.dirExists(ctx, v, child)
	if err != nil {
		return err
	}
	if !existed && !l.isOwnDir(child) {
		return l.fault(ErrNotExist, child.shown, "no such directory")
	}
	if err := l.burst.flush(ctx, func(u unlinked) bool { return isBelow(u.key.dir, child.dir) }); err != nil {
		return err
	}
	if v, err = l.view(ctx); err != nil {
		return err
	}
	left, err := l.dirExists(ctx, v, child)
	if err != nil {
		return err
	}
	notEmpty := l.fault(ErrNotEmpty, child.shown, "the directory is not empty")
	if left {
		return notEmpty
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if what := l.below(child.dir); what != "" {
		return notEmpty.WithHint("remove %s first; it is not committed, and not listed", what)
	}
	delete(l.made, child.dir)
	delete(l.scratchDirs, child.dir)
	return nil
}

// below names something of this mount in the directory; l.mu is held.
func (l *Live) below(dir string) string {
	for k := range l.names {
		if isBelow(k.dir, dir) {
			return k.String()
		}
	}
	for other := range l.made {
		if other != dir && isBelow(other, dir) {
			return other
		}
	}
	for other := range l.scratchDirs {
		if other != dir && isBelow(other, dir) {
			return other
		}
	}
	return ""
}

// SyncDir commits pending unlinks.
func (l *Live) SyncDir(ctx context.Context, dir string) error {
	return l.burst.flush(ctx, everywhere)
}
