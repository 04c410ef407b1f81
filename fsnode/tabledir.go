package fsnode

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// The names in a table's root.
const (
	nameCurrent = "current"
	nameLatest  = "latest"
	nameControl = ".delta"
	nameStage   = ".stage"
)

// tableDir is the root of a table. Reading it never opens a snapshot.
type tableDir struct{ t *table }

func (d *tableDir) key() nodeKey           { return nodeKey{kind: kindTable, table: d.t} }
func (d *tableDir) kind() statKind         { return frozenDir }
func (d *tableDir) attrTTL() time.Duration { return liveTTL }
func (d *tableDir) stale() bool            { return d.t.dropped.Load() }

// stat shows when the log last changed, without opening the table: `ls -l` of
// a lake must be cheap.
func (d *tableDir) stat(context.Context) (stat, error) {
	var changed time.Time
	if fi, err := os.Stat(filepath.Join(d.t.source, logDir)); err == nil {
		changed = fi.ModTime()
	}
	return stat{kind: frozenDir, mtime: changed}, nil
}

func (d *tableDir) lookup(ctx context.Context, _ writer.Caller, name string) (child, error) {
	if name == nameControl {
		return child{name, d.t.control(), forever}, nil
	}
	inc, err := d.t.fresh(ctx)
	if err != nil {
		return child{}, err
	}
	switch {
	case name == nameCurrent:
		return child{name, inc.liveDir(""), forever}, nil
	case name == nameStage:
		return child{name, &stageDir{inc}, forever}, nil
	case name == nameLatest:
		return inc.latest()
	}
	if of, format, ok := rowsName(name); ok {
		return inc.rows(ctx, name, of, format)
	}
	if !strings.HasPrefix(name, "@") {
		return child{}, errNotFound
	}
	if v, ok := parseVersion(name); ok {
		return inc.version(ctx, v)
	}
	return inc.timestamp(ctx, name)
}

// parseVersion reads "@v<N>" in its one spelling.
func parseVersion(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, "@v")
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	return v, err == nil && v >= 0 && versionName(v) == name
}

// versionName is the name of a version's directory.
func versionName(v int64) string { return "@v" + strconv.FormatInt(v, 10) }

// latest is the link to the newest version.
func (inc *incarnation) latest() (child, error) {
	v := inc.snap.Latest()
	if v < 0 {
		return child{}, errNotFound
	}
	return child{nameLatest, &link{inc, nameLatest, v}, never}, nil
}

// version is the directory of a version that can be rebuilt.
func (inc *incarnation) version(ctx context.Context, v int64) (child, error) {
	ok, err := inc.snap.HasVersion(ctx, v)
	if err != nil {
		return child{}, err
	}
	if !ok {
		return child{}, errNotFound
	}
	return child{versionName(v), inc.snapshotDir(v, ""), forever}, nil
}

// timestamp is the link to the version of an instant. Only an instant before
// the newest commit means the same version for ever.
func (inc *incarnation) timestamp(ctx context.Context, name string) (child, error) {
	when, err := snapshot.ParseTime(strings.TrimPrefix(name, "@"), inc.t.fs.opt.Location)
	if err != nil {
		return child{}, err
	}
	v, err := inc.snap.VersionAsOf(ctx, when)
	if err != nil {
		return child{}, err
	}
	ttl := never
	if newest := inc.commitTime(ctx, inc.snap.Latest()); v < inc.snap.Latest() && when.Before(newest) {
		ttl = forever
	}
	return child{name, &link{inc, name, v}, ttl}, nil
}

func (d *tableDir) list(ctx context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		if !yield(child{nameControl, d.t.control(), forever}, nil) {
			return
		}
		inc, err := d.t.fresh(ctx)
		if err != nil {
			// .delta says why. Without the error a table that cannot be opened
			// would pass for an empty one, and a copy of the lake for whole.
			yield(child{}, err)
			return
		}
		if !yield(child{nameStage, &stageDir{inc}, forever}, nil) ||
			!yield(child{nameCurrent, inc.liveDir(""), forever}, nil) {
			return
		}
		if c, err := inc.latest(); err == nil && !yield(c, nil) {
			return
		}
		versions, err := inc.listed(ctx)
		if err != nil {
			yield(child{}, err)
			return
		}
		for _, v := range versions {
			if !inc.yieldVersion(ctx, v, yield) {
				return
			}
		}
	}
}

// yieldVersion yields the directory of a version and the link of its commit
// time, if that is known.
func (inc *incarnation) yieldVersion(ctx context.Context, v int64, yield func(child, error) bool) bool {
	if !yield(child{versionName(v), inc.snapshotDir(v, ""), forever}, nil) {
		return false
	}
	at := inc.commitTime(ctx, v)
	if at.IsZero() {
		return true
	}
	name := "@" + snapshot.FormatTime(at)
	return yield(child{name, &link{inc, name, v}, never}, nil)
}

// listed returns the versions to list, ascending: the newest ones that can be
// rebuilt.
func (inc *incarnation) listed(ctx context.Context) ([]int64, error) {
	limit := inc.t.fs.opt.list
	spans, err := inc.snap.Versions(ctx)
	if err != nil || limit == ListNone {
		return nil, err
	}
	var out []int64
	for i := len(spans) - 1; i >= 0; i-- {
		for v := spans[i].Last; v >= spans[i].First; v-- {
			if limit != ListAll && len(out) == int(limit) {
				i = 0
				break
			}
			out = append(out, v)
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}

// link is a symbolic link to a version in the same directory. Its target is
// part of its identity, so the kernel may keep what it read.
type link struct {
	inc     *incarnation
	name    string
	version int64
}

func (l *link) key() nodeKey {
	return nodeKey{kind: kindLink, table: l.inc.t, inc: l.inc, number: l.version, path: l.name}
}
func (l *link) kind() statKind         { return linkStat }
func (l *link) attrTTL() time.Duration { return forever }
func (l *link) stale() bool            { return l.inc.stale() }
func (l *link) target() string         { return versionName(l.version) }

func (l *link) stat(ctx context.Context) (stat, error) {
	return stat{linkStat, int64(len(l.target())), l.inc.commitTime(ctx, l.version)}, nil
}
