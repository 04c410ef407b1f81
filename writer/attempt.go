package writer

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

const (
	// readBackTimeout bounds finding out whose a commit file is.
	readBackTimeout = 20 * time.Second
	// maxSilence is how often a version is tried when the storage gives no
	// answer and the commit file does not appear.
	maxSilence = 4
	// maxReads is how often a commit file that does not parse is read: some
	// engines create it first and fill it then.
	maxReads = 6
)

// fate is what became of an attempt.
type fate int

const (
	// unknown: nobody can tell; the error is ErrUnsure, or says that there was
	// no attempt.
	unknown fate = iota
	// landed: the commit file is ours.
	landed
	// taken: the commit file is another's.
	taken
	// absent: there is no commit file; the error is the storage's, if it gave
	// one.
	absent
)

// land attempts one version after the other until a commit file is ours or
// the transaction cannot be rebased. Unless it returns ErrUnsure, an error
// means that nothing was committed.
//
// A version that gave no answer is tried again with the same commit id and
// never skipped: an attempt that arrives late finds the name taken, or is the
// commit we ask for.
func (c *committer) land(ctx context.Context, t *txn) error {
	// silence counts the attempts at this version that left no commit file;
	// in doubt, one of them may still be under way.
	silence, doubt := 0, false
	for n := 1; ; n++ {
		got, err := c.attempt(ctx, t)
		switch got {
		case landed:
			c.winners.keep(c.log.Incarnation(), newWinner(t.version, append([]action.Action{t.info}, t.spec.Actions...), t.root))
			return nil
		case unknown:
			return err
		case taken:
			silence, doubt = 0, false
		case absent:
			c.logger.Warn("commit file did not appear", "version", t.version, "err", err)
			doubt = doubt || !certain(err)
			if silence++; silence == maxSilence || errors.Is(err, store.ErrReadOnly) {
				return unanswered(t, err, doubt)
			}
		}
		err = c.wait(ctx, n)
		// After the wait, not before: whoever won commits on meanwhile.
		if err == nil && got == taken {
			err = c.follow(ctx, t)
		}
		switch {
		case err == nil:
		case ctx.Err() == nil:
			return err
		case silence > 0:
			return unanswered(t, context.DeadlineExceeded, true)
		default:
			return fault.New(ErrConflict, "no version was free within %v", c.timeout).AtVersion(t.version).
				WithHint("try again when fewer programs write to the table")
		}
	}
}

// attempt tries to create the commit file of t's version.
func (c *committer) attempt(ctx context.Context, t *txn) (fate, error) {
	outcome, err := c.put(ctx, t)
	if errors.Is(err, ErrInvalid) {
		return unknown, err // it could not be encoded
	}
	if outcome == store.Won {
		return landed, nil
	}
	got, readErr := c.whose(ctx, t, outcome == store.Lost)
	switch {
	case got == absent:
		return got, err
	case got == landed && err != nil:
		c.logger.Warn("committed, but the storage reported an error", "version", t.version, "err", err)
	}
	return got, readErr
}

// put writes the commit file, or gives its name to the one that lies ready.
func (c *committer) put(ctx context.Context, t *txn) (store.Outcome, error) {
	name := snapshot.CommitName(t.version)
	if ready := t.ready; ready != nil {
		t.ready = nil
		return ready.Place(ctx, name)
	}
	data, err := t.encode(c.now().UnixMilli(), c.opts.EngineInfo)
	if err != nil {
		return store.Unsure, err
	}
	return c.log.Store().PutIfAbsent(ctx, name, data, t.spec.Published...)
}

// whose reads the commit file of t's version back and compares its commit id:
// a lost reply looks like a lost race. exists says that the storage found the
// name taken.
func (c *committer) whose(ctx context.Context, t *txn, exists bool) (fate, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.readBackTimeout)
	defer cancel()
	for n := 1; ; n++ {
		id, err := commitID(ctx, c.log.Store(), snapshot.CommitName(t.version))
		switch {
		case err == nil && id == t.id:
			return landed, nil
		case err == nil:
			return taken, nil
		case errors.Is(err, store.ErrNotExist) && !exists:
			return absent, nil
		}
		if c.wait(ctx, n) != nil {
			return unknown, errUnsure(t, err)
		}
	}
}

// commitID returns the txnId of a commit file, "" if it names none: then it
// is not ours, whose first line does.
func commitID(ctx context.Context, st store.Store, name string) (string, error) {
	object, err := st.Open(ctx, name)
	if err != nil {
		return "", err
	}
	defer object.Close()
	first, err := action.NewReader(io.NewSectionReader(object, 0, object.Info().Size), object.Info().Size).Next()
	if bad := (*action.LineError)(nil); errors.As(err, &bad) || errors.Is(err, io.EOF) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if info, ok := first.(*action.CommitInfo); ok {
		id, _ := info.TxnID()
		return id, nil
	}
	return "", nil
}

// follow rebases t on the commit that took its version, and on those that
// came after it.
func (c *committer) follow(ctx context.Context, t *txn) error {
	if err := c.rebase(ctx, t); err != nil {
		return err
	}
	ev, err := c.look(ctx)
	if err != nil {
		return err
	}
	if err := c.sameTable(ev, t.spec, t.version-1); err != nil {
		return err
	}
	return c.catchUp(ctx, t, c.log.Latest())
}

// catchUp rebases t on the commits up to a version.
func (c *committer) catchUp(ctx context.Context, t *txn, latest int64) error {
	for t.spec.Base >= 0 && t.version <= latest {
		if err := c.rebase(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// rebase moves t behind the commit that has its version.
func (c *committer) rebase(ctx context.Context, t *txn) error {
	w, err := c.winner(ctx, t.version)
	if err != nil {
		return err
	}
	return t.rebase(w)
}

// unanswered is the error after the last attempt at a version where no commit
// file appeared.
func unanswered(t *txn, cause error, doubt bool) error {
	if doubt {
		return errUnsure(t, cause)
	}
	if errors.Is(cause, store.ErrReadOnly) {
		return fault.Wrap(ErrReadOnly, cause, "the storage cannot take a commit").AtVersion(t.version)
	}
	return fault.Wrap(nil, cause, "nothing was committed").AtVersion(t.version).InFile(snapshot.CommitName(t.version))
}

// certain reports whether an error of the storage says that a write which left
// no file has ended. After a timeout, or without an error, it may be under way.
func certain(err error) bool {
	var timeout interface{ Timeout() bool }
	return err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

func errUnsure(t *txn, cause error) error {
	return fault.Wrap(ErrUnsure, cause, "the storage did not say whether the commit was written").
		AtVersion(t.version).InFile(snapshot.CommitName(t.version)).
		WithHint("it was if that file holds the txnId %s; check before doing it again", t.id)
}

// wait sleeps before another try, the n-th from 1.
func (c *committer) wait(ctx context.Context, n int) error {
	timer := time.NewTimer(c.pause(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// backoff grows from about 4 ms to half a second, half of it at random, so
// that writers who met once do not meet again.
func backoff(n int) time.Duration {
	d := min(4*time.Millisecond<<min(n-1, 7), 500*time.Millisecond)
	return d/2 + rand.N(d/2+1)
}
