package fsnode

import (
	"context"
	"errors"
	"iter"
	"path"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// snapshotDir is a directory of a version: its root or a partition.
type snapshotDir struct {
	inc     *incarnation
	version int64
	path    string
}

func (d *snapshotDir) key() nodeKey {
	return nodeKey{kind: kindSnapshotDir, table: d.inc.t, inc: d.inc, number: d.version, path: d.path}
}
func (d *snapshotDir) kind() statKind         { return openDir }
func (d *snapshotDir) attrTTL() time.Duration { return forever }
func (d *snapshotDir) stale() bool            { return d.inc.stale() }
func (d *snapshotDir) immutable() bool        { return true }

// stat does not open the version: a version that must be refused is shown.
func (d *snapshotDir) stat(ctx context.Context) (stat, error) {
	return stat{kind: openDir, mtime: d.inc.commitTime(ctx, d.version)}, nil
}

// check opens the version, or says why it must be refused.
func (d *snapshotDir) check(ctx context.Context) error {
	_, err := d.inc.at(ctx, d.version)
	return err
}

func (d *snapshotDir) lookup(ctx context.Context, _ writer.Caller, name string) (child, error) {
	if name == nameControl && d.path == "" {
		return child{name, d.inc.controlAt(d.version), forever}, nil
	}
	s, err := d.inc.at(ctx, d.version)
	if err != nil {
		return child{}, err
	}
	e, err := s.Lookup(ctx, d.path, name)
	if errors.Is(err, snapshot.ErrNotExist) || errors.Is(err, snapshot.ErrAmbiguous) {
		return child{name: name, ttl: forever}, nil
	}
	if err != nil {
		return child{}, err
	}
	return d.child(e)
}

func (d *snapshotDir) list(ctx context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		s, err := d.inc.at(ctx, d.version)
		if err != nil {
			yield(child{}, err)
			return
		}
		for e, err := range s.Dir(ctx, d.path, "") {
			var c child
			if err == nil {
				c, err = d.child(e)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

func (d *snapshotDir) child(e snapshot.DirEntry) (child, error) {
	if e.File == nil {
		return child{e.Name, &snapshotDir{d.inc, d.version, path.Join(d.path, e.Name)}, forever}, nil
	}
	n, err := d.inc.file(*e.File)
	if err != nil {
		return child{}, err
	}
	return child{e.Name, n, forever}, nil
}

// at opens a version.
func (inc *incarnation) at(ctx context.Context, v int64) (*snapshot.Snapshot, error) {
	return inc.snap.At(ctx, v)
}
