package writer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// Live is the tree under current/: the newest snapshot overlaid with what this
// mount has not committed. Directory paths are as the caller spelled them,
// relative to current/. It is safe for concurrent use.
type Live struct {
	back    backend
	opts    Options
	area    *area
	callers *callers
	ids     atomic.Uint64
	// makeReady makes the commit file of a transaction beforehand; nil if that
	// cannot be.
	makeReady func(ctx context.Context, spec *TxnSpec) error

	// syncing lets one caller at a time move to a newer version.
	syncing sync.Mutex
	// names keeps commits to one name apart.
	keys keyedMutex
	// burst are the unlinks that wait for their commit.
	burst burst
	// unfinished are the files that wait for who goes on with them.
	unfinished unfinished

	// mu guards what follows. It is never held during I/O.
	mu  sync.Mutex
	now view
	// behind is a version that this mount has committed and the tree does not
	// show yet: whoever looks next moves it on.
	behind int64
	// appended are versions of this mount that only add, until the tree shows
	// them.
	appended map[int64]bool
	// all are the files that are not committed, by id.
	all map[uint64]*Staged
	// names are the staged files that every process sees; replacing those that
	// will replace a committed file, seen only by the process that writes.
	names     map[key]*Staged
	replacing map[key][]*Staged
	// wants are names of committed files about to be opened for writing.
	wants map[want]time.Time
	// made are the partition directories that mkdir made, as spelled;
	// scratchDirs those of scratch.
	made        map[string]string
	scratchDirs map[string]bool
	// hidden are the add.paths that this mount removed, with the version that
	// removes them, 0 before the commit.
	hidden map[string]int64
	// leaving are the add.paths that commits under way remove.
	leaving map[string]int
	// gone are names that other writers removed lately.
	gone graveyard
	// leftovers are replacements refused lately.
	leftovers leftovers
}

// newLive makes the tree of a table, and takes over what dead mounts left.
func newLive(ctx context.Context, w *Table) (*Live, error) {
	l, err := openLive(ctx, &tableBackend{w}, w.opts)
	if err == nil {
		l.makeReady = w.commits.makeReady
	}
	return l, err
}

func openLive(ctx context.Context, back backend, opts Options) (*Live, error) {
	if opts.Report == nil {
		opts.Report = func(string, string, error) {}
	}
	l := &Live{
		back: back, opts: opts, area: newArea(back.Root()), callers: newCallers(),
		all: map[uint64]*Staged{}, names: map[key]*Staged{}, replacing: map[key][]*Staged{},
		wants: map[want]time.Time{}, made: map[string]string{}, scratchDirs: map[string]bool{},
		hidden: map[string]int64{}, appended: map[int64]bool{}, leaving: map[string]int{}, gone: newGraveyard(), leftovers: leftovers{},
	}
	l.burst.init(l)
	l.unfinished.init(l)
	if opts.ReadOnly {
		return l, nil
	}
	rejected, err := l.area.recover(ctx, back)
	switch {
	case err != nil:
		opts.Report("recover", "", fault.Wrap(ErrReadOnly, err, "cannot take over what an earlier mount left in .deltafs").AtTable(back.Name()))
	case rejected > 0:
		opts.Report("recover", "", l.fault(ErrIncomplete, "", "%d files of an interrupted mount were not committed", rejected).
			WithHint("they are kept among the rejected files"))
	}
	return l, nil
}

// close commits what waits and gives up the staging area.
func (l *Live) close(ctx context.Context) error {
	err := l.burst.flush(ctx, everywhere)
	l.burst.stop()
	l.unfinished.stop()
	l.mu.Lock()
	left := make([]*Staged, 0, len(l.all))
	for _, s := range l.all {
		left = append(left, s)
	}
	l.mu.Unlock()
	for _, s := range left {
		err = errors.Join(err, s.giveUp())
	}
	return errors.Join(err, l.area.close())
}

// view is the version that the tree shows: the newest one at first, and none
// older than what this mount has committed if that reads.
func (l *Live) view(ctx context.Context) (view, error) {
	l.mu.Lock()
	v, behind := l.now, l.behind
	l.mu.Unlock()
	if v != nil && v.Version() >= behind {
		return v, nil
	}
	next, err := l.sync(ctx)
	if v == nil || ctx.Err() != nil {
		return next, err
	}
	if err != nil || next.Version() < behind {
		l.refresh(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.behind == behind {
		l.behind = 0 // tried; what failed has been reported
	}
	return l.now, nil
}

// sync moves the tree to the newest version known.
func (l *Live) sync(ctx context.Context) (view, error) {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	next, err := l.back.View(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	old := l.now
	l.mu.Unlock()
	var lost []snapshot.File
	if old != nil && old.Version() < next.Version() && l.opts.Grace > 0 {
		lost = l.removedBetween(ctx, old, next)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = next
	own := func(path string) bool {
		_, hidden := l.hidden[path]
		return hidden || l.leaving[path] > 0
	}
	l.gone.bury(lost, own, time.Now().Add(l.opts.Grace))
	for path, version := range l.hidden {
		if version != 0 && version <= next.Version() {
			delete(l.hidden, path)
		}
	}
	for version := range l.appended {
		if version <= next.Version() {
			delete(l.appended, version)
		}
	}
	for _, s := range l.all {
		l.unbindSealed(s)
	}
	return next, nil
}

// refresh looks for new versions and shows them. Its failure is no failure of
// what was just committed.
func (l *Live) refresh(ctx context.Context) {
	err := l.back.Refresh(ctx)
	if err == nil {
		_, err = l.sync(ctx)
	}
	if err != nil {
		l.opts.Report("refresh", "", err)
	}
}

// Refreshed tells the tree that the table has new commits (of this mount or of
// another writer).
func (l *Live) Refreshed(ctx context.Context, ev snapshot.Event) {
	if ev.Recreated {
		l.mu.Lock()
		clear(l.hidden)
		clear(l.appended)
		clear(l.made)
		l.gone = newGraveyard()
		for _, s := range l.all {
			s.forgetVersion()
		}
		l.mu.Unlock()
	}
	if _, err := l.sync(ctx); err != nil {
		l.opts.Report("refresh", "", err)
	}
}

// forgetVersion lets the name of a sealed file go with the next look at the
// table: the version it was committed in is no more.
func (s *Staged) forgetVersion() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealedAt = 0
}

// Version is the version that current/ has shown last, -1 before any is known.
func (l *Live) Version() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return -1
	}
	return l.now.Version()
}

// at is the place of a directory path in the version that the tree shows.
func (l *Live) at(ctx context.Context, dir string) (view, place, error) {
	v, err := l.view(ctx)
	if err != nil {
		return nil, place{}, err
	}
	p, err := resolve(ctx, v, dir)
	return v, p, err
}

// writable refuses changes of a mount or table that is read-only.
func (l *Live) writable(ctx context.Context) error {
	if l.opts.ReadOnly {
		return l.fault(ErrReadOnly, "", "the mount is read-only").WithHint("mount it without --read-only")
	}
	// Whether it can be written is read with the version. If that does not read,
	// Writable says why.
	_, _ = l.view(ctx)
	return l.back.Writable(ctx)
}

// removable refuses removals where rows may only be added.
func (l *Live) removable(ctx context.Context, name string) error {
	if err := l.writable(ctx); err != nil {
		return err
	}
	if l.opts.AppendOnly {
		return l.fault(ErrAppendOnly, name, "the mount only appends").WithHint("mount it without --append-only")
	}
	v, err := l.view(ctx)
	if err != nil {
		return err
	}
	if isTrue(v.Metadata().Configuration, "delta.appendOnly") {
		return l.fault(ErrAppendOnly, name, "the table property delta.appendOnly forbids removals").
			WithHint("set delta.appendOnly to false first")
	}
	return nil
}

// fault is an error about a name in this table.
func (l *Live) fault(kind error, name, format string, args ...any) *fault.Error {
	return fault.New(kind, format, args...).AtTable(l.back.Name()).InFile(name)
}
