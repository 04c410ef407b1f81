package snapshot

import (
	"context"
	"errors"
	"maps"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
)

// timeline holds the commit times of a listing, in milliseconds since the
// epoch (protocol section "In-Commit Timestamps" and, before those are
// enabled, the modification times of the commit files). Both parts are made to
// rise strictly: a time that does not is moved to one millisecond after its
// predecessor, so that every commit has a time of its own that leads to it.
type timeline struct {
	listing *listing
	// times are those of the listing's commits.
	times series[int64]
	// from is the version from which in-commit timestamps count, and split where
	// they begin.
	from  int64
	split int
}

// timelineOf returns the commit times of the log at hand. Those of commits that
// came since the last time are added to what is known.
func (n *incarnation) timelineOf(ctx context.Context) (*timeline, error) {
	t, err := n.readTimeline(ctx)
	if logChanged(err) {
		// Someone cleaned the log up since it was listed.
		if err := n.table.relisted(ctx); err != nil {
			return nil, err
		}
		t, err = n.readTimeline(ctx)
	}
	return t, err
}

func (n *incarnation) readTimeline(ctx context.Context) (*timeline, error) {
	l := n.log()
	n.mu.Lock()
	known := n.timeline
	n.mu.Unlock()
	if known != nil && known.listing == l {
		return known, nil
	}
	if known != nil && !l.commits.beginsWith(known.listing.commits) {
		known = nil
		n.forgetInCommit(l)
	}
	from, err := n.inCommitFrom(ctx, l, known)
	if err != nil {
		return nil, err
	}
	t := &timeline{listing: l, from: from}
	if known != nil && known.from == from {
		t.times, t.split = known.times, known.split
	}
	if err := n.extend(ctx, t); err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.timeline = t
	n.mu.Unlock()
	return t, nil
}

// extend adds the times of the commits that have none yet.
func (n *incarnation) extend(ctx context.Context, t *timeline) error {
	var more []int64
	last := int64(math.MinInt64)
	done := len(t.times.all)
	if done > 0 {
		last = t.times.all[done-1]
	}
	for i, c := range t.listing.commits.all[done:] {
		at := min(max(c.info.ModTime, earliestCommit), latestCommit)
		if c.version >= t.from {
			var err error
			if at, err = n.inCommitTime(ctx, c, at); err != nil {
				return err
			}
		} else {
			t.split = done + i + 1
		}
		if done+i > 0 && done+i != t.split {
			at = max(at, last+1)
		}
		more, last = append(more, at), at
	}
	t.times = t.times.with(more...)
	return nil
}

// noInCommit is a version that no table reaches.
const noInCommit = int64(1) << 62

// inCommitLook is how many of the newest commits are asked whether they have a
// timestamp of their own.
const inCommitLook = 8

// inCommitFrom returns the version from which in-commit timestamps count. If
// the latest version is corrupt, file times must do. Where they are enabled
// every commit has one, so that mostly the newest commits tell that they are
// not, if the metadata is not known. known is the timeline of an earlier
// state of the listing, or nil.
func (n *incarnation) inCommitFrom(ctx context.Context, l *listing, known *timeline) (int64, error) {
	if h := n.cached(l.latest); h != nil {
		return h.inCommitFrom(), nil
	}
	newest := l.commits.all[max(0, len(l.commits.all)-inCommitLook):]
	if known != nil && known.from == noInCommit {
		newest = l.commits.all[len(known.listing.commits.all):]
	}
	found := len(l.commits.all) == 0
	for _, c := range newest {
		info, err := n.table.leadingCommitInfo(ctx, c.version)
		found = found || err != nil || hasInCommitTime(info)
	}
	if !found {
		return noInCommit, nil
	}
	h, err := n.header(ctx, l.latest)
	if err != nil {
		if errors.Is(err, ErrCorrupt) && !logChanged(err) {
			return noInCommit, nil
		}
		return 0, err
	}
	return h.inCommitFrom(), nil
}

// inCommitFrom is the version from which in-commit timestamps count, as the
// metadata says.
func (h *header) inCommitFrom() int64 {
	conf := h.metadata.Configuration
	if !strings.EqualFold(conf["delta.enableInCommitTimestamps"], "true") {
		return noInCommit
	}
	text, ok := conf["delta.inCommitTimestampEnablementVersion"]
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return noInCommit
	}
	return v
}

func hasInCommitTime(info *action.CommitInfo) bool {
	if info == nil {
		return false
	}
	_, ok := info.InCommitTimestamp()
	return ok
}

// earliestCommit and latestCommit bound commit times to what RFC 3339 can
// write, with room for the milliseconds that keep them rising. A file's time
// outside of them is moved, an in-commit timestamp is not believed: one commit
// with a nonsensical time must not make the history unreadable.
var (
	earliestCommit = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	latestCommit   = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
)

// inCommitTime reads a commit's own timestamp; one without keeps its file
// time.
func (n *incarnation) inCommitTime(ctx context.Context, c commitFile, fileTime int64) (int64, error) {
	n.mu.Lock()
	at, ok := n.inCommit[c.version]
	n.mu.Unlock()
	if ok {
		return at, nil
	}
	info, err := n.table.commitInfo(ctx, c.version)
	if errors.Is(err, store.ErrNotExist) || ctx.Err() != nil {
		return 0, err
	}
	at = fileTime
	if err == nil && info != nil {
		if own, ok := info.InCommitTimestamp(); ok && earliestCommit <= own && own <= latestCommit {
			at = own
		}
	}
	n.mu.Lock()
	n.inCommit[c.version] = at
	n.mu.Unlock()
	return at, nil
}

// forgetInCommit drops the timestamps of commits that the log no longer has.
func (n *incarnation) forgetInCommit(l *listing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.inCommit, func(v, _ int64) bool { _, ok := l.find(v); return !ok })
}

// CommitTime returns when v was committed (in-commit timestamp, else
// monotonised file time); false when v is known from a checkpoint alone.
func (t *Table) CommitTime(ctx context.Context, v int64) (time.Time, bool, error) {
	life, err := t.current()
	if err != nil {
		return time.Time{}, false, err
	}
	at, ok, err := life.commitTime(ctx, v)
	return at, ok, t.fault(err)
}

func (n *incarnation) commitTime(ctx context.Context, v int64) (time.Time, bool, error) {
	t, err := n.timelineOf(ctx)
	if err != nil {
		return time.Time{}, false, err
	}
	i, ok := t.listing.find(v)
	if !ok {
		return time.Time{}, false, nil
	}
	return time.UnixMilli(t.times.all[i]).UTC(), true, nil
}

// VersionAsOf returns the newest version committed at or before when.
// ErrNoVersion before the first commit and for a time later than now; a time
// between the newest commit and now is the newest version.
func (t *Table) VersionAsOf(ctx context.Context, when time.Time) (int64, error) {
	life, err := t.current()
	if err != nil {
		return 0, err
	}
	line, err := life.timelineOf(ctx)
	if err != nil {
		return 0, t.fault(err)
	}
	life.checkCopied(ctx, line)
	v, err := line.asOf(when, time.Now())
	return v, t.fault(err)
}

func (t *timeline) asOf(when, now time.Time) (int64, error) {
	at, times := when.UnixMilli(), t.times.all
	newest := now.UnixMilli()
	if n := len(times); n > 0 {
		newest = max(newest, times[n-1])
	}
	if at > newest {
		return 0, fault.New(ErrNoVersion, "%s is in the future", FormatTime(when)).
			WithHint("the latest version is %d", t.listing.latest)
	}
	// With in-commit timestamps the two parts of the line are searched apart:
	// file times may be those of a copy made long after.
	first, last := 0, t.split
	if t.split < len(times) && at >= times[t.split] {
		first, last = t.split, len(times)
	}
	i := first + sort.Search(last-first, func(i int) bool { return times[first+i] > at }) - 1
	if i == len(times)-1 && t.latestByCheckpoint(at) {
		return t.listing.latest, nil
	}
	if i < first {
		return 0, fault.New(ErrNoVersion, "%s is before the first commit that the log still has", FormatTime(when))
	}
	v := t.listing.commits.all[i].version
	if t.listing.check(v) != nil {
		return 0, fault.New(ErrNoVersion, "the version of %s can no longer be rebuilt", FormatTime(when)).AtVersion(v)
	}
	return v, nil
}

// latestByCheckpoint reports whether the latest version has no commit file but
// a checkpoint that was there at the time.
func (t *timeline) latestByCheckpoint(at int64) bool {
	commits := t.listing.commits.all
	if n := len(commits); n > 0 && commits[n-1].version == t.listing.latest {
		return false
	}
	for _, part := range t.listing.checkpoints[len(t.listing.checkpoints)-1].parts {
		if part.ModTime.UnixMilli() > at {
			return false
		}
	}
	return true
}
