package snapshot

import (
	"context"
	"errors"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

// replay is a way to walk from version to version.
type replay interface {
	// known returns the greatest version <= v from which commits can be
	// replayed, or nil.
	known(ctx context.Context, v int64) (*header, error)
	// checkpoint starts from a checkpoint.
	checkpoint(ctx context.Context, c *checkpointFile) (*header, error)
	// commit reads the commit after base; base is nil before version 0.
	commit(ctx context.Context, base *header, v int64) (*header, error)
}

// replay builds v from the nearest start. A checkpoint that does not read is
// passed over for an older start if the commits reach back to it.
func (n *incarnation) replay(ctx context.Context, v int64, r replay) (*header, error) {
	l := n.log()
	known, err := r.known(ctx, v)
	if err != nil {
		return nil, err
	}
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

func (r *headerReplay) known(_ context.Context, v int64) (*header, error) {
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

func (r *fileReplay) known(ctx context.Context, v int64) (*header, error) {
	if err := r.openIndex(ctx); err != nil {
		return nil, err
	}
	for _, span := range slices.Backward(r.coverage()) {
		if span.First <= v {
			return r.cached(min(span.Last, v)), nil
		}
	}
	return nil, nil
}

func (r *fileReplay) checkpoint(ctx context.Context, c *checkpointFile) (*header, error) {
	h, err := c.readState(ctx, r.table.store)
	if err != nil {
		return nil, err
	}
	if err := r.opened().Load(ctx, c.version, nil, c.files(ctx, r.table.store, h)); err != nil {
		return nil, err
	}
	r.remember(h)
	return h, nil
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
		err = r.opened().Load(ctx, v, nil, sliceSeq(c.added))
	case !base.shape.sameLayout(c.header.shape):
		err = r.rearrange(ctx, base, c)
	default:
		err = r.opened().Apply(ctx, v, nil, c.gone, c.added)
	}
	if err != nil {
		return nil, err
	}
	r.remember(c.header)
	return c.header, nil
}
