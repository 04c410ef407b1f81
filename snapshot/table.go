package snapshot

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetview"
	"github.com/deltafs/deltafs/internal/rendercache"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
)

// Table follows the log of one table. It is safe for concurrent use.
type Table struct {
	name  string
	store store.Store
	log   *slog.Logger
	// cache is nil for indexes in memory.
	cache Cache
	// places are from where files outside the table are served.
	places *store.Places
	// foldBeyond and unfolded are the constants of these names.
	foldBeyond, unfolded int64

	// refreshing is held by whoever lists or probes the log.
	refreshing semaphore

	mu sync.Mutex
	// life is the incarnation at hand, nil while the table is gone.
	life *incarnation
	// retired are the indexes of earlier incarnations, which snapshots may
	// still use.
	retired []metacache.Index
	// announced is the latest version that Refresh has reported.
	announced int64
	// idBase is the FileID after which the next incarnation begins.
	idBase metacache.FileID

	view           View
	fillPartitions bool
	rendered       *rendercache.Cache
	// ownsRendered says that nobody else uses rendered.
	ownsRendered bool
	// plan is parquetview.Plan.
	plan func(context.Context, io.ReaderAt, int64, parquetview.Wanted) (*parquetview.View, error)
	// sizes and plans are those of served files; IDs are unique over all
	// incarnations.
	sizes sizeBook
	plans planCache
	// planning is held by those who plan: a page of a file that loses rows may
	// be large.
	planning chan struct{}
}

// Open opens the table whose root is st. ErrNotTable without a log.
// A table whose latest version must be refused opens: At says why.
func Open(ctx context.Context, st store.Store, o Options) (*Table, error) {
	t := &Table{
		name:       o.Name,
		store:      st,
		log:        o.Logger,
		cache:      o.Cache,
		places:     store.NewPlaces(append([]string{st.Root()}, o.AllowPaths...)...),
		foldBeyond: foldBeyond,
		unfolded:   unfolded,
		refreshing: newSemaphore(),
		view:       o.View,
		rendered:   o.Rendered,
		plan:       parquetview.Plan,
		planning:   make(chan struct{}, runtime.GOMAXPROCS(0)),

		fillPartitions: o.FillPartitions,
	}
	if t.rendered == nil {
		t.rendered, t.ownsRendered = rendercache.New(rendercache.Options{
			Size: rendercache.DefaultSize, Floor: rendercache.DefaultFloor, Logger: o.Logger,
		}), true
	}
	if t.name == "" {
		t.name = st.Root()
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	l, err := list(ctx, st)
	if err != nil {
		return nil, t.fault(err)
	}
	t.life = newIncarnation(t, l, 0)
	t.announced = l.latest
	return t, nil
}

// Close releases the index. Snapshots must not be used afterwards.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	indexes := t.retired
	if t.life != nil {
		indexes = t.life.retire(indexes)
	}
	t.life, t.retired = nil, nil
	if t.ownsRendered {
		t.rendered.Close()
	}
	err := t.places.Close()
	for _, index := range indexes {
		err = errors.Join(err, index.Close())
	}
	return err
}

// Idle says that nobody has used the table for a while. What can be loaded
// again may be given up; FileIDs stay valid.
func (t *Table) Idle() { t.plans.clear() }

// Name is Options.Name.
func (t *Table) Name() string { return t.name }

// Store is the table's storage.
func (t *Table) Store() store.Store { return t.store }

// Latest is the newest version known, without I/O; -1 when the last Refresh
// found the table gone.
func (t *Table) Latest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life == nil {
		return -1
	}
	return t.life.log().latest
}

// current is the incarnation at hand. ErrNotTable when the table is gone.
func (t *Table) current() (*incarnation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life == nil {
		return nil, fault.New(ErrNotTable, "the table was deleted").AtTable(t.name)
	}
	return t.life, nil
}

// fault adds the table to an error that does not name it.
func (t *Table) fault(err error) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(err, &f) && f.Table == "" {
		f.Table = t.name
	}
	return err
}

// At returns version v. ErrNoVersion, ErrUnsupported, ErrCorrupt.
func (t *Table) At(ctx context.Context, v int64) (*Snapshot, error) {
	s, err := t.at(ctx, v)
	if logChanged(err) {
		// Someone cleaned the log up since it was listed.
		if err := t.relisted(ctx); err != nil {
			return nil, err
		}
		s, err = t.at(ctx, v)
	}
	if logChanged(err) && !errors.Is(err, errSidecar) {
		err = fault.Wrap(ErrNoVersion, err, "the log changed while it was read").AtVersion(v).WithHint("try again")
	}
	return s, t.fault(err)
}

// logChanged says that files of the log are not what they were when listed.
func logChanged(err error) bool {
	return errors.Is(err, store.ErrNotExist) || errors.Is(err, errReplaced)
}

func (t *Table) at(ctx context.Context, v int64) (*Snapshot, error) {
	life, err := t.current()
	if err != nil {
		return nil, err
	}
	h, err := life.files(ctx, v)
	if err != nil {
		return nil, err
	}
	if err := h.readable(); err != nil {
		return nil, err
	}
	s := &Snapshot{table: t, life: life, header: h}
	if r := life.rendition(h); r != nil {
		s.ordinal = r.ordinal
	}
	return s, nil
}

// Header returns protocol and metadata of v without its files, also when the
// version's features are not supported.
func (t *Table) Header(ctx context.Context, v int64) (*action.Protocol, *action.Metadata, error) {
	life, err := t.current()
	if err != nil {
		return nil, nil, err
	}
	h, err := life.header(ctx, v)
	if logChanged(err) {
		// As in At.
		if err := t.relisted(ctx); err != nil {
			return nil, nil, err
		}
		h, err = life.header(ctx, v)
	}
	if err != nil {
		return nil, nil, t.fault(err)
	}
	return h.protocol, h.metadata, nil
}

// ReadCommit returns the actions of one commit file, in order. ErrNoVersion
// if the log has none, ErrCorrupt.
func (t *Table) ReadCommit(ctx context.Context, v int64) ([]action.Action, error) {
	object, err := t.OpenCommit(ctx, v)
	if err != nil {
		return nil, err
	}
	defer object.Close()
	var out []action.Action
	err = readCommit(newActionReader(ctx, object), v, func(a action.Action) error {
		out = append(out, a)
		return nil
	})
	return out, t.fault(err)
}

// ByID returns a file that some snapshot has shown, without looking at any
// version: a file that shares its name with others has this name, and not what
// a listing shows, and the caller knows under which metadata it is shown. ErrNotExist for an ID of a table that was since made again,
// or of a file in none of the versions that the index still holds.
func (t *Table) ByID(ctx context.Context, id metacache.FileID) (File, error) {
	life, f, err := t.byID(ctx, id)
	if err != nil {
		return File{}, err
	}
	return life.file(f, f.Name, life.log().latest, 0), nil
}

// FileByID is ByID with Dir and Name as in the newest version at hand that
// shows the file, if they differ.
func (t *Table) FileByID(ctx context.Context, id metacache.FileID) (File, error) {
	life, f, err := t.byID(ctx, id)
	if err != nil {
		return File{}, err
	}
	for _, v := range life.newestCovered() {
		s := &Snapshot{table: t, life: life, header: &header{version: v}}
		if live, ok, err := s.ByPath(ctx, f.Path); err == nil && ok && live.ID == id {
			return live, nil
		}
	}
	return life.file(f, f.Name, life.log().latest, 0), nil
}

func (t *Table) byID(ctx context.Context, id metacache.FileID) (*incarnation, metacache.File, error) {
	life, err := t.current()
	if err != nil {
		return nil, metacache.File{}, err
	}
	var f metacache.File
	ok := id > life.idBase
	if ok {
		if f, ok, err = life.fileByID(ctx, id-life.idBase); err != nil {
			return nil, f, t.fault(err)
		}
	}
	if !ok {
		return nil, f, fault.New(ErrNotExist, "no file has the id %d", id).AtTable(t.name)
	}
	return life, f, nil
}

// file makes a File of an index entry shown under a name.
func (n *incarnation) file(f metacache.File, shown string, version int64, ordinal uint32) File {
	out := File{
		ID: n.idBase + f.ID, SchemaOrdinal: ordinal, Dir: f.Dir, Name: shown, Version: version,
		Size: f.Size, ModTime: time.UnixMilli(f.ModTime).UTC(),
		Path: cmp.Or(f.Raw, f.Path), DV: f.DV, life: n, origin: origin(f.Origin), logged: f.Size,
	}
	if ordinal == 0 && n.table.HasOtherSizes() {
		if size, ok := n.table.sizes.get(out); ok {
			out.Size = size
		}
	}
	return out
}

// semaphore is a mutex that can be waited for with a context.
type semaphore chan struct{}

func newSemaphore() semaphore { return make(semaphore, 1) }

func (s semaphore) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s semaphore) release() { <-s }
