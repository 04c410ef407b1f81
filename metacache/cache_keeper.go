package metacache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Versions are written in batches: a process that is killed loses the last
// ones, which are in the log of the table.
const (
	batchVersions = 1000
	batchBytes    = 1 << 20
	batchQuiet    = time.Minute
)

// errNotKept says that a run stays in memory, by decision.
var errNotKept = errors.New("run is not kept")

// diskKeeper keeps the runs of one table in a slot of a cache.
type diskKeeper struct {
	cache *Cache
	table string
	// own is nil if nothing can be written; claimed says that this was tried.
	own     *slot
	claimed bool
	quiet   time.Duration

	// writing is held by whoever writes a run, and comes before mu.
	writing sync.Mutex

	mu   sync.Mutex
	runs map[uint64]*openRun
	// discarded says that nothing is kept any more.
	discarded bool
	// timer is set while a batch waits.
	timer *time.Timer
}

var _ keeper = (*diskKeeper)(nil)

// openRun is a run that was kept or restored.
type openRun struct {
	dir string
	// log is nil if no more versions are added.
	log *versionLog
	// batch are records that wait, of so many versions, note that of the last.
	batch    []byte
	versions int
	note     []byte
}

// newKeeper returns the keeper of a table. Nothing is made on disk before
// something is kept.
func (c *Cache) newKeeper(root string) *diskKeeper {
	root = resolve(root)
	k := &diskKeeper{cache: c, table: root, quiet: batchQuiet, runs: map[uint64]*openRun{}}
	if _, err := os.Lstat(filepath.Join(c.options.Dir, cacheKey(root))); !errors.Is(err, os.ErrNotExist) {
		k.claim()
	}
	return k
}

// claim looks for a slot that is free.
func (k *diskKeeper) claim() {
	k.claimed = true
	dir, err := k.cache.tableDir(k.table)
	if err != nil {
		k.cache.tell("it cannot be used", err)
		k.cache.stale.Store(k.table, true)
		return
	}
	for i := range tableSlotCount {
		k.own, err = lockSlot(slotDir(dir, i))
		if errors.Is(err, errForeign) {
			k.cache.tell("a part of it is not its own", err)
			continue
		}
		if !errors.Is(err, errLocked) {
			break
		}
	}
	if err != nil {
		k.cache.tell("it cannot be written to", err)
		return
	}
	k.own.touch()
}

// restore implements keeper.
func (k *diskKeeper) restore(ctx context.Context) (kept, error) {
	var out kept
	for _, s := range k.sources() {
		runs, last, err := s.runs(ctx, k.cache, func(dir string, err error) { k.drop(s, dir, err) })
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errForeign) {
			k.cache.tell("a part of it cannot be read", err)
		}
		if ctx.Err() != nil {
			return kept{}, ctx.Err()
		}
		out.lastSerial = max(out.lastSerial, last)
		if len(runs) == 0 {
			continue
		}
		for _, r := range runs {
			open := &openRun{dir: s.runDir(r.serial), log: r.log}
			if s != k.own {
				r.log.close()
				open = &openRun{}
			}
			k.runs[r.serial] = open
			out.runs = append(out.runs, r.keptRun)
			out.lastID = max(out.lastID, r.base.(*diskBase).seal.LastID, greatestID(r.versions))
		}
		break
	}
	return out, nil
}

// sources are the slots to restore from: the first that has something. Runs of
// two slots have nothing to do with each other, as each process gives out IDs
// of its own.
func (k *diskKeeper) sources() []*slot {
	var out []*slot
	if k.own != nil {
		out = append(out, k.own)
	}
	if _, stale := k.cache.stale.Load(k.table); stale {
		return out
	}
	dir := filepath.Join(k.cache.options.Dir, cacheKey(k.table))
	for i := range tableSlotCount {
		if s := (&slot{dir: slotDir(dir, i)}); k.own == nil || s.dir != k.own.dir {
			out = append(out, s)
		}
	}
	return out
}

// drop gives up what is in the way; what is in the slot of another is left to
// that one.
func (k *diskKeeper) drop(s *slot, dir string, why error) {
	if s != k.own {
		return
	}
	k.cache.log.Info("cached metadata is dropped", "op", "cache", "table", k.table, "path", dir, "err", why)
	if err := os.RemoveAll(dir); err != nil {
		k.cache.tell("a part of it cannot be deleted", err)
	}
}

// wants implements keeper.
func (k *diskKeeper) wants(versions int, files int64) bool {
	o := &k.cache.options
	return files >= int64(o.MinFiles) || versions >= o.MinVersions || k.cache.admits(k.table)
}

// keep implements keeper.
func (k *diskKeeper) keep(ctx context.Context, r keptRun) (base, error) {
	k.writing.Lock()
	defer k.writing.Unlock()
	if !k.claimed {
		k.claim()
		if k.own != nil {
			// Of a process that came and went meanwhile, with other IDs.
			if err := k.own.empty(); err != nil {
				return nil, err
			}
		}
	}
	if k.own == nil {
		return nil, errNotKept
	}
	b, err := k.write(ctx, r)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errNotKept) {
		k.cache.log.Warn("metadata is not cached", "op", "cache", "table", k.table, "version", r.first, "err", err)
	}
	return b, err
}

func (k *diskKeeper) write(ctx context.Context, r keptRun) (*diskBase, error) {
	begun := time.Now()
	if err := k.own.held(); err != nil {
		return nil, err
	}
	room, err := k.room(runEstimate(r))
	if err != nil {
		return nil, err
	}
	dir := k.own.runDir(r.serial)
	if err := os.Mkdir(dir+newSuffix, 0o700); err != nil {
		return nil, err
	}
	sealed, log, err := writeRun(ctx, dir+newSuffix, r, room)
	if err == nil {
		err = k.own.held()
	}
	if err == nil {
		err = os.Rename(dir+newSuffix, dir)
	}
	if err != nil {
		if log != nil {
			log.close()
		}
		return nil, errors.Join(err, os.RemoveAll(dir+newSuffix))
	}
	b := newDiskBase(k.cache, dir, sealed)
	if _, err := b.openVerified(); err != nil {
		log.close()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	k.mu.Lock()
	k.runs[r.serial] = &openRun{dir: dir, log: log}
	k.mu.Unlock()
	k.cache.log.Debug("metadata is cached", "op", "cache", "table", k.table, "version", r.first,
		"files", sealed.count(), "bytes", sealed.bytes(), "duration", time.Since(begun))
	return b, nil
}

// room makes room for a run. What it returns also ends the writing of one that
// is no longer wanted.
func (k *diskKeeper) room(bytes int64) (func(n int) error, error) {
	room, err := k.cache.room(bytes, k.own.dir)
	return func(n int) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.discarded {
			return errNotKept
		}
		return room(n)
	}, err
}

// applied implements keeper.
func (k *diskKeeper) applied(_ context.Context, serial uint64, v keptVersion) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.runs[serial]
	if r == nil || r.log == nil {
		return errNotKept
	}
	if want := r.log.next + int64(r.versions); v.version != want {
		return k.end(r, fmt.Errorf("version %d comes where %d should", v.version, want))
	}
	before := r.log.note
	if r.versions > 0 {
		before = r.note
	}
	batch, err := encodeRecord(r.batch, v, before)
	if err != nil {
		if failed := k.flush(r); failed != nil {
			return failed
		}
		return k.end(r, err)
	}
	r.batch, r.note = batch, v.note
	if r.versions++; r.versions >= batchVersions || len(r.batch) >= batchBytes {
		return k.flush(r)
	}
	if k.timer == nil {
		k.timer = time.AfterFunc(k.quiet, k.flushAll)
	}
	return nil
}

// flush writes the batch of a run. The caller holds mu.
func (k *diskKeeper) flush(r *openRun) error {
	if r.log == nil || r.versions == 0 {
		return nil
	}
	room, err := k.cache.room(int64(len(r.batch)), k.own.dir)
	if err == nil {
		err = room(len(r.batch))
	}
	if err == nil {
		err = r.log.append(r.batch, r.versions, r.note)
	}
	if err != nil {
		return k.end(r, err)
	}
	r.batch, r.versions = r.batch[:0], 0
	return nil
}

// end adds no more versions to a run. The caller holds mu.
func (k *diskKeeper) end(r *openRun, why error) error {
	k.cache.log.Warn("newer metadata is not cached", "op", "cache", "table", k.table, "path", r.dir, "err", why)
	r.log.close()
	*r = openRun{dir: r.dir}
	return why
}

// flushAll writes all batches.
func (k *diskKeeper) flushAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
	for _, r := range k.runs {
		_ = k.flush(r) // which says what went wrong
	}
}

// forget implements keeper.
func (k *diskKeeper) forget(_ context.Context, serial uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.runs[serial]
	if r == nil {
		return nil
	}
	delete(k.runs, serial)
	if r.log != nil {
		r.log.close()
	}
	if r.dir == "" || k.own.held() != nil { // another's
		return nil
	}
	err := os.RemoveAll(r.dir)
	if err != nil {
		k.cache.tell("a part of it cannot be deleted", err)
	}
	return err
}

// close implements keeper.
func (k *diskKeeper) close() error {
	k.flushAll()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leave()
	return nil
}

// discard deletes all that is kept, and keeps nothing more. Bases that are
// open stay readable.
func (k *diskKeeper) discard() error {
	k.mu.Lock()
	k.discarded = true
	k.cache.stale.Store(k.table, true)
	k.mu.Unlock()

	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	if k.own != nil && k.own.held() == nil {
		err = k.own.clear()
	}
	k.leave()
	return err
}

// leave gives up the slot. The caller holds mu.
func (k *diskKeeper) leave() {
	for _, r := range k.runs {
		if r.log != nil {
			r.log.close()
		}
	}
	clear(k.runs)
	if k.own != nil {
		k.own.release()
	}
	k.own, k.claimed = nil, true
}
