package fsnode

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/deltafs/deltafs/writer"
)

// The files of a control directory: the table as text.
const (
	textHistory    = "history.jsonl"
	textDetail     = "detail.json"
	textSchema     = "schema.json"
	textDDL        = "schema.ddl"
	textProtocol   = "protocol.json"
	textProperties = "properties.json"
	textStatus     = "status.json"
	textErrors     = "errors.jsonl"
)

// controlDir is a .delta directory: of the table, of current/ or of a version.
// That of the table is there even if the table cannot be opened, to say why.
type controlDir struct {
	t *table
	// inc is set for the directory of a version.
	inc     *incarnation
	version int64
	// where tells apart the directories that show the newest state.
	where string
}

func (t *table) control() *controlDir          { return &controlDir{t: t, where: nameControl} }
func (t *table) controlInCurrent() *controlDir { return &controlDir{t: t, where: nameCurrent} }

func (inc *incarnation) controlAt(v int64) *controlDir {
	return &controlDir{t: inc.t, inc: inc, version: v}
}

func (d *controlDir) key() nodeKey {
	k := nodeKey{kind: kindControl, table: d.t, number: d.version, path: d.where}
	if d.inc != nil {
		k.inc = d.inc
	}
	return k
}
func (d *controlDir) kind() statKind { return frozenDir }
func (d *controlDir) stale() bool {
	return d.t.dropped.Load() || d.inc != nil && d.inc.stale()
}
func (d *controlDir) immutable() bool { return d.inc != nil }

func (d *controlDir) attrTTL() time.Duration {
	if d.immutable() {
		return forever
	}
	return liveTTL
}

func (d *controlDir) stat(ctx context.Context) (stat, error) {
	return stat{kind: frozenDir, mtime: d.mtime(ctx)}, nil
}

// mtime is the time of the commit described, without opening the table.
func (d *controlDir) mtime(ctx context.Context) time.Time {
	if d.inc != nil {
		return d.inc.commitTime(ctx, d.version)
	}
	if inc, _ := d.t.state(); inc != nil {
		return inc.commitTime(ctx, inc.snap.Latest())
	}
	return time.Time{}
}

// names are the files of the directory; a table that cannot be opened has
// only those that say why.
func (d *controlDir) names(ctx context.Context) []string {
	failures := []string{textErrors, textStatus}
	if d.inc == nil {
		if _, err := d.t.open(ctx); err != nil {
			d.t.fs.report(d.t, "open", "", toErrno(err), err)
			return failures
		}
	}
	out := []string{textDetail, textHistory, textProperties, textProtocol, textDDL, textSchema}
	if d.inc == nil {
		out = append(out, failures...)
		slices.Sort(out)
	}
	return out
}

func (d *controlDir) lookup(ctx context.Context, _ writer.Caller, name string) (child, error) {
	if !slices.Contains(d.names(ctx), name) {
		return child{}, errNotFound
	}
	return d.child(name), nil
}

func (d *controlDir) list(ctx context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		for _, name := range d.names(ctx) {
			if !yield(d.child(name), nil) {
				return
			}
		}
	}
}

func (d *controlDir) child(name string) child {
	ttl := never
	if d.immutable() {
		ttl = forever
	}
	return child{name, &textFile{d, name}, ttl}
}

// textFile is one generated file of a control directory.
type textFile struct {
	dir  *controlDir
	name string
}

func (x *textFile) key() nodeKey {
	k := x.dir.key()
	k.kind, k.path = kindText, k.path+"/"+x.name
	return k
}
func (x *textFile) kind() statKind  { return frozenFile }
func (x *textFile) stale() bool     { return x.dir.stale() }
func (x *textFile) immutable() bool { return x.dir.immutable() }
func (x *textFile) attrTTL() time.Duration {
	if x.immutable() {
		return forever
	}
	return never
}

// stat generates the text: its size is exact.
func (x *textFile) stat(ctx context.Context) (stat, error) {
	b, err := x.content(ctx)
	if err != nil {
		return stat{}, err
	}
	return stat{frozenFile, int64(len(b)), x.mtime(ctx)}, nil
}

func (x *textFile) mtime(ctx context.Context) time.Time {
	switch last, ok := x.dir.t.errs.last(); {
	case x.name == textStatus:
		return time.Now()
	case x.name == textErrors && ok:
		return last.Time
	}
	return x.dir.mtime(ctx)
}

// content generates the text, or takes it from the cache if the state that it
// describes is the same.
func (x *textFile) content(ctx context.Context) ([]byte, error) {
	switch x.name {
	case textErrors:
		return x.dir.t.errs.jsonl()
	case textStatus:
		return x.dir.t.statusText(ctx)
	}
	inc, v := x.dir.inc, x.dir.version
	if inc == nil {
		var err error
		if inc, err = x.dir.t.fresh(ctx); err != nil {
			return nil, err
		}
		v = inc.snap.Latest()
	}
	if x.name == textHistory {
		return inc.history.upTo(ctx, inc.snap, v)
	}
	return inc.texts.get(textKey{x.name, v}, func() ([]byte, error) { return inc.renderText(ctx, x.name, v) })
}
