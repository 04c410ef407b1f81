package fsnode

import (
	"context"
	"iter"
	"path"
	"sync"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// rawDir is a directory that the table has in storage and the version does not
// show, such as one with a random prefix. It lists nothing; what the version's log
// names resolves in it.
type rawDir struct {
	inc     *incarnation
	version int64
	path    string
}

func (d *rawDir) key() nodeKey {
	return nodeKey{kind: kindRawDir, table: d.inc.t, inc: d.inc, number: d.version, path: d.path}
}
func (d *rawDir) kind() statKind         { return openDir }
func (d *rawDir) attrTTL() time.Duration { return forever }
func (d *rawDir) stale() bool            { return d.inc.stale() }
func (d *rawDir) immutable() bool        { return true }

func (d *rawDir) stat(ctx context.Context) (stat, error) {
	return stat{kind: openDir, mtime: d.inc.commitTime(ctx, d.version)}, nil
}

func (d *rawDir) lookup(ctx context.Context, _ writer.Caller, name string) (child, error) {
	s, err := d.inc.at(ctx, d.version)
	if err != nil {
		return child{}, err
	}
	return d.inc.stored(ctx, s, d.path, name)
}

func (d *rawDir) list(context.Context) iter.Seq2[child, error] {
	return func(func(child, error) bool) {}
}

// stored resolves a name that a version does not show: a data file or a deletion
// vector by its path in storage, or a directory on the way there. Without a node
// there is none.
func (inc *incarnation) stored(ctx context.Context, s *snapshot.Snapshot, dir, name string) (child, error) {
	none := child{name: name, ttl: forever}
	p := path.Join(dir, name)
	f, ok, err := s.ByStoredPath(ctx, p)
	switch {
	case err != nil:
		return none, err
	case ok:
		n, err := inc.file(&f)
		return child{name, n, forever}, err
	case snapshot.IsDeletionVectorFile(name):
		x := &logFile{inc: inc, version: s.Version(), dir: dir, name: name, object: p}
		if exists, err := x.exists(ctx); err != nil || !exists {
			return none, err
		}
		return child{name, x, forever}, nil
	}
	dirs, err := inc.storedDirs.of(ctx, s)
	if err != nil || !dirs[p] {
		return none, err
	}
	return child{name, &rawDir{inc, s.Version(), p}, forever}, nil
}

// storedDirs are the directories in storage of the version that was asked for
// last.
type storedDirs struct {
	mu   sync.Mutex
	s    *snapshot.Snapshot
	dirs map[string]bool
}

func (d *storedDirs) of(ctx context.Context, s *snapshot.Snapshot) (map[string]bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.s != nil && d.s.Version() == s.Version() {
		return d.dirs, nil
	}
	dirs, err := s.StoredDirs(ctx)
	if err == nil {
		d.s, d.dirs = s, dirs
	}
	return dirs, err
}

// clear forgets them.
func (d *storedDirs) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s, d.dirs = nil, nil
}
