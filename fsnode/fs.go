package fsnode

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/internal/fault"
)

// logDir is the directory that makes a directory a table.
const logDir = "_delta_log"

// FS is the file system of one mount. The methods that go-fuse calls are in
// lookup.go, readdir.go, open.go, write.go, namespace.go and statfs.go.
type FS struct {
	fuse.RawFileSystem // answers ENOSYS to what is not implemented

	opt   settings
	log   *slog.Logger
	nodes *nodeTable
	files *openFiles

	handles  handleTable
	retirees retirees
	passages passages
	notifier *notifier
	watcher  *watcher
	keeper   *keeper
	writes   gate
	aheads   *aheads
	spool    *spool

	// server is set at Init and used for notifications and passthrough.
	server atomic.Pointer[fuse.Server]

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	tablesMu sync.Mutex
	tables   map[string]*table
	slots    map[uint32]*incarnation
	lastSlot uint32
}

// New prepares the file system of a table, or of a lake if the source is a
// directory that is no table itself. A table must open; in a lake a broken one
// harms only itself. ErrNoSource, and what snapshot.Open returns.
func New(ctx context.Context, o Options) (*FS, error) {
	source, err := filepath.Abs(o.Source)
	if err != nil {
		return nil, err
	}
	o.Source = source
	if fi, err := os.Stat(source); err != nil || !fi.IsDir() {
		return nil, noSource(source, err)
	}
	f := &FS{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		opt:           o.settings(),
		tables:        map[string]*table{},
		slots:         map[uint32]*incarnation{},
		retirees:      retirees{after: retireAfter},
	}
	f.log = f.opt.log
	f.spool = newSpool(f.opt.SpoolDir, os.TempDir())
	f.notifier = newNotifier(func(fn func()) { f.guard("notify", fn) })
	f.aheads = newAheads(func(fn func()) { f.wg.Go(func() { f.guard("readdir", fn) }) })
	f.files = newOpenFiles(f)
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.watcher, f.keeper = newWatcher(f.log), newKeeper(f)
	f.wg.Go(f.watcher.run)
	f.wg.Go(func() { f.keeper.run(f.ctx.Done()) })
	if !isTable(source) {
		f.nodes = newNodeTable(&lakeDir{fs: f})
		return f, nil
	}
	t := f.table("")
	if _, err := t.open(ctx); err != nil {
		return nil, errors.Join(err, f.Close(ctx))
	}
	f.nodes = newNodeTable(&tableDir{t: t})
	return f, nil
}

func noSource(source string, err error) error {
	reason := "is not a directory"
	if err != nil {
		reason = "does not exist or cannot be reached"
	}
	return fault.Wrap(ErrNoSource, err, "%s", reason).AtTable(source).
		WithHint("name the directory of a Delta table, or a directory with tables below it")
}

// isTable reports whether the directory holds a Delta log.
func isTable(path string) bool {
	fi, err := os.Lstat(filepath.Join(path, logDir))
	return err == nil && fi.IsDir()
}

// Close ends what runs in the background, closes the tables and returns what
// could not be committed. The file system must not be mounted any more.
func (f *FS) Close(ctx context.Context) error {
	f.cancel()
	f.watcher.close()
	f.wg.Wait()
	var errs []error
	for _, t := range f.allTables() {
		t.mu.Lock()
		inc := t.inc
		t.inc = nil
		t.mu.Unlock()
		if inc != nil {
			f.end(inc)
			errs = append(errs, inc.close(ctx))
		}
	}
	return errors.Join(errs...)
}

// table returns the table at rel, which need not be open yet.
func (f *FS) table(rel string) *table {
	f.tablesMu.Lock()
	defer f.tablesMu.Unlock()
	t, ok := f.tables[rel]
	if !ok {
		t = newTable(f, rel)
		f.tables[rel] = t
	}
	return t
}

// dropTable forgets the table at rel, if there was one: its directory is gone.
func (f *FS) dropTable(rel string) {
	f.tablesMu.Lock()
	t, ok := f.tables[rel]
	delete(f.tables, rel)
	f.tablesMu.Unlock()
	if !ok {
		return
	}
	t.dropped.Store(true)
	if inc := t.present(); inc != nil {
		t.vanished(inc)
	}
}

func (f *FS) allTables() []*table {
	f.tablesMu.Lock()
	defer f.tablesMu.Unlock()
	out := make([]*table, 0, len(f.tables))
	for _, t := range f.tables {
		out = append(out, t)
	}
	return out
}

// assignSlot gives an incarnation a slot that no other has had, as long as
// there are any: a node id of the kernel may outlive its incarnation.
func (f *FS) assignSlot(inc *incarnation) error {
	f.tablesMu.Lock()
	defer f.tablesMu.Unlock()
	for range maxSlot {
		f.lastSlot = f.lastSlot%maxSlot + 1
		if _, taken := f.slots[f.lastSlot]; !taken {
			inc.slot = f.lastSlot
			f.slots[inc.slot] = inc
			return nil
		}
	}
	return fault.New(errForbidden, "%d tables are open", len(f.slots)).AtTable(inc.t.source).
		WithHint("mount a directory with fewer tables")
}

// end makes all nodes of an incarnation stale.
func (f *FS) end(inc *incarnation) {
	inc.dead.Store(true)
	f.spool.clear(inc)
	f.freeSlot(inc)
}

// freeSlot gives the slot of an incarnation back when it has ended and the
// kernel has forgotten it.
func (f *FS) freeSlot(inc *incarnation) {
	if !inc.stale() || inc.known.Load() > 0 {
		return
	}
	f.tablesMu.Lock()
	defer f.tablesMu.Unlock()
	if f.slots[inc.slot] == inc {
		delete(f.slots, inc.slot)
	}
}

func (f *FS) incarnation(slot uint32) (*incarnation, bool) {
	f.tablesMu.Lock()
	defer f.tablesMu.Unlock()
	inc, ok := f.slots[slot]
	return inc, ok
}

// kernel is where notifications go; nil while there is no mount.
func (f *FS) kernel() kernel {
	if s := f.server.Load(); s != nil {
		return s
	}
	return nil
}

// resolve returns the node behind an id of the kernel. errStale when its table
// was made again or is gone.
func (f *FS) resolve(ctx context.Context, id uint64) (node, error) {
	if isDataFile(id) {
		return f.dataFile(ctx, id)
	}
	n, ok := f.nodes.get(id)
	if !ok {
		return nil, errStale
	}
	if t := n.key().table; t != nil {
		t.use()
	}
	if s, ok := n.(interface{ stale() bool }); ok && s.stale() {
		return nil, errStale
	}
	return n, nil
}

// directory is resolve for the parent of an operation.
func (f *FS) directory(ctx context.Context, id uint64) (directory, error) {
	n, err := f.resolve(ctx, id)
	if err != nil {
		return nil, err
	}
	d, ok := n.(directory)
	if !ok {
		return nil, errNotDir
	}
	return d, nil
}

// tableOf is the table that a node belongs to, for reports.
func tableOf(n node) *table {
	if n == nil {
		return nil
	}
	return n.key().table
}
