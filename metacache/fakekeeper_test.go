package metacache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// FakeKeeper keeps runs on the heap, in bases that it builds anew, and checks
// how it is called.
type FakeKeeper struct {
	// Before is called before a run or a version is kept, which fails if it
	// returns an error.
	Before func() error
	// LastID is what the keeper says to have seen, if it is more than it has.
	LastID FileID

	mu       sync.Mutex
	runs     map[uint64]*keptRun
	bases    map[uint64]*fakeBase
	seen     map[uint64]bool
	last     uint64
	problems []error
}

// Open returns an index of what the keeper has.
func (k *FakeKeeper) Open() (*Runs, error) { return newRuns(context.Background(), k) }

// Problems returns what was wrong with the calls.
func (k *FakeKeeper) Problems() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(k.problems...)
}

// Runs returns how many runs are kept, and of how many the base is open.
func (k *FakeKeeper) Runs() (kept, open int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.bases {
		if !b.closed.Load() {
			open++
		}
	}
	return len(k.runs), open
}

// Break makes all open bases fail to read.
func (k *FakeKeeper) Break() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.bases {
		b.broken.Store(true)
	}
}

func (k *FakeKeeper) problem(format string, args ...any) {
	k.problems = append(k.problems, fmt.Errorf(format, args...))
}

func (k *FakeKeeper) restore(context.Context) (kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := kept{lastID: k.LastID, lastSerial: k.last}
	for serial, r := range k.runs {
		k.bases[serial] = &fakeBase{base: k.bases[serial].base, keeper: k}
		again := *r
		again.base = k.bases[serial]
		out.runs = append(out.runs, again)
		for f := range files(again.base) {
			out.lastID = max(out.lastID, f.ID)
		}
		for _, v := range again.versions {
			for _, c := range v.changes {
				out.lastID = max(out.lastID, c.file.ID)
			}
		}
	}
	return out, nil
}

func files(b base) iter.Seq[File] {
	return func(yield func(File) bool) {
		for f, err := range b.scan(context.Background(), 0, b.count()) {
			if err != nil || !yield(f) {
				return
			}
		}
	}
}

func (k *FakeKeeper) wants(int, int64) bool { return true }

func (k *FakeKeeper) keep(ctx context.Context, r keptRun) (base, error) {
	if err := k.before(ctx); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == nil {
		k.runs, k.bases, k.seen = map[uint64]*keptRun{}, map[uint64]*fakeBase{}, map[uint64]bool{}
	}
	if k.seen[r.serial] {
		k.problem("serial %d comes again", r.serial)
	}
	k.seen[r.serial] = true
	k.last = max(k.last, r.serial)
	b := newHeapBuilder()
	var ids []FileID
	rank := 0
	var before Key
	for f := range files(r.base) {
		if rank > 0 && before.Compare(f.Key) >= 0 {
			k.problem("run %d: %v comes after %v", r.serial, f.Key, before)
		}
		if !r.ownIDs && f.ID != r.firstID+FileID(rank) {
			k.problem("run %d: the file with rank %d has ID %d, the first %d", r.serial, rank, f.ID, r.firstID)
		}
		before = f.Key
		rank++
		ids = append(ids, f.ID)
		if err := b.add(&f); err != nil {
			return nil, err
		}
	}
	heap, err := b.finish(context.Background()) // it may be done when the context ends
	if err != nil {
		return nil, err
	}
	heap.setIDs(ids)
	out := &fakeBase{base: heap, keeper: k}
	versions := r.versions
	r.base, r.versions = nil, nil
	k.runs[r.serial], k.bases[r.serial] = &r, out
	for _, v := range versions {
		k.add(&r, v)
	}
	return out, nil
}

// add copies the next version of a run.
func (k *FakeKeeper) add(r *keptRun, v keptVersion) {
	if want := r.first + int64(len(r.versions)); v.version != want {
		k.problem("run %d: got version %d, want %d", r.serial, v.version, want)
	}
	v.note, v.changes = slices.Clone(v.note), slices.Clone(v.changes)
	keys := map[Key]bool{}
	for i := range v.changes {
		c := &v.changes[i]
		c.file.own()
		if keys[c.file.Key] {
			k.problem("run %d, version %d: two changes of %v", r.serial, v.version, c.file.Key)
		}
		keys[c.file.Key] = true
	}
	r.versions = append(r.versions, v)
}

func (k *FakeKeeper) applied(ctx context.Context, serial uint64, v keptVersion) error {
	if err := k.before(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.runs[serial]
	if !ok {
		k.problem("version %d of run %d, which is not kept", v.version, serial)
		return nil
	}
	k.add(r, v)
	return nil
}

func (k *FakeKeeper) before(ctx context.Context) error {
	if k.Before == nil {
		return ctx.Err()
	}
	return k.Before()
}

func (k *FakeKeeper) forget(_ context.Context, serial uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b := k.bases[serial]; b != nil && !b.closed.Load() {
		k.problem("run %d is forgotten with its base open", serial)
	}
	delete(k.runs, serial)
	delete(k.bases, serial)
	return nil
}

func (k *FakeKeeper) close() error {
	if _, open := k.Runs(); open > 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.problem("closed with %d bases open", open)
	}
	return nil
}

// fakeBase notices when it is used after it was closed, and fails on demand.
type fakeBase struct {
	base
	keeper         *FakeKeeper
	closed, broken atomic.Bool
}

var errBroken = errors.New("broken")

func (b *fakeBase) check() error {
	if b.closed.Load() {
		b.keeper.mu.Lock()
		defer b.keeper.mu.Unlock()
		b.keeper.problem("a base is used after it was closed")
	}
	if b.broken.Load() {
		return errBroken
	}
	return nil
}

func (b *fakeBase) bytes() int64 { return 0 }

func (b *fakeBase) close() {
	_ = b.check()
	b.closed.Store(true)
}

func (b *fakeBase) seekDir(ctx context.Context, dir string) (int, error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	return b.base.seekDir(ctx, dir)
}

func (b *fakeBase) seekName(ctx context.Context, d baseDir, name string) (int, error) {
	if err := b.check(); err != nil {
		return 0, err
	}
	return b.base.seekName(ctx, d, name)
}

func (b *fakeBase) file(ctx context.Context, rank int) (File, error) {
	if err := b.check(); err != nil {
		return File{}, err
	}
	return b.base.file(ctx, rank)
}

func (b *fakeBase) scan(ctx context.Context, first, end int) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		if err := b.check(); err != nil {
			yield(File{}, err)
			return
		}
		for f, err := range b.base.scan(ctx, first, end) {
			if err == nil {
				err = b.check()
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func (b *fakeBase) byPath(ctx context.Context, path string) (int, bool, error) {
	if err := b.check(); err != nil {
		return 0, false, err
	}
	return b.base.byPath(ctx, path)
}

func (b *fakeBase) byID(ctx context.Context, id FileID) (int, bool, error) {
	if err := b.check(); err != nil {
		return 0, false, err
	}
	return b.base.byID(ctx, id)
}

// Settle waits until the keeper has everything.
func (x *Runs) Settle() {
	for !x.settled() {
		x.worker.poke()
		runtime.Gosched()
	}
}

func (x *Runs) settled() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.runs {
		if x.worker.wants(r) || r.keeping.state == isKept && r.keeping.handed < len(r.versions) {
			return false
		}
	}
	return len(x.worker.forgotten) == 0
}

// WatchTexts counts the texts of the bases on the heap that are freed.
func WatchTexts(x *Runs) *atomic.Int64 {
	freed := new(atomic.Int64)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.runs {
		heap := r.base.base.(*heapBase)
		for i := range heap.chunks {
			runtime.AddCleanup(unsafe.StringData(heap.chunks[i].text), func(n *atomic.Int64) { n.Add(1) }, freed)
		}
	}
	return freed
}
