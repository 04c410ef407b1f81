package writer

import (
	"context"
	"log/slog"
	"path"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// commitTimeout bounds a commit from its first attempt on, and the work after
// it.
const commitTimeout = 60 * time.Second

// tableLog is what a commit needs of [snapshot.Table].
type tableLog interface {
	Name() string
	Store() store.Store
	Latest() int64
	Refresh(ctx context.Context) (snapshot.Event, error)
	Incarnation() any
	CommitTime(ctx context.Context, v int64) (time.Time, bool, error)
	ReadCommit(ctx context.Context, v int64) ([]action.Action, error)
	Header(ctx context.Context, v int64) (*action.Protocol, *action.Metadata, error)
}

// committer turns transactions into commit files, one at a time.
type committer struct {
	log    tableLog
	opts   Options
	logger *slog.Logger
	gate   gate
	// turn is held by whoever commits: two of one process would only make each
	// other lose. It is a channel because waiting for it can be cancelled.
	turn chan struct{}
	// queue are the transactions that may share the next commit.
	queue queue
	// winners are commits of late; the turn guards them.
	winners winners

	now                      func() time.Time
	timeout, readBackTimeout time.Duration
	// pause is how long to wait before another try, the n-th from 1.
	pause func(n int) time.Duration
	// afterCommit is told of every version that was committed, and its header.
	// It must not block.
	afterCommit func(version int64, h header)
}

func newCommitter(log tableLog, o Options) *committer {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &committer{
		log:             log,
		opts:            o,
		logger:          o.Logger.With("op", "commit", "table", log.Name()),
		turn:            make(chan struct{}, 1),
		now:             time.Now,
		timeout:         commitTimeout,
		readBackTimeout: readBackTimeout,
		pause:           backoff,
		afterCommit:     func(int64, header) {},
	}
}

// writable is [Table.Writable].
func (c *committer) writable(ctx context.Context) error {
	if c.opts.ReadOnly {
		return c.locate(errMountReadOnly())
	}
	h, err := c.header(ctx, c.log.Latest())
	if err != nil {
		return err
	}
	if err := c.gate.check(h); err != nil {
		return c.locate(err)
	}
	return c.locate(c.permitted())
}

// permitted returns why this process may not write to the table, as far as the
// storage can tell beforehand.
func (c *committer) permitted() error {
	s, ok := c.log.Store().(interface{ CanWrite(dir string) error })
	if !ok {
		return nil
	}
	for _, dir := range []string{"", path.Dir(snapshot.CommitName(0)) + "/"} {
		if err := s.CanWrite(dir); err != nil {
			return fault.Wrap(nil, err, "the table cannot be written here").
				WithHint("the mount needs to write to the table's directory and to its log")
		}
	}
	return nil
}

func (c *committer) header(ctx context.Context, v int64) (header, error) {
	p, m, err := c.log.Header(ctx, v)
	return header{p, m}, err
}

func (c *committer) locate(err error) error { return locate(err, c.log.Name()) }

// locate adds the table's name to an error that lacks it. The error may be
// shared, so it is copied.
func locate(err error, table string) error {
	e, ok := err.(*fault.Error)
	if !ok || e.Table != "" {
		return err
	}
	located := *e
	located.Table = table
	return &located
}

// commit is [Table.Commit].
func (c *committer) commit(ctx context.Context, spec *TxnSpec) (int64, error) {
	if spec.mayShare() {
		version, err := c.commitShared(ctx, spec)
		return version, c.locate(err)
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	version, err := c.single(ctx, spec)
	return version, c.locate(err)
}

// single commits a transaction alone; the turn is held. Up to the first attempt
// it can be cancelled.
func (c *committer) single(ctx context.Context, spec *TxnSpec) (int64, error) {
	var ev snapshot.Event
	if spec.Base >= 0 && !c.opts.ReadOnly {
		var err error
		if ev, err = c.look(ctx); err != nil {
			return 0, err
		}
	}
	if t := c.takeReady(spec, ev); t != nil && ctx.Err() == nil {
		return c.complete(ctx, t)
	}
	t, err := c.prepare(ctx, spec, ev, c.log.Latest())
	if err != nil {
		return 0, err
	}
	return c.complete(ctx, t)
}

// prepare checks a transaction and moves it behind the commits that are known.
// ev is what the look at the table before it has found.
func (c *committer) prepare(ctx context.Context, spec *TxnSpec, ev snapshot.Event, latest int64) (*txn, error) {
	t, err := c.begin(ctx, spec, ev)
	if err != nil {
		return nil, err
	}
	if err := c.catchUp(ctx, t, latest); err != nil {
		return nil, err
	}
	return t, ctx.Err()
}

// complete lands a transaction, whoever stops waiting for it, and returns its
// version, which the table shows if it can be read.
func (c *committer) complete(ctx context.Context, t *txn) (int64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	if err := c.land(ctx, t); err != nil {
		return 0, err
	}
	c.logger.Info("committed", "version", t.version, "operation", t.spec.Operation)
	c.refresh(ctx, t.version)
	c.afterCommit(t.version, t.base.with(t.spec.Actions))
	return t.version, nil
}

// begin checks the transaction on its base version.
func (c *committer) begin(ctx context.Context, spec *TxnSpec, ev snapshot.Event) (*txn, error) {
	if c.opts.ReadOnly {
		return nil, errMountReadOnly()
	}
	base, err := c.openBase(ctx, spec, ev)
	if err != nil {
		return nil, err
	}
	t, err := newTxn(spec, base, c.log.Store().Root())
	if err != nil {
		return nil, err
	}
	after := base.with(spec.Actions)
	if err := c.gate.check(after); err != nil {
		return nil, err
	}
	if err := checkAppendOnly(after, c.opts.AppendOnly, spec); err != nil {
		return nil, err
	}
	if on, _ := t.inCommitTime(); on && spec.Base >= 0 {
		t.floor, err = c.commitTime(ctx, spec.Base)
	}
	return t, err
}

// openBase returns the header of the base version, if it can be written.
func (c *committer) openBase(ctx context.Context, spec *TxnSpec, ev snapshot.Event) (header, error) {
	if spec.Base < 0 {
		return header{}, nil
	}
	if err := c.sameTable(ev, spec, spec.Base); err != nil {
		return header{}, err
	}
	h, err := c.header(ctx, spec.Base)
	if err != nil {
		return header{}, err
	}
	return h, c.gate.check(h)
}

// look looks for new commits, and for a table that was deleted and made again.
func (c *committer) look(ctx context.Context) (snapshot.Event, error) {
	ev, err := c.log.Refresh(ctx)
	if err == nil {
		c.announce(ctx, ev)
	}
	return ev, err
}

// sameTable returns ErrConflict if a look has found another table than the
// transaction was decided on: what was decided on the old one says nothing about
// the new one, and the next version may leave a gap in its log.
func (c *committer) sameTable(ev snapshot.Event, spec *TxnSpec, version int64) error {
	another := spec.Incarnation != nil && spec.Incarnation != c.log.Incarnation()
	if ev.Recreated || another || c.log.Latest() < version {
		return fault.New(ErrConflict, "the table was deleted and made again meanwhile").AtVersion(version).
			WithHint("look at the new table and do it again")
	}
	return nil
}

// refresh makes the snapshot of our version current. The commit stands
// whatever comes of it.
func (c *committer) refresh(ctx context.Context, version int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	if _, err := c.look(ctx); err != nil {
		c.logger.Warn("cannot look at the table after a commit", "version", version, "err", err)
	}
}

func (c *committer) announce(ctx context.Context, ev snapshot.Event) {
	if c.opts.OnRefresh != nil && (ev.Recreated || ev.From != ev.To) {
		c.opts.OnRefresh(ctx, ev)
	}
}

// commitTime is the commit time of a version in milliseconds.
func (c *committer) commitTime(ctx context.Context, v int64) (int64, error) {
	at, ok, err := c.log.CommitTime(ctx, v)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, fault.New(ErrReadOnly, "the commit file is gone, and with it the time that the next commit must exceed").
			AtVersion(v).InFile(snapshot.CommitName(v)).WithHint("restore the file of the log")
	}
	return at.UnixMilli(), nil
}
