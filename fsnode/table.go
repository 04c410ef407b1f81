package fsnode

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

const (
	// freshFor is how old a probe of the log may be to answer what latest is.
	freshFor = 50 * time.Millisecond
	// retryAfter is how long the failure to open a table stands.
	retryAfter = time.Second
)

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
	// used is when the table was last asked for, in nanoseconds.
	used atomic.Int64

	openMu sync.Mutex // one opening at a time
	pollMu sync.Mutex // one probe at a time
	mu     sync.Mutex // guards the rest
	inc    *incarnation
	failed error
	tried  time.Time
	polled time.Time
	// watching is set while the refresher runs; wake hurries it.
	watching bool
	wake     chan struct{}
}

func newTable(f *FS, rel string) *table {
	return &table{fs: f, rel: rel, source: filepath.Join(f.opt.Source, filepath.FromSlash(rel)), wake: make(chan struct{}, 1)}
}

// incarnation is a table from its creation to its end. When the table is
// deleted and made again, or a commit of it is rewritten, all nodes of the
// incarnation are stale.
type incarnation struct {
	t       *table
	slot    uint32
	snap    *snapshot.Table
	w       *writer.Table
	live    *writer.Live
	texts   textCache
	history historyText
	// dead is set at the end.
	dead atomic.Bool
	// seen is the version up to which changes were handled, of this life of the
	// table; under pollMu.
	seen int64
	life any

	mu sync.Mutex
	// epochs counts how often a path below current/ lost its directory: the
	// kernel never uses a removed directory's node again.
	epochs map[string]int64
	// sizes holds the sizes of files whose content has another size than the
	// snapshot promised.
	sizes map[uint64]int64
}

// stale reports whether the table has been made again since.
func (inc *incarnation) stale() bool { return inc.dead.Load() }

// open returns the table's incarnation, opening the table if need be.
func (t *table) open(ctx context.Context) (*incarnation, error) {
	t.used.Store(time.Now().UnixNano())
	if inc, err := t.state(); inc != nil || err != nil {
		return inc, err
	}
	t.openMu.Lock()
	defer t.openMu.Unlock()
	if inc, err := t.state(); inc != nil || err != nil {
		return inc, err
	}
	inc, err := t.load(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			t.failed, t.tried = err, time.Now()
		}
		return nil, err
	}
	t.inc, t.failed, t.polled = inc, nil, time.Now()
	t.watch()
	return inc, nil
}

// state returns what is known without I/O; nil and nil if that is nothing.
func (t *table) state() (*incarnation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inc != nil {
		t.watch()
		return t.inc, nil
	}
	if t.failed != nil && time.Since(t.tried) < retryAfter {
		return nil, t.failed
	}
	return nil, nil
}

// load opens both sides of the table.
func (t *table) load(ctx context.Context) (*incarnation, error) {
	st, err := openStore(t.source)
	if err != nil {
		return nil, err
	}
	snap, err := snapshot.Open(ctx, st, snapshot.Options{Name: t.source, Logger: t.fs.log})
	if err != nil {
		return nil, err
	}
	w, err := writer.Open(ctx, snap, writer.Options{
		ReadOnly: t.fs.opt.ReadOnly, AppendOnly: t.fs.opt.AppendOnly, Grace: t.fs.opt.Grace,
		EngineInfo: t.fs.opt.EngineInfo, Logger: t.fs.log,
		Report: func(op, name string, err error) { t.fs.report(t, op, name, toErrno(err), err) },
	})
	if err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	inc := t.incarnate(snap, w)
	if err := t.fs.assignSlot(inc); err != nil {
		return nil, errors.Join(err, w.Close(ctx), snap.Close())
	}
	return inc, nil
}

// incarnate begins the present life of the table.
func (t *table) incarnate(snap *snapshot.Table, w *writer.Table) *incarnation {
	return &incarnation{t: t, snap: snap, w: w, live: w.Live(), seen: snap.Latest(), life: snap.Incarnation()}
}

// fresh is open, with a probe of the log unless the last one is recent.
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

// close gives the table up and returns what could not be committed.
func (t *table) close(ctx context.Context) error {
	t.mu.Lock()
	inc := t.inc
	t.inc = nil
	t.mu.Unlock()
	if inc == nil {
		return nil
	}
	inc.dead.Store(true)
	t.fs.freeSlot(inc)
	return errors.Join(inc.w.Close(ctx), inc.snap.Close())
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
