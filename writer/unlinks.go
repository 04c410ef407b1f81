package writer

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

// burstQuiet is how long no file must be unlinked until the unlinks so far are
// committed.
const burstQuiet = 250 * time.Millisecond

// unlinked is a committed file that was unlinked and waits for its commit.
type unlinked struct {
	file    snapshot.File
	key     key
	process uint32
	// seen is the version in which the file was found.
	seen int64
}

func everywhere(unlinked) bool { return true }

// burst collects unlinks, so that rm -r is one commit.
type burst struct {
	live *Live
	// flushing lets one commit that has unlinks at a time through, so that who
	// flushed knows that everything before is committed.
	flushing sync.Mutex

	mu      sync.Mutex
	waiting []unlinked
	timer   *time.Timer
	stopped bool
}

func (b *burst) init(l *Live) { b.live = l }

// Unlink removes a staged file at once and a committed one with the next
// commit of a burst. The first unlink by a process whose replacement of that
// name was just refused removes nothing. ErrNotExist, ErrIsDir, ErrAppendOnly.
func (l *Live) Unlink(ctx context.Context, c Caller, dir, name string) error {
	if err := l.writable(ctx); err != nil {
		return err
	}
	v, p, err := l.at(ctx, dir)
	if err != nil {
		return err
	}
	process := l.callers.process(c)
	if n, ok := l.lookupOwn(v, p, name, c, process); ok {
		if n.Dir != nil {
			return l.fault(ErrIsDir, joinPath(p.shown, name), "it is a directory")
		}
		if l.unlinkStaged(n.Staged, p.key(name)) {
			return nil
		}
	}
	if l.takeLeftover(p.key(name), process) {
		return nil
	}
	return l.unlinkCommitted(ctx, p, name, process)
}

// unlinkCommitted hides a committed file and puts it into the burst. A commit
// under its name comes first: a rename may be giving it another one.
func (l *Live) unlinkCommitted(ctx context.Context, p place, name string, process uint32) error {
	defer l.keys.lock(p.key(name))()
	v, err := l.view(ctx)
	if err != nil {
		return err
	}
	shown := joinPath(p.shown, name)
	notExist := l.fault(ErrNotExist, shown, "no such name")
	n, err := l.lookupCommitted(ctx, v, p, name)
	if errors.Is(err, ErrNotExist) && l.forgetGone(p.key(name)) {
		return nil // removed by another writer, and now here too
	}
	if err != nil {
		return err
	}
	if n.File == nil {
		return l.fault(ErrIsDir, shown, "it is a directory")
	}
	if err := l.removable(ctx, shown); err != nil {
		return err
	}
	l.mu.Lock()
	_, again := l.hidden[n.File.Path]
	if !again {
		l.hidden[n.File.Path] = 0
	}
	l.gone.forget(p.key(name))
	l.mu.Unlock()
	if again {
		return notExist
	}
	l.burst.add(unlinked{*n.File, p.key(name), process, v.Version()})
	return nil
}

// forgetGone ends the grace of a name and reports whether it had any.
func (l *Live) forgetGone(k key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.gone.find(k)
	l.gone.forget(k)
	return ok
}

// unlinkStaged takes the name from a staged file, unless it was committed
// under it meanwhile.
func (l *Live) unlinkStaged(s *Staged, k key) bool {
	s.op.Lock()
	defer s.op.Unlock()
	s.mu.Lock()
	sealed := s.state == stateSealed
	s.mu.Unlock()
	l.mu.Lock()
	committed := sealed && s.sealedKey == k
	l.mu.Unlock()
	if committed {
		return false
	}
	l.vanish(s, k)
	return true
}

// add puts an unlink into the burst.
func (b *burst) add(u unlinked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, u)
	b.arm()
}

// arm starts the quiet time anew; b.mu is held.
func (b *burst) arm() {
	if b.stopped {
		return
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(burstQuiet, b.quiet)
		return
	}
	b.timer.Reset(burstQuiet)
}

// nudge starts the quiet time anew if unlinks wait.
func (b *burst) nudge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) > 0 {
		b.arm()
	}
}

// quiet commits the burst, except the unlinks of processes that are writing a
// file: those go into the commit of that file.
func (b *burst) quiet() {
	busy := b.live.writingProcesses()
	// What failed has been reported.
	_ = b.flush(context.Background(), func(u unlinked) bool { return !busy[u.process] })
}

// any reports whether unlinks wait.
func (b *burst) any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0
}

func (b *burst) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	if b.timer != nil {
		b.timer.Stop()
	}
}

// take takes the matching unlinks out of the burst.
func (b *burst) take(match func(unlinked) bool) []unlinked {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []unlinked
	b.waiting = slices.DeleteFunc(b.waiting, func(u unlinked) bool {
		if match(u) {
			out = append(out, u)
			return true
		}
		return false
	})
	return out
}

// flush commits the matching unlinks. If that fails their names come back, and
// it is reported, for most of those who unlinked will never ask.
func (b *burst) flush(ctx context.Context, match func(unlinked) bool) error {
	b.flushing.Lock()
	defer b.flushing.Unlock()
	files := b.take(match)
	if len(files) == 0 {
		return nil
	}
	err := b.live.commitUnlinks(context.WithoutCancel(ctx), files)
	if err != nil {
		b.live.restore(files)
		for _, u := range files {
			b.live.opts.Report("unlink", u.key.String(), err)
		}
	}
	return err
}

// carry takes the matching unlinks for the commit of a file. Until that has
// ended, and done is called, no other commit that has to come after them
// begins.
func (b *burst) carry(match func(unlinked) bool) (files []unlinked, done func()) {
	b.flushing.Lock()
	if files = b.take(match); len(files) == 0 {
		b.flushing.Unlock()
		return nil, func() {}
	}
	return files, b.flushing.Unlock
}

// restore shows files again whose removal failed.
func (l *Live) restore(files []unlinked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range files {
		delete(l.hidden, u.file.Path)
	}
}

// writingProcesses are those with an uncommitted data file open for writing.
func (l *Live) writingProcesses() map[uint32]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[uint32]bool{}
	for _, s := range l.all {
		s.mu.Lock()
		if s.bind.process != 0 && s.writers > 0 && s.bind.commits() &&
			(s.state == stateOpen || s.state == stateComplete) {
			out[s.bind.process] = true
		}
		s.mu.Unlock()
	}
	return out
}

// commitUnlinks makes one commit of a burst.
func (l *Live) commitUnlinks(ctx context.Context, files []unlinked) error {
	_, err := l.commitChange(ctx, func(v view) (*TxnSpec, error) {
		left, err := l.stillLive(ctx, v, files)
		if err != nil || len(left) == 0 {
			return nil, err // other writers removed them all
		}
		return removalSpec(ctx, v, left)
	})
	return err
}

// rewritten reports whether another writer removed the file but kept its rows,
// as compaction does.
func (l *Live) rewritten(ctx context.Context, u unlinked, now view) bool {
	for v := max(u.seen, now.Version()-maxGoneCommits) + 1; v <= now.Version(); v++ {
		actions, err := l.back.Actions(ctx, v)
		if err != nil {
			continue
		}
		for _, a := range actions {
			if r, ok := a.(*action.Remove); ok && r.Path == u.file.Path {
				return !r.DataChange
			}
		}
	}
	return false
}

// removalSpec removes files as DELETE does. The predicate would have to name
// every file and is left empty; the removes say it all.
func removalSpec(ctx context.Context, v view, files []unlinked) (*TxnSpec, error) {
	var bytes int64
	spec := &TxnSpec{Operation: "DELETE", Parameters: map[string]any{"predicate": "[]"}}
	if err := spec.remove(ctx, v, filesOf(files)...); err != nil {
		return nil, err
	}
	for _, a := range spec.Actions {
		bytes += *a.(*action.Remove).Size
	}
	spec.Metrics = map[string]string{
		"numAddedFiles":   "0",
		"numRemovedFiles": strconv.Itoa(len(files)),
		"numRemovedBytes": strconv.FormatInt(bytes, 10),
	}
	return spec, nil
}

// stillLive returns the files that the version still holds as they were; what
// another writer removed is done. ErrConflict for one that it changed, or
// whose rows it moved to another file.
func (l *Live) stillLive(ctx context.Context, v view, files []unlinked) ([]unlinked, error) {
	var left []unlinked
	for _, u := range files {
		f, ok, err := v.ByPath(ctx, u.file.Path)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			if !l.rewritten(ctx, u, v) {
				continue
			}
			fallthrough
		case f.ID != u.file.ID:
			return nil, l.fault(ErrConflict, u.key.String(), "another writer changed the file").
				WithHint("look at it and remove it again")
		}
		left = append(left, u)
	}
	return left, nil
}

// remove adds the removal of files of v to the transaction, in the extended
// form. The path is that of the log, byte by byte: engines compare it as text.
func (s *TxnSpec) remove(ctx context.Context, v view, files ...snapshot.File) error {
	adds, err := v.Adds(ctx, files...)
	if err != nil {
		return err
	}
	for _, add := range adds {
		s.ReadFiles = append(s.ReadFiles, add.Path)
		s.Actions = append(s.Actions, add.ToRemove(time.Now().UnixMilli(), true))
	}
	return nil
}

func filesOf(files []unlinked) []snapshot.File {
	out := make([]snapshot.File, len(files))
	for i, u := range files {
		out[i] = u.file
	}
	return out
}

const maxRebases = 20

// commitChange commits what build makes of the newest version, again after
// each conflict that another look at the table resolves. build returns nil
// when nothing is left to do. It returns the version, which the tree shows to
// who looks next unless the table cannot be read.
func (l *Live) commitChange(ctx context.Context, build func(v view) (*TxnSpec, error)) (int64, error) {
	var first view // what is published at the first attempt goes with its table
	for attempt := 0; ; attempt++ {
		v, err := l.view(ctx)
		if err != nil {
			return 0, err
		}
		if first == nil {
			first = v
		}
		spec, err := build(v)
		if err != nil || spec == nil {
			return 0, err
		}
		spec.Base, spec.Incarnation = v.Version(), v.Incarnation()
		l.leave(spec, +1)
		version, err := l.back.Commit(ctx, spec)
		if err == nil {
			l.committed(spec, version)
		}
		l.leave(spec, -1)
		if err == nil {
			return version, nil
		}
		if !errors.Is(err, ErrConflict) || attempt == maxRebases {
			return 0, err
		}
		l.refresh(ctx)
		next, viewErr := l.view(ctx)
		switch {
		case viewErr != nil:
			return 0, viewErr
		case next.Incarnation() != first.Incarnation():
			return 0, err // what was published went with the table
		case next.Version() == v.Version():
			return 0, err // there is nothing new to look at
		}
	}
}

// committed has the tree moved on after a commit of this mount, when somebody
// looks: its caller waits for nothing but the commit. What it removed stays
// hidden until the tree shows the version.
func (l *Live) committed(spec *TxnSpec, version int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	removed := spec.removed()
	for _, path := range removed {
		if l.now.Version() < version {
			l.hidden[path] = version
		} else {
			delete(l.hidden, path)
		}
	}
	if len(removed) == 0 && l.now.Version() < version {
		l.appended[version] = true
	}
	l.behind = max(l.behind, version)
}

// leave counts the files that commits of this mount are removing, so that
// their names get no grace.
func (l *Live) leave(spec *TxnSpec, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range spec.removed() {
		if l.leaving[path] += by; l.leaving[path] == 0 {
			delete(l.leaving, path)
		}
	}
}

// removed are the paths that the transaction removes.
func (s *TxnSpec) removed() []string {
	var out []string
	for _, a := range s.Actions {
		if r, ok := a.(*action.Remove); ok {
			out = append(out, r.Path)
		}
	}
	return out
}
