package writer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// checkpointGrace is how long the end of a mount waits for a checkpoint.
const checkpointGrace = 3 * time.Second

// checkpointRest lets checkpoints take no more than a quarter of a processor
// where appends to a large table follow each other fast.
func checkpointRest(took time.Duration) time.Duration { return 3 * took }

// checkpointer writes the checkpoints that commits of this process make due,
// one at a time and in the background: no commit waits for one or fails
// because of one.
type checkpointer struct {
	table  *snapshot.Table
	opts   Options
	logger *slog.Logger
	limits checkpointLimits
	now    func() time.Time
	// grace is how long close waits, rest how long one checkpoint waits after
	// another one that took so long.
	grace time.Duration
	rest  func(took time.Duration) time.Duration

	ctx    context.Context
	cancel context.CancelFunc

	// closing is closed by close, once.
	closing chan struct{}

	mu sync.Mutex
	// due is the newest version that is to get a checkpoint, nil for none.
	due *dueCheckpoint
	// idle is closed when nothing runs; nil before anything did.
	idle    chan struct{}
	running bool
	closed  bool
	// failing is set while one attempt after the other fails.
	failing bool
}

// dueCheckpoint is a version with its header.
type dueCheckpoint struct {
	version int64
	header  header
}

func newCheckpointer(t *snapshot.Table, o Options) *checkpointer {
	c := &checkpointer{
		table: t, opts: o, logger: o.Logger.With("op", "checkpoint", "table", t.Name()),
		limits: defaultCheckpointLimits, now: time.Now, grace: checkpointGrace, rest: checkpointRest,
		closing: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// committed notes that a version was committed. It does not wait.
func (c *checkpointer) committed(version int64, h header) {
	if version == 0 || version%checkpointInterval(h.config()) != 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.due = &dueCheckpoint{version, h}
	if !c.running {
		c.running, c.idle = true, make(chan struct{})
		go c.run(c.idle)
	}
}

// run works until nothing is due, with a rest after each checkpoint. Of what
// became due meanwhile the newest one is enough.
func (c *checkpointer) run(idle chan struct{}) {
	defer close(idle)
	for {
		c.mu.Lock()
		due := c.due
		c.due = nil
		if due == nil || c.ctx.Err() != nil {
			c.running = false
			c.mu.Unlock()
			c.giveUp(due)
			return
		}
		c.mu.Unlock()
		start := time.Now()
		_, err := c.checkpoint(c.ctx, due.header, due.version)
		c.report(err)
		if err != nil {
			c.giveUp(due)
		}
		c.wait(c.rest(time.Since(start)))
	}
}

// giveUp says that the end of the mount came before a checkpoint that was due.
func (c *checkpointer) giveUp(due *dueCheckpoint) {
	if due != nil && c.ctx.Err() != nil {
		c.logger.Info("checkpoint given up", "version", due.version, "hint", "deltafs checkpoint "+c.table.Name()+" writes one")
	}
}

// wait waits, but not when the mount ends.
func (c *checkpointer) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closing:
	}
}

// report tells of a failure once, until a checkpoint succeeds: another attempt
// follows after a few commits, and then the next.
func (c *checkpointer) report(err error) {
	c.mu.Lock()
	again := c.failing || c.ctx.Err() != nil
	c.failing = err != nil
	c.mu.Unlock()
	switch {
	case err == nil:
	case again, errors.Is(err, snapshot.ErrNoVersion): // the table was made again
		c.logger.Debug("no checkpoint", "err", err)
	case errors.Is(err, ErrNoCheckpoint):
		c.logger.Info("no checkpoint", "err", err)
	default:
		c.logger.Warn("checkpoint failed", "err", err)
		if c.opts.Report != nil {
			c.opts.Report("checkpoint", "", err)
		}
	}
}

// close waits a moment for what runs, and then gives it up: what it has
// written has no name, and gets none any more.
func (c *checkpointer) close(ctx context.Context) {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
	}
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return
	}
	// Once for what it has to do, and once for it to notice that it must not.
	for range 2 {
		timer := time.NewTimer(c.grace)
		select {
		case <-idle:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		c.cancel()
	}
}

// CheckpointResult says what became of a checkpoint.
type CheckpointResult struct {
	Version int64
	// Written is false if the version had a checkpoint already.
	Written bool
	// Files is the number of live files, Actions that of rows and Size that of
	// bytes, of a checkpoint that was written.
	Files, Actions, Size int64
	// Deleted is the number of expired log files that were deleted.
	Deleted int
}

// Checkpoint writes a classic checkpoint of the latest version and cleans the
// log up as the table's properties say. ErrNoCheckpoint, ErrReadOnly.
func Checkpoint(ctx context.Context, t *snapshot.Table, o Options) (CheckpointResult, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	v := t.Latest()
	p, m, err := t.Header(ctx, v)
	if err != nil {
		return CheckpointResult{}, err
	}
	c := newCheckpointer(t, o)
	defer c.cancel()
	return c.checkpoint(ctx, header{p, m}, v)
}

// checkpoint writes the checkpoint of a version, which h is the header of or
// of a later one, and cleans up. A version that another writer gave a
// checkpoint meanwhile is done.
func (c *checkpointer) checkpoint(ctx context.Context, h header, v int64) (CheckpointResult, error) {
	out := CheckpointResult{Version: v}
	life := c.table.Incarnation()
	// The newest checkpoints may not have been listed yet.
	err := c.table.Relist(ctx)
	if err == nil {
		err = checkWritable(h)
	}
	var d *checkpointDraft
	if err == nil {
		d, err = c.write(ctx, life, h, v)
	}
	if d != nil {
		out.Written, out.Files, out.Actions, out.Size = true, d.totals.Files, d.rows, d.size
	}
	if err == nil {
		out.Deleted, err = c.cleanUp(ctx, life, h)
	}
	return out, locate(err, c.table.Name())
}

// write returns the checkpoint that it wrote, nil if there is one.
func (c *checkpointer) write(ctx context.Context, life any, h header, v int64) (*checkpointDraft, error) {
	if err := checkpointable(h, v); err != nil {
		return nil, err
	}
	if _, err := c.table.Store().Head(ctx, snapshot.CheckpointName(v)); !errors.Is(err, store.ErrNotExist) {
		return nil, err
	}
	old, err := expiry(h.config(), c.now())
	if err != nil {
		return nil, err
	}
	start := c.now()
	b := &checkpointBuilder{table: c.table, version: v, tooOld: old, limits: c.limits}
	d, err := b.build(ctx)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := b.verify(ctx, d); err != nil {
		return nil, err
	}
	if err := c.table.SameLog(ctx, life); err != nil {
		return nil, err
	}
	err = c.table.Store().Publish(ctx, d.file, snapshot.CheckpointName(v))
	if errors.Is(err, store.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(nil, err, "cannot write the checkpoint").AtVersion(v)
	}
	c.logger.Info("wrote a checkpoint", "version", v, "files", d.totals.Files, "bytes", d.size, "took", c.now().Sub(start))
	return d, c.point(ctx, d)
}
