package fsnode

import (
	"context"
	"iter"
	"path"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/writer"
)

// liveDir is a directory of current/: its root, a partition or scratch.
type liveDir struct {
	inc   *incarnation
	path  string
	epoch int64
	// sizes are read ahead.
	sizes sizeAhead
}

// liveDir builds the node of the directory that is at path now.
func (inc *incarnation) liveDir(path string) *liveDir {
	return &liveDir{inc: inc, path: path, epoch: inc.epoch(path)}
}

func (d *liveDir) key() nodeKey {
	return nodeKey{kind: kindLiveDir, table: d.inc.t, inc: d.inc, number: d.epoch, path: d.path}
}
func (d *liveDir) kind() statKind         { return openDir }
func (d *liveDir) attrTTL() time.Duration { return liveTTL }
func (d *liveDir) stale() bool            { return d.inc.stale() }

func (d *liveDir) stat(ctx context.Context) (stat, error) {
	return stat{kind: openDir, mtime: d.inc.commitTime(ctx, d.inc.snap.Latest())}, nil
}

// refresh takes in what others have committed. errStale if the table was made
// again.
func (d *liveDir) refresh(ctx context.Context) error {
	err := d.inc.t.poll(ctx, freshFor)
	if d.inc.stale() {
		return errStale
	}
	return err
}

func (d *liveDir) lookup(ctx context.Context, c writer.Caller, name string) (child, error) {
	if err := d.refresh(ctx); err != nil {
		return child{}, err
	}
	if name == nameControl && d.path == "" {
		return child{name, d.inc.t.controlInCurrent(), never}, nil
	}
	n, err := d.inc.live.Lookup(ctx, c, d.path, name)
	if err != nil {
		return child{}, err
	}
	found, err := d.child(name, n)
	if file, ok := found.node.(*dataFile); ok && err == nil {
		d.inc.t.fs.readSizesBehind(&d.sizes, file, d.listAfter)
	}
	return found, err
}

func (d *liveDir) list(ctx context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		if err := d.refresh(ctx); err != nil {
			yield(child{}, err)
			return
		}
		d.listAfter(ctx, "")(yield)
	}
}

func (d *liveDir) listAfter(ctx context.Context, name string) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		for e, err := range d.inc.live.List(ctx, d.path, name) {
			var c child
			if err == nil {
				c, err = d.child(e.Name, e.Node)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// child turns what a name means into a node. The name of a file is asked for
// every time: it may mean something else to another process, and after any
// commit.
func (d *liveDir) child(name string, n writer.Node) (child, error) {
	switch {
	case n.Staged != nil:
		return child{name, &stagedFile{d.inc, n.Staged}, never}, nil
	case n.File != nil:
		f, err := d.inc.file(n.File)
		return child{name, f, never}, err
	case n.Dir != nil:
		return child{name, d.inc.liveDir(*n.Dir), liveTTL}, nil
	}
	return child{}, fault.New(errNotFound, "no node").InFile(path.Join(d.path, name))
}

// stagedFile is a file being written in this mount. It outlives the
// incarnation: its bytes are the user's.
type stagedFile struct {
	inc *incarnation
	*writer.Staged
}

func (s *stagedFile) key() nodeKey {
	return nodeKey{kind: kindStaged, table: s.inc.t, number: int64(s.ID())}
}
func (s *stagedFile) kind() statKind         { return stagedStat }
func (s *stagedFile) attrTTL() time.Duration { return never }

func (s *stagedFile) stat(context.Context) (stat, error) {
	a := s.Attr()
	return stat{stagedStat, a.Size, a.ModTime}, nil
}
