package snapshot

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
)

// incarnation is everything known of one life of a table, from its creation
// to its deletion. A table made again at the same path is another one.
type incarnation struct {
	table *Table
	// idBase is added to the index's FileIDs, so that no two incarnations
	// share one.
	idBase metacache.FileID
	// loading is held by whoever replays the log; it comes before mu.
	loading semaphore
	// vectors are deletion vectors that were read lately.
	vectors vectorCache

	mu sync.Mutex
	// over is set when another incarnation took its place: the log at hand is
	// that one's, and nothing may be read from it any more.
	over    bool
	listing *listing
	// index is nil until it is first needed.
	index metacache.Index
	// headers are those that were needed so far. A covered version may be without
	// one if the index was opened with it. When there are more than mostHeaders,
	// those go whose versions the index has dropped.
	headers     map[int64]*header
	mostHeaders int
	// restored is the header made last of a full note.
	restored *header
	timeline *timeline
	// copyChecked is set once checkCopied has looked.
	copyChecked bool
	// inCommit caches in-commit timestamps by version.
	inCommit   map[int64]int64
	vacuum     *vacuumTrace
	renditions renditions
}

func newIncarnation(t *Table, l *listing, idBase metacache.FileID) *incarnation {
	return &incarnation{
		table:    t,
		idBase:   idBase,
		loading:  newSemaphore(),
		listing:  l,
		headers:  map[int64]*header{},
		inCommit: map[int64]int64{},

		mostHeaders: leastHeaders,
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
	if n.index == nil {
		return n.idBase
	}
	return n.idBase + n.index.LastID()
}

// retire adds the index, if there is one, to those that are to be closed.
func (n *incarnation) retire(indexes []metacache.Index) []metacache.Index {
	if index := n.opened(); index != nil {
		indexes = append(indexes, index)
	}
	return indexes
}

// opened returns the index, nil before it was needed. Whoever has a snapshot
// has an index.
func (n *incarnation) opened() metacache.Index {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.index
}

// openIndex opens the index unless it is open. The caller holds loading.
func (n *incarnation) openIndex(ctx context.Context) error {
	if n.opened() != nil {
		return nil
	}
	index, err := n.newIndex(ctx)
	if err != nil {
		return err
	}
	n.mu.Lock()
	over := n.over
	if !over {
		n.index = index
	}
	n.mu.Unlock()
	if over {
		return errors.Join(n.alive(), index.Close())
	}
	return nil
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

// leastHeaders is how many headers are kept whatever the index covers.
const leastHeaders = 1000

func (n *incarnation) remember(h *header) {
	n.mu.Lock()
	n.headers[h.version] = h
	many := len(n.headers) > n.mostHeaders
	n.mu.Unlock()
	if many {
		n.forgetHeaders(h.version)
	}
}

// forgetHeaders drops the headers of versions that the index does not cover,
// which can be read again, but for the one that was made last.
func (n *incarnation) forgetHeaders(last int64) {
	spans := n.coverage()
	n.mu.Lock()
	defer n.mu.Unlock()
	for v := range n.headers {
		covered := slices.ContainsFunc(spans, func(s metacache.Span) bool { return s.First <= v && v <= s.Last })
		if !covered && v != last {
			delete(n.headers, v)
		}
	}
	n.mostHeaders = 2*len(n.headers) + leastHeaders
}

// fileByID finds a file of the versions that the index holds.
func (n *incarnation) fileByID(ctx context.Context, id metacache.FileID) (metacache.File, bool, error) {
	index := n.opened()
	if index == nil {
		return metacache.File{}, false, nil
	}
	return index.ByID(ctx, id)
}

// coverage returns the versions that the index holds.
func (n *incarnation) coverage() []metacache.Span {
	if index := n.opened(); index != nil {
		return index.Coverage()
	}
	return nil
}

// covers reports whether the index holds v.
func (n *incarnation) covers(v int64) bool {
	return slices.ContainsFunc(n.coverage(), func(s metacache.Span) bool { return s.First <= v && v <= s.Last })
}

// newestCovered returns the last version of each covered span, newest first.
func (n *incarnation) newestCovered() []int64 {
	spans := n.coverage()
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
	return n.build(ctx, v, ready, &fileReplay{incarnation: n})
}

// header returns the header of v without loading its files.
func (n *incarnation) header(ctx context.Context, v int64) (*header, error) {
	return n.build(ctx, v, func() *header { return n.cached(v) }, &headerReplay{n})
}

// build returns what is ready, else replays the log. Replays run one at a
// time: those who wait for the same version find it ready, and when a caller
// gives up the next one takes over.
func (n *incarnation) build(ctx context.Context, v int64, ready func() *header, r replay) (h *header, err error) {
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
	err = again(func() (err error) {
		h, err = n.replay(ctx, v, r)
		return err
	})
	return h, err
}

// maxAgain is more than an index has runs of versions: each loss is that of one.
const maxAgain = 16

// again does a step that starts from what the index covers, and does it again
// while the index loses that on the way, as when a cache turns out to be damaged
// where it is first read. The next time starts from something else, in the end
// from the log.
func again(step func() error) error {
	err := step()
	for tries := 0; tries < maxAgain && errors.Is(err, metacache.ErrNotCovered); tries++ {
		err = step()
	}
	return err
}
