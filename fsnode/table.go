package fsnode

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// retryAfter is how long the failure to open a table stands.
const retryAfter = time.Second

// table is one table of the mount, opened when something in it is first
// looked up.
type table struct {
	fs *FS
	// rel is the path below the source, "" when the source is the table.
	rel string
	// source is the table's local path, for messages.
	source string
	errs   errorLog
	// known counts the kernel's nodes of the table.
	known atomic.Int64
	// dropped is set when the table's directory is gone from the lake.
	dropped atomic.Bool
	// used is when the table was last asked for, in nanoseconds; resting is set
	// when that was long ago and what can be had again was given up.
	used    atomic.Int64
	resting atomic.Bool

	// hears is set while every change of the log is heard of. events counts
	// what was heard, probed how much of it the last good look at the log has
	// taken in; polled is when that was, good or not, and failing says that it
	// was not.
	hears          atomic.Bool
	events, probed atomic.Uint64
	polled         atomic.Int64
	failing        atomic.Bool

	openMu sync.Mutex // one opening or release at a time
	pollMu sync.Mutex // one probe at a time
	mu     sync.Mutex // guards the rest
	inc    *incarnation
	failed error
	tried  time.Time
	// attended is set while the refresher runs.
	attended bool
}

func newTable(f *FS, rel string) *table {
	return &table{fs: f, rel: rel, source: filepath.Join(f.opt.Source, filepath.FromSlash(rel))}
}

// incarnation is a table from its creation to its end, or from its opening to
// its release. When the table is deleted and made again, or a commit of it is
// rewritten, all nodes of the incarnation are stale.
type incarnation struct {
	t       *table
	slot    uint32
	store   *store.Local
	snap    *snapshot.Table
	w       *writer.Table
	live    *writer.Live
	texts   textCache
	history historyText
	// storedDirs is used where files are shown raw.
	storedDirs storedDirs
	// dead is set at the end.
	dead atomic.Bool
	// known counts the kernel's nodes of the incarnation. A data file that the
	// kernel knows is in a directory that it knows.
	known atomic.Int64
	// seen is the version up to which changes were handled, of this life of the
	// table; it changes under pollMu.
	seen atomic.Int64
	life any

	mu sync.Mutex
	// epochs counts how often a path below current/ lost its directory: the
	// kernel never uses a removed directory's node again.
	epochs map[string]int64
}

// stale reports whether the table has been made again since.
func (inc *incarnation) stale() bool { return inc.dead.Load() }

// use notes that the table was asked for.
func (t *table) use() {
	t.used.Store(time.Now().UnixNano())
	if t.resting.Load() && t.resting.CompareAndSwap(true, false) {
		t.fs.keeper.visit(t)
	}
}

// idle is how long ago the table was asked for.
func (t *table) idle() time.Duration { return time.Since(time.Unix(0, t.used.Load())) }

// present is the incarnation at hand, nil while the table is not open.
func (t *table) present() *incarnation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inc
}

// open returns the table's incarnation, opening the table if need be.
func (t *table) open(ctx context.Context) (*incarnation, error) {
	t.use()
	if inc, err := t.state(); inc != nil || err != nil {
		return inc, err
	}
	t.openMu.Lock()
	defer t.openMu.Unlock()
	if inc, err := t.state(); inc != nil || err != nil {
		return inc, err
	}
	t.listen() // before the log is read, so that nothing falls in between
	events := t.events.Load()
	inc, err := t.load(ctx)
	if err != nil {
		t.unlisten()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			t.failed, t.tried = err, time.Now()
		}
		return nil, err
	}
	t.inc, t.failed = inc, nil
	t.probed.Store(events)
	t.polled.Store(time.Now().UnixNano())
	t.failing.Store(false)
	t.attend()
	t.fs.keeper.visit(t)
	return inc, nil
}

// state returns what is known without I/O; nil and nil if that is nothing.
func (t *table) state() (*incarnation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inc != nil {
		if !t.hears.Load() {
			t.attend()
		}
		return t.inc, nil
	}
	if t.failed != nil && time.Since(t.tried) < retryAfter {
		return nil, t.failed
	}
	return nil, nil
}

// load opens both sides of the table.
func (t *table) load(ctx context.Context) (*incarnation, error) {
	st, err := store.OpenLocal(t.source)
	if err != nil {
		return nil, err
	}
	snap, err := snapshot.Open(ctx, st, snapshot.Options{
		Name: t.source, Logger: t.fs.log, Cache: t.fs.opt.Cache, AllowPaths: t.fs.opt.AllowPaths,
		View: t.fs.opt.View, FillPartitions: t.fs.opt.FillPartitions, Rendered: t.fs.opt.Rendered,
	})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	w, err := writer.Open(ctx, snap, writer.Options{
		ReadOnly: t.fs.opt.ReadOnly, AppendOnly: t.fs.opt.AppendOnly, Grace: t.fs.opt.Grace,
		EngineInfo: t.fs.opt.EngineInfo, Logger: t.fs.log,
		Report: func(op, name string, err error) { t.fs.report(t, op, name, toErrno(err), err) },
	})
	if err != nil {
		return nil, errors.Join(err, snap.Close(), st.Close())
	}
	inc := t.incarnate(st, snap, w)
	if err := t.fs.assignSlot(inc); err != nil {
		return nil, errors.Join(err, inc.close(ctx))
	}
	return inc, nil
}

// incarnate begins the present life of the table.
func (t *table) incarnate(st *store.Local, snap *snapshot.Table, w *writer.Table) *incarnation {
	inc := &incarnation{t: t, store: st, snap: snap, w: w, live: w.Live(), life: snap.Incarnation()}
	inc.seen.Store(snap.Latest())
	return inc
}

// fresh is open, with a look at the log unless the last one is recent.
func (t *table) fresh(ctx context.Context) (*incarnation, error) {
	inc, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.poll(ctx, freshFor); err != nil {
		return nil, err
	}
	if inc.stale() {
		return t.open(ctx)
	}
	return inc, nil
}

// close gives up what the incarnation holds and returns what could not be
// committed.
func (inc *incarnation) close(ctx context.Context) error {
	return errors.Join(inc.w.Close(ctx), inc.snap.Close(), inc.store.Close())
}

// epoch returns how often the directory at path was removed.
func (inc *incarnation) epoch(path string) int64 {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	return inc.epochs[path]
}

// retire gives the directory at path, if it is made again, a new node.
func (inc *incarnation) retire(path string) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	if inc.epochs == nil {
		inc.epochs = map[string]int64{}
	}
	inc.epochs[path]++
}

// commitTime returns the commit time of v; zero if it is unknown.
func (inc *incarnation) commitTime(ctx context.Context, v int64) time.Time {
	at, ok, err := inc.snap.CommitTime(ctx, v)
	if err != nil || !ok {
		return time.Time{}
	}
	return at
}
