package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
)

// replay is a way to walk from version to version.
type replay interface {
	// known returns the greatest version <= v from which commits can be
	// replayed, or nil.
	known(ctx context.Context, v int64) (*header, error)
	// worth is how many bytes of commits take as long to replay as the
	// checkpoint takes to read.
	worth(c *checkpointFile) int64
	// checkpoint starts from a checkpoint, on the way to v.
	checkpoint(ctx context.Context, c *checkpointFile, v int64) (*header, error)
	// advance replays at least one commit after base, which is nil before
	// version 0, and none after v.
	advance(ctx context.Context, base *header, v int64) (*header, error)
}

// nextVersion is the version after h, which is nil for nothing.
func nextVersion(h *header) int64 {
	if h == nil {
		return 0
	}
	return h.version + 1
}

// replay builds v from the start from which it takes least. A checkpoint that
// does not read is passed over for an older start if the commits reach back to
// it.
func (n *incarnation) replay(ctx context.Context, v int64, r replay) (*header, error) {
	l := n.log()
	known, err := r.known(ctx, v)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, c := range l.checkpointsUpTo(v) {
		next := nextVersion(known)
		if c.version < next || !l.contiguous(c.version+1, v) {
			break
		}
		h, err := n.startAt(ctx, &c, next, v, r)
		if h != nil && err == nil {
			return n.walk(ctx, h, v, r)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errCheckpoint) {
			return nil, err
		}
		n.table.log.Warn("checkpoint passed over", "op", "load", "table", n.table.name, "version", c.version, "err", err)
		if failed == nil {
			failed = err
		}
	}
	if !l.contiguous(nextVersion(known), v) {
		if failed != nil {
			return nil, failed
		}
		return nil, fault.New(ErrCorrupt, "the log has a gap before this version").AtVersion(v)
	}
	return n.walk(ctx, known, v, r)
}

// startAt starts from a checkpoint. It returns nil if the commits from next on
// are the better start; also then a checkpoint that contradicts itself is
// refused.
func (n *incarnation) startAt(ctx context.Context, c *checkpointFile, next, v int64, r replay) (*header, error) {
	bytes, ok := n.log().commitBytes(next, c.version)
	if ok && c.kind == uuidCheckpoint {
		// Only then it is known how much there is to read.
		if _, err := c.readState(ctx, n.table.store); err != nil {
			return nil, err
		}
	}
	if !ok || bytes+commitOpen*(c.version-next+1) > r.worth(c) {
		return r.checkpoint(ctx, c, v)
	}
	_, err := c.readState(ctx, n.table.store)
	return nil, err
}

// walk replays commits from h, nil for nothing, up to v.
func (n *incarnation) walk(ctx context.Context, h *header, v int64, r replay) (*header, error) {
	for nextVersion(h) <= v {
		var err error
		if h, err = r.advance(ctx, h, v); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// headerReplay walks without files.
type headerReplay struct{ *incarnation }

func (r *headerReplay) known(ctx context.Context, v int64) (*header, error) {
	if h := r.noted(ctx, v); h != nil {
		return h, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	best := r.headers[v-1] // as after a commit, however many versions there are
	if best != nil {
		return best, nil
	}
	for version, h := range r.headers {
		if version <= v && (best == nil || version > best.version) {
			best = h
		}
	}
	return best, nil
}

// A checkpoint's state is found in about the time that so many bytes of commits
// take, whatever the number of files.
const stateWorth = 1 << 20

func (r *headerReplay) worth(*checkpointFile) int64 { return stateWorth }

func (r *headerReplay) checkpoint(ctx context.Context, c *checkpointFile, _ int64) (*header, error) {
	return c.readState(ctx, r.table.store)
}

func (r *headerReplay) advance(ctx context.Context, base *header, _ int64) (*header, error) {
	v := nextVersion(base)
	if h := r.cached(v); h != nil {
		return h, nil
	}
	b := newHeaderBuilder(base, v)
	if _, err := r.readCommit(ctx, v, func(a action.Action) error {
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
type fileReplay struct {
	*incarnation
	// dirs are the directories of files laid out as this shape says.
	dirs    *dirNames
	laidOut *shape
}

func (r *fileReplay) dirsOf(s *shape) *dirNames {
	if r.laidOut == nil || !r.laidOut.sameLayout(s) {
		r.dirs, r.laidOut = newDirNames(s.partitions), s
	}
	return r.dirs
}

func (r *fileReplay) known(ctx context.Context, v int64) (*header, error) {
	if err := r.openIndex(ctx); err != nil {
		return nil, err
	}
	for _, span := range slices.Backward(r.coverage()) {
		if span.First <= v {
			return r.coveredHeader(ctx, min(span.Last, v))
		}
	}
	return nil, nil
}

// coveredHeader returns the header of a version that the index holds.
func (r *fileReplay) coveredHeader(ctx context.Context, v int64) (*header, error) {
	if h := r.cached(v); h != nil {
		return h, nil
	}
	if h := r.noted(ctx, v); h != nil {
		return h, nil
	}
	return r.replay(ctx, v, &headerReplay{r.incarnation})
}

// Measured on a million files with statistics: to replay a byte of a commit
// takes about eight times as long as to load a byte of a checkpoint. To open the
// files counts too.
const (
	checkpointShare = 8
	checkpointOpen  = 64 << 10
	commitOpen      = 2 << 10
)

func (r *fileReplay) worth(c *checkpointFile) int64 { return checkpointOpen + c.size()/checkpointShare }

func (r *fileReplay) checkpoint(ctx context.Context, c *checkpointFile, v int64) (*header, error) {
	h, err := c.readState(ctx, r.table.store)
	if err != nil {
		return nil, err
	}
	if err := c.findSidecars(ctx, r.table.store); err != nil {
		return nil, err
	}
	folded, reached, err := r.fold(ctx, h, r.foldTo(c, v))
	if err != nil {
		return nil, err
	}
	if reached == nil {
		return h, r.cover(ctx, h, c.logFiles(), c.files(ctx, r.table.store, h, nil))
	}
	return reached.header, r.foldOnto(ctx, h, c.files(ctx, r.table.store, h, folded.keeps), folded, reached)
}

// foldTo is the version up to which commits are folded onto a checkpoint on the
// way to v. The first version that is wanted is loaded at once. Who then wants
// another one before the next checkpoint may want all of them.
func (r *fileReplay) foldTo(c *checkpointFile, v int64) int64 {
	if v-c.version > r.table.foldBeyond {
		return v - r.table.unfolded
	}
	end := r.log().checkpointAfter(v)
	for _, span := range r.coverage() {
		if c.version < span.Last && span.First < end {
			return c.version
		}
	}
	return v
}

// cover loads a version, which was read from these files of the log.
func (r *fileReplay) cover(ctx context.Context, h *header, from []logFile, files fileSeq) error {
	if err := r.opened().Load(ctx, h.version, r.fullNote(h, from), files); err != nil {
		return err
	}
	r.remember(h)
	return nil
}

func (r *fileReplay) advance(ctx context.Context, base *header, last int64) (*header, error) {
	v := nextVersion(base)
	if last-v >= r.table.foldBeyond {
		if h, err := r.advanceFar(ctx, base, last-r.table.unfolded); h != nil || err != nil {
			return h, err
		}
	}
	if h := r.cached(v); h != nil && r.covers(v) {
		return h, nil
	}
	c, err := r.readChange(ctx, base, v)
	if err != nil {
		return nil, err
	}
	switch {
	case base == nil:
		err = r.cover(ctx, c.header, c.from, sliceSeq(c.added))
	case !base.shape.sameLayout(c.header.shape):
		err = r.rearrange(ctx, base, c)
	default:
		err = r.opened().Apply(ctx, v, r.note(base, c), c.gone, c.added)
	}
	if err != nil {
		return nil, err
	}
	r.remember(c.header)
	return c.header, nil
}

// advanceFar covers a version without those on the way to it, nil if there is
// none before the layout of the files changes.
func (r *fileReplay) advanceFar(ctx context.Context, base *header, last int64) (*header, error) {
	folded, reached, err := r.fold(ctx, base, last)
	if err != nil || reached == nil {
		return nil, err
	}
	staying := sliceSeq(nil)
	if base != nil {
		staying = folded.staying(r.filesOf(ctx, base))
	}
	return reached.header, r.foldOnto(ctx, base, staying, folded, reached)
}

// filesOf yields the files of a version that the index covers. If that is lost
// on the way, nothing was made of what was read so far.
func (r *fileReplay) filesOf(ctx context.Context, h *header) fileSeq {
	return func(yield func(metacache.File, error) bool) {
		for f, err := range r.opened().Files(ctx, h.version) {
			if err != nil && !r.covers(h.version) {
				err = fault.Wrap(metacache.ErrNotCovered, err, "").AtVersion(h.version)
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}
