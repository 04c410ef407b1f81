package fsnode

import (
	"context"
	"errors"
	"iter"
	"path"
	"sync/atomic"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// snapshotDir is a directory of a version: its root or a partition.
type snapshotDir struct {
	inc     *incarnation
	version int64
	path    string
	// lookups counts the names that were looked up, of the node that the kernel
	// knows.
	lookups atomic.Uint64
	// sizes are read ahead.
	sizes sizeAhead
	// opened is the version, once it was opened through this node.
	opened atomic.Pointer[snapshot.Snapshot]
}

// snapshotDir makes the node of a directory of a version.
func (inc *incarnation) snapshotDir(v int64, path string) *snapshotDir {
	return &snapshotDir{inc: inc, version: v, path: path}
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
	_, err := d.open(ctx)
	return err
}

// open opens the version. It never changes, nor whether it may be read.
func (d *snapshotDir) open(ctx context.Context) (*snapshot.Snapshot, error) {
	if s := d.opened.Load(); s != nil {
		return s, nil
	}
	s, err := d.inc.at(ctx, d.version)
	if err == nil {
		d.opened.Store(s)
	}
	return s, err
}

func (d *snapshotDir) lookup(ctx context.Context, _ writer.Caller, name string) (child, error) {
	if name == nameControl && d.path == "" {
		return child{name, d.inc.controlAt(d.version), forever}, nil
	}
	d.lookups.Add(1)
	s, err := d.open(ctx)
	if err != nil {
		return child{}, err
	}
	if name == logDir && d.path == "" {
		return child{name, d.log(), forever}, nil
	}
	e, err := s.Lookup(ctx, d.path, name)
	if errors.Is(err, snapshot.ErrNotExist) || errors.Is(err, snapshot.ErrAmbiguous) {
		if d.showsRaw() {
			return d.inc.stored(ctx, s, d.path, name)
		}
		return child{name: name, ttl: forever}, nil
	}
	if err != nil {
		return child{}, err
	}
	c, err := d.child(e)
	if file, ok := c.node.(*dataFile); ok && err == nil {
		d.inc.t.fs.readSizesBehind(&d.sizes, file, d.listAfter)
	}
	return c, err
}

// showsRaw reports whether data files are shown as they lie in storage.
func (d *snapshotDir) showsRaw() bool { return d.inc.t.fs.opt.View == snapshot.ViewRaw }

// log is the hidden log with which the version is a table of its own.
func (d *snapshotDir) log() directory {
	if d.showsRaw() {
		return &rawLog{inc: d.inc, version: d.version}
	}
	return &servedLog{d.inc, d.version}
}

func (d *snapshotDir) list(ctx context.Context) iter.Seq2[child, error] { return d.listAfter(ctx, "") }

func (d *snapshotDir) listAfter(ctx context.Context, name string) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		s, err := d.open(ctx)
		if err != nil {
			yield(child{}, err)
			return
		}
		file := &dataFile{inc: d.inc}
		for e, err := range s.Dir(ctx, d.path, name) {
			var c child
			switch {
			case err != nil:
			case e.File == nil:
				c = d.subdir(e.Name)
			default:
				err = file.be(e.File)
				c = child{e.Name, file, forever}
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// settled implements resumable. Only the size of a file may turn out to be
// another one.
func (d *snapshotDir) settled() bool { return !d.inc.snap.HasOtherSizes() }

func (d *snapshotDir) child(e snapshot.DirEntry) (child, error) {
	if e.File == nil {
		return d.subdir(e.Name), nil
	}
	n, err := d.inc.file(e.File)
	return child{e.Name, n, forever}, err
}

func (d *snapshotDir) subdir(name string) child {
	return child{name, d.inc.snapshotDir(d.version, path.Join(d.path, name)), forever}
}

// at opens a version.
func (inc *incarnation) at(ctx context.Context, v int64) (*snapshot.Snapshot, error) {
	return inc.snap.At(ctx, v)
}
