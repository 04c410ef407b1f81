package snapshot

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
)

// incarnation is everything known of one life of a table, from its creation
// to its deletion. A table made again at the same path is another one.
type incarnation struct {
	table *Table
	index metacache.Index
	// idBase is added to the index's FileIDs, so that no two incarnations
	// share one.
	idBase metacache.FileID
	// loading is held by whoever replays the log; it comes before mu.
	loading semaphore

	mu sync.Mutex
	// over is set when another incarnation took its place: the log at hand is
	// that one's, and nothing may be read from it any more.
	over    bool
	listing *listing
	// headers are those of all covered versions and of some others.
	headers map[int64]*header
	// births say in which version FileIDs were first seen, ascending by ID.
	births   []birth
	timeline *timeline
	// inCommit caches in-commit timestamps by version.
	inCommit map[int64]int64
	vacuum   *vacuumTrace
}

func newIncarnation(t *Table, l *listing, idBase metacache.FileID) *incarnation {
	return &incarnation{
		table:    t,
		index:    metacache.NewMemory(),
		idBase:   idBase,
		loading:  newSemaphore(),
		listing:  l,
		headers:  map[int64]*header{},
		inCommit: map[int64]int64{},
	}
}

func (n *incarnation) log() *listing {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listing
}

func (n *incarnation) setLog(l *listing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listing = l
}

// end marks the incarnation as over. It returns the FileID after which the
// next one may begin.
func (n *incarnation) end() metacache.FileID {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	return n.idBase + n.index.LastID()
}

// alive is an error once another incarnation took this one's place.
func (n *incarnation) alive() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return fault.New(ErrNoVersion, "the table was deleted and made again").AtTable(n.table.name)
	}
	return nil
}

func (n *incarnation) cached(v int64) *header {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.headers[v]
}

func (n *incarnation) remember(h *header) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.headers[h.version] = h
}

// birth says that the IDs up to last, from that of the birth before on, were
// assigned when version was indexed.
type birth struct {
	last    metacache.FileID
	version int64
}

// indexed notes that the index now holds the version.
func (n *incarnation) indexed(h *header) {
	last := n.index.LastID()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.headers[h.version] = h
	if k := len(n.births); k == 0 || n.births[k-1].last < last {
		n.births = append(n.births, birth{last, h.version})
	}
}

// born returns a version that has the file with this ID of the index.
func (n *incarnation) born(id metacache.FileID) (int64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := sort.Search(len(n.births), func(i int) bool { return n.births[i].last >= id })
	if i == len(n.births) {
		return 0, false
	}
	return n.births[i].version, true
}

// fileByID finds a file of the index, which may have had to drop its versions.
func (n *incarnation) fileByID(ctx context.Context, id metacache.FileID) (metacache.File, bool, error) {
	f, ok, err := n.index.ByID(ctx, id)
	if ok || err != nil {
		return f, ok, err
	}
	v, ok := n.born(id)
	if !ok {
		return f, false, nil
	}
	if _, err := n.files(ctx, v); err != nil {
		return f, false, err
	}
	return n.index.ByID(ctx, id)
}

// covers reports whether the index holds v.
func (n *incarnation) covers(v int64) bool {
	return slices.ContainsFunc(n.index.Coverage(), func(s metacache.Span) bool { return s.First <= v && v <= s.Last })
}

// newestCovered returns the last version of each covered span, newest first.
func (n *incarnation) newestCovered() []int64 {
	spans := n.index.Coverage()
	out := make([]int64, len(spans))
	for i, s := range spans {
		out[len(spans)-1-i] = s.Last
	}
	return out
}

// files makes version v known to the index and returns its header.
func (n *incarnation) files(ctx context.Context, v int64) (*header, error) {
	ready := func() *header {
		if h := n.cached(v); h != nil && n.covers(v) {
			return h
		}
		return nil
	}
	return n.build(ctx, v, ready, &fileReplay{n})
}

// header returns the header of v without loading its files.
func (n *incarnation) header(ctx context.Context, v int64) (*header, error) {
	return n.build(ctx, v, func() *header { return n.cached(v) }, &headerReplay{n})
}

// build returns what is ready, else replays the log. Replays run one at a
// time: those who wait for the same version find it ready, and when a caller
// gives up the next one takes over.
func (n *incarnation) build(ctx context.Context, v int64, ready func() *header, r replay) (*header, error) {
	if err := n.log().check(v); err != nil {
		return nil, err
	}
	if h := ready(); h != nil {
		return h, nil
	}
	if err := n.loading.acquire(ctx); err != nil {
		return nil, err
	}
	defer n.loading.release()
	if h := ready(); h != nil {
		return h, nil
	}
	if err := n.alive(); err != nil {
		return nil, err
	}
	return n.replay(ctx, v, r)
}

// replay is a way to walk from version to version.
type replay interface {
	// known returns the greatest version <= v from which commits can be
	// replayed, or nil.
	known(v int64) *header
	// checkpoint starts from a checkpoint.
	checkpoint(ctx context.Context, c *checkpointFile) (*header, error)
	// commit reads the commit after base; base is nil before version 0.
	commit(ctx context.Context, base *header, v int64) (*header, error)
}

// replay builds v from the nearest start. A checkpoint that does not read is
// passed over for an older start if the commits reach back to it.
func (n *incarnation) replay(ctx context.Context, v int64, r replay) (*header, error) {
	l := n.log()
	known := r.known(v)
	var failed error
	for _, c := range l.checkpointsUpTo(v) {
		if known != nil && known.version >= c.version {
			break
		}
		if !l.contiguous(c.version+1, v) {
			break
		}
		h, err := r.checkpoint(ctx, &c)
		if err == nil {
			return n.walk(ctx, h, v, r)
		}
		if !errors.Is(err, errCheckpoint) {
			return nil, err
		}
		n.table.log.Warn("checkpoint passed over", "op", "load", "table", n.table.name, "version", c.version, "err", err)
		if failed == nil {
			failed = err
		}
	}
	start := int64(0)
	if known != nil {
		start = known.version + 1
	}
	if !l.contiguous(start, v) {
		if failed != nil {
			return nil, failed
		}
		return nil, fault.New(ErrCorrupt, "the log has a gap before this version").AtVersion(v)
	}
	return n.walk(ctx, known, v, r)
}

// walk replays commits from h, nil for nothing, up to v.
func (n *incarnation) walk(ctx context.Context, h *header, v int64, r replay) (*header, error) {
	next := int64(0)
	if h != nil {
		next = h.version + 1
	}
	for ; next <= v; next++ {
		var err error
		if h, err = r.commit(ctx, h, next); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// headerReplay walks without files.
type headerReplay struct{ *incarnation }

func (r *headerReplay) known(v int64) *header {
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *header
	for version, h := range r.headers {
		if version <= v && (best == nil || version > best.version) {
			best = h
		}
	}
	return best
}

func (r *headerReplay) checkpoint(ctx context.Context, c *checkpointFile) (*header, error) {
	return c.readState(ctx, r.table.store)
}

func (r *headerReplay) commit(ctx context.Context, base *header, v int64) (*header, error) {
	if h := r.cached(v); h != nil {
		return h, nil
	}
	b := newHeaderBuilder(base, v)
	if err := r.readCommit(ctx, v, func(a action.Action) error {
		b.apply(a)
		return nil
	}); err != nil {
		return nil, err
	}
	h, err := b.finish()
	if err != nil {
		return nil, failLog(err, v)
	}
	r.remember(h)
	return h, nil
}

// fileReplay walks and fills the index.
type fileReplay struct{ *incarnation }

func (r *fileReplay) known(v int64) *header {
	for _, span := range slices.Backward(r.index.Coverage()) {
		if span.First <= v {
			return r.cached(min(span.Last, v))
		}
	}
	return nil
}

func (r *fileReplay) checkpoint(ctx context.Context, c *checkpointFile) (*header, error) {
	h, err := c.readState(ctx, r.table.store)
	if err != nil {
		return nil, err
	}
	if err := r.index.Load(ctx, c.version, nil, r.checkpointFiles(ctx, c, h)); err != nil {
		return nil, err
	}
	r.indexed(h)
	return h, nil
}

func (r *fileReplay) checkpointFiles(ctx context.Context, c *checkpointFile, h *header) fileSeq {
	return func(yield func(metacache.File, error) bool) {
		root := r.table.store.Root()
		for row, err := range c.files(ctx, r.table.store) {
			var f metacache.File
			if err == nil {
				f, err = indexRow(c, row, h, root)
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func indexRow(c *checkpointFile, row numberedAdd, h *header, root string) (metacache.File, error) {
	from, err := fromCheckpoint(c.version, row.number)
	if err != nil {
		return metacache.File{}, err
	}
	return indexFile(row.add, from, h, root)
}

func (r *fileReplay) commit(ctx context.Context, base *header, v int64) (*header, error) {
	if h := r.cached(v); h != nil && r.covers(v) {
		return h, nil
	}
	c, err := r.readChange(ctx, base, v)
	if err != nil {
		return nil, err
	}
	switch {
	case base == nil:
		err = r.index.Load(ctx, v, nil, sliceSeq(c.added))
	case !base.shape.sameLayout(c.header.shape):
		err = r.rearrange(ctx, base, c)
	default:
		err = r.index.Apply(ctx, v, nil, c.gone, c.added)
	}
	if err != nil {
		return nil, err
	}
	r.indexed(c.header)
	return c.header, nil
}
