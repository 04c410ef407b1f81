package fsnode

import (
	"context"
	"iter"
	"os"
	"path"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// nameHint is the file of a log that names its newest checkpoint.
const nameHint = "_last_checkpoint"

// servedLog is the hidden _delta_log of a version: the log of a table that has
// the version's number and the files that its directory shows. It holds a
// checkpoint and the commit of the version; or of version 0, of which a reader may
// look at the commit alone, a commit with the whole table.
type servedLog struct {
	inc     *incarnation
	version int64
}

func (d *servedLog) key() nodeKey {
	return nodeKey{kind: kindServedLog, table: d.inc.t, inc: d.inc, number: d.version}
}
func (d *servedLog) kind() statKind         { return openDir }
func (d *servedLog) attrTTL() time.Duration { return forever }
func (d *servedLog) stale() bool            { return d.inc.stale() }
func (d *servedLog) immutable() bool        { return true }

func (d *servedLog) stat(ctx context.Context) (stat, error) {
	return stat{kind: openDir, mtime: d.inc.commitTime(ctx, d.version)}, nil
}

// files are the files of the log, in order of name.
func (d *servedLog) files() []*spoolFile {
	commit := path.Base(snapshot.CommitName(d.version))
	if d.version == 0 {
		return []*spoolFile{d.file(commit, writer.WriteServedWhole)}
	}
	return []*spoolFile{
		d.file(path.Base(snapshot.CheckpointName(d.version)), writer.WriteServed),
		d.file(commit, writer.WriteServedCommit),
		d.file(nameHint, writer.WriteServedHint),
	}
}

// file is a file that is made of the version as a table.
func (d *servedLog) file(name string, write func(context.Context, *snapshot.ServedTable, *os.File) error) *spoolFile {
	return &spoolFile{inc: d.inc, version: d.version, dir: logDir, name: name,
		make: func(ctx context.Context, out *os.File) error {
			s, err := d.inc.at(ctx, d.version)
			if err != nil {
				return err
			}
			t, err := s.AsTable()
			if err != nil {
				return err
			}
			return write(ctx, t, out)
		}}
}

func (d *servedLog) lookup(_ context.Context, _ writer.Caller, name string) (child, error) {
	for _, f := range d.files() {
		if f.name == name {
			return child{name, f, forever}, nil
		}
	}
	return child{name: name, ttl: forever}, nil
}

func (d *servedLog) list(context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		for _, f := range d.files() {
			if !yield(child{f.name, f, forever}, nil) {
				return
			}
		}
	}
}
