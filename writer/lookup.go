package writer

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deltafs/deltafs/snapshot"
)

// Lookup resolves a name. While a replacement is being written, the name means
// the staged file for the writing process only. ErrNotExist; ErrReserved for
// names that engines would write their log to.
func (l *Live) Lookup(ctx context.Context, c Caller, dir, name string) (Node, error) {
	if strings.EqualFold(name, "_delta_log") {
		return Node{}, l.reserved(name)
	}
	v, p, err := l.at(ctx, dir)
	if err != nil {
		return Node{}, err
	}
	var process uint32
	if l.contested(p.key(name)) {
		process = l.callers.process(c)
	}
	n, ok := l.lookupOwn(v, p, name, c, process)
	if ok {
		return n, nil
	}
	n, err = l.lookupCommitted(ctx, v, p, name)
	if !l.shows(v) {
		return l.Lookup(ctx, c, dir, name) // what is hidden goes with the version
	}
	if errors.Is(err, ErrNotExist) {
		return l.lookupGone(c, p.key(name), err)
	}
	if err != nil || n.File == nil {
		return n, err
	}
	if l.takeWant(c, p.key(name)) {
		return l.bindReplacement(ctx, p, name, l.callers.process(c), *n.File)
	}
	n.Private = l.contested(p.key(name))
	return n, nil
}

// lookupOwn finds what only this mount knows.
func (l *Live) lookupOwn(v view, p place, name string, c Caller, process uint32) (Node, bool) {
	k := p.key(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.replacing[k] {
		if s.bind.process == process {
			delete(l.wants, want{c.PID, k})
			return Node{Staged: s, Private: true}, true
		}
	}
	if s := l.names[k]; s != nil {
		s.mu.Lock()
		s.instead, s.moved = nil, false
		s.mu.Unlock()
		return Node{Staged: s}, true
	}
	child := p.child(v, name)
	_, made := l.made[child.dir]
	if made || l.scratchDirs[child.dir] {
		return Node{Dir: &child.shown}, true
	}
	return Node{}, false
}

// lookupCommitted finds what the table holds and this mount has not removed.
func (l *Live) lookupCommitted(ctx context.Context, v view, p place, name string) (Node, error) {
	notExist := l.fault(ErrNotExist, joinPath(p.dir, name), "no such name")
	entry, err := v.Lookup(ctx, p.dir, name)
	if err == nil && entry.File == nil {
		child := p.child(v, name)
		return Node{Dir: &child.shown}, nil
	}
	if err == nil && !l.isHidden(entry.File.Path) {
		return Node{File: entry.File}, nil
	}
	switch {
	case err == nil:
		return Node{}, notExist // unlinked here
	case errors.Is(err, snapshot.ErrAmbiguous):
		return Node{}, notExist.WithHint("several files have this name; list the directory for theirs")
	case !errors.Is(err, snapshot.ErrNotExist):
		return Node{}, err
	}
	if child := p.child(v, name); !child.scratch && child.dir != joinPath(p.dir, name) {
		// Another spelling of a partition directory.
		parent, base := splitPath(child.dir)
		if entry, err := v.Lookup(ctx, parent, base); err == nil && entry.File == nil {
			return Node{Dir: &child.shown}, nil
		}
	}
	return Node{}, notExist
}

// lookupGone finds a name that another writer removed lately. For who is about
// to write to it, the name is free; the kernel asks more than once.
func (l *Live) lookupGone(c Caller, k key, notExist error) (Node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.gone.find(k)
	if !ok || time.Since(l.wants[want{c.PID, k}]) < wantTTL {
		return Node{}, notExist
	}
	return Node{File: &f}, nil
}

// splitPath splits off the last element.
func splitPath(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

func (l *Live) isHidden(addPath string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.hidden[addPath]
	return ok
}

// contested reports whether some process is replacing the name.
func (l *Live) contested(k key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.replacing[k]) > 0
}

// exists reports whether a name is taken, for whoever would make it anew. The
// lock of the name is held, so that this stays true of what this mount commits.
func (l *Live) exists(ctx context.Context, v view, p place, name string, process uint32) (Node, bool, error) {
	n, ok := l.lookupOwn(v, p, name, Caller{}, process)
	if ok {
		return n, true, nil
	}
	n, taken, err := l.existsCommitted(ctx, v, p, name)
	now, failed := l.view(ctx)
	if failed == nil && now.Version() != v.Version() {
		return l.exists(ctx, now, p, name, process) // what is hidden goes with the version
	}
	return n, taken, err
}

// existsCommitted is exists for what the table holds.
func (l *Live) existsCommitted(ctx context.Context, v view, p place, name string) (Node, bool, error) {
	entry, err := v.Lookup(ctx, p.dir, name)
	if errors.Is(err, snapshot.ErrAmbiguous) {
		return Node{}, true, nil
	}
	if err == nil && entry.File == nil {
		child := p.child(v, name)
		return Node{Dir: &child.shown}, true, nil
	}
	if err == nil && !l.isHidden(entry.File.Path) {
		return Node{File: entry.File}, true, nil
	}
	if err != nil && !errors.Is(err, snapshot.ErrNotExist) {
		return Node{}, false, err
	}
	return Node{}, false, nil
}

// List yields the committed files and the directories of dir in order of name,
// after the given name; staged and scratch names are left out, except inside a
// scratch directory.
func (l *Live) List(ctx context.Context, dir, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		v, p, err := l.at(ctx, dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		own := l.ownEntries(v, p, after)
		known := l.isOwnDir(p)
		for e, err := range v.Dir(ctx, p.dir, after) {
			if errors.Is(err, snapshot.ErrNotExist) && known {
				break
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for len(own) > 0 && own[0].Name <= e.Name {
				if own[0].Name < e.Name && !yield(own[0], nil) {
					return
				}
				own = own[1:]
			}
			n, shown, err := l.entryNow(ctx, v, p, e)
			if (shown || err != nil) && !yield(n, err) || err != nil {
				return
			}
		}
		for _, e := range own {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// entryNow is what an entry found in v is by now: this mount may have replaced
// or removed the file since the listing began.
func (l *Live) entryNow(ctx context.Context, v view, p place, e snapshot.DirEntry) (Entry, bool, error) {
	for {
		n, shown := l.committedEntry(p, e)
		if e.File == nil || l.shows(v) {
			return n, shown, nil
		}
		var err error
		if v, err = l.view(ctx); err != nil {
			return Entry{}, false, err
		}
		e, err = v.Lookup(ctx, p.dir, e.Name)
		if errors.Is(err, snapshot.ErrNotExist) {
			return Entry{}, false, nil
		}
		if err != nil {
			return Entry{}, false, err
		}
	}
}

// shows reports whether v is what the tree shows, and all that this mount has
// committed.
func (l *Live) shows(v view) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.Version() == v.Version() && l.behind <= v.Version()
}

// committedEntry is the entry of a committed file or directory, unless it was
// removed here.
func (l *Live) committedEntry(p place, e snapshot.DirEntry) (Entry, bool) {
	if e.File == nil {
		path := joinPath(p.shown, e.Name)
		return Entry{Name: e.Name, Node: Node{Dir: &path}}, true
	}
	if l.isHidden(e.File.Path) {
		return Entry{}, false
	}
	return Entry{Name: e.Name, Node: Node{File: e.File, Private: l.contested(p.key(e.Name))}}, true
}

// isOwnDir reports whether mkdir made the directory here.
func (l *Live) isOwnDir(p place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, made := l.made[p.dir]
	return made || l.scratchDirs[p.dir]
}

// ownEntries are the listed entries that only this mount knows, in order.
func (l *Live) ownEntries(v view, p place, after string) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]Node{}
	dirNode := func(name string) Node {
		path := joinPath(p.shown, name)
		return Node{Dir: &path}
	}
	for dir, spelled := range l.made {
		if parent, _ := splitPath(dir); parent == p.dir {
			found[spelled] = dirNode(spelled)
		}
	}
	if p.scratch {
		for dir := range l.scratchDirs {
			if parent, name := splitPath(dir); parent == p.dir {
				found[name] = dirNode(name)
			}
		}
		for k, s := range l.names {
			if k.dir == p.dir {
				found[k.name] = Node{Staged: s}
			}
		}
	}
	var out []Entry
	for _, name := range slices.SortedFunc(maps.Keys(found), cmp.Compare[string]) {
		if name > after {
			out = append(out, Entry{Name: name, Node: found[name]})
		}
	}
	return out
}
