package fsnode

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/deltafs/deltafs/snapshot"
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

	// Of a version alone.
	textFiles   = "files.jsonl"
	textChanges = "changes.jsonl"
	textCommit  = "commit.json"
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
// only those that say why, and a version whose commit is gone none that tell of
// it.
func (d *controlDir) names(ctx context.Context) ([]string, error) {
	failures := []string{textErrors, textStatus}
	if d.inc == nil {
		if _, err := d.t.open(ctx); err != nil {
			d.t.fs.report(d.t, "open", "", toErrno(err), err)
			return failures, nil
		}
	}
	out := []string{textDetail, textHistory, textProperties, textProtocol, textDDL, textSchema}
	if d.inc == nil {
		out = append(out, failures...)
	} else {
		out = append(out, textFiles)
		exists, err := d.commit().exists(ctx)
		if err != nil {
			return nil, err
		}
		if exists {
			out = append(out, textChanges, textCommit)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (d *controlDir) lookup(ctx context.Context, _ writer.Caller, name string) (child, error) {
	names, err := d.names(ctx)
	if err == nil && !slices.Contains(names, name) {
		err = errNotFound
	}
	if err != nil {
		return child{}, err
	}
	return d.child(name), nil
}

func (d *controlDir) list(ctx context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		names, err := d.names(ctx)
		if err != nil {
			yield(child{}, err)
			return
		}
		for _, name := range names {
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
	return child{name, d.file(name), ttl}
}

func (d *controlDir) file(name string) node {
	switch name {
	case textCommit:
		return d.commit()
	case textFiles:
		return d.spooled(name, func(ctx context.Context, out io.Writer) error {
			s, err := d.inc.at(ctx, d.version)
			if err != nil {
				return err
			}
			return snapshot.WriteLines(out, s.FileLines(ctx))
		})
	case textChanges:
		return d.spooled(name, func(ctx context.Context, out io.Writer) error {
			return snapshot.WriteLines(out, d.inc.snap.Changes(ctx, d.version))
		})
	}
	return &textFile{d, name}
}

// commit is the commit file of the version.
func (d *controlDir) commit() *logFile {
	return &logFile{inc: d.inc, version: d.version, dir: nameControl, name: textCommit, object: snapshot.CommitName(d.version)}
}

// spooled is a text of the version that may be too large for memory.
func (d *controlDir) spooled(name string, write func(context.Context, io.Writer) error) *spoolFile {
	return &spoolFile{inc: d.inc, version: d.version, dir: nameControl, name: name,
		make: func(ctx context.Context, file *os.File) error {
			out := bufio.NewWriterSize(file, 256<<10)
			return errors.Join(write(ctx, out), out.Flush())
		}}
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
