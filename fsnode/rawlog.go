package fsnode

import (
	"context"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// sidecarDir holds the parts of V2 checkpoints, in a log.
const sidecarDir = "_sidecars"

// rawLog is the hidden _delta_log of a version where data files are shown as they
// lie in storage: the table's own log, cut at the version, or its sidecarDir. What
// the log names resolves in the version's directory, see rawDir.
type rawLog struct {
	inc     *incarnation
	version int64
	// sub is empty or sidecarDir.
	sub string
}

func (d *rawLog) key() nodeKey {
	return nodeKey{kind: kindServedLog, table: d.inc.t, inc: d.inc, number: d.version, path: d.sub}
}
func (d *rawLog) kind() statKind         { return openDir }
func (d *rawLog) attrTTL() time.Duration { return forever }
func (d *rawLog) stale() bool            { return d.inc.stale() }
func (d *rawLog) immutable() bool        { return true }

func (d *rawLog) stat(ctx context.Context) (stat, error) {
	return stat{kind: openDir, mtime: d.inc.commitTime(ctx, d.version)}, nil
}

// holds reports whether a file of the table's log belongs to the version's.
func (d *rawLog) holds(name string) bool {
	return d.sub != "" || snapshot.LogHolds(name, d.version)
}

func (d *rawLog) child(name string) child {
	if d.sub == "" && name == sidecarDir {
		return child{name, &rawLog{d.inc, d.version, sidecarDir}, forever}
	}
	dir := path.Join(logDir, d.sub)
	return child{name, &logFile{inc: d.inc, version: d.version, dir: dir, name: name, object: path.Join(dir, name)}, forever}
}

func (d *rawLog) lookup(ctx context.Context, _ writer.Caller, name string) (child, error) {
	none := child{name: name, ttl: forever}
	if d.sub == "" && name == sidecarDir {
		if found, err := d.inc.holdsFiles(ctx, path.Join(logDir, sidecarDir)); err != nil || !found {
			return none, err
		}
		return d.child(name), nil
	}
	if !d.holds(name) {
		return none, nil
	}
	c := d.child(name)
	if exists, err := c.node.(*logFile).exists(ctx); err != nil || !exists {
		return none, err
	}
	return c, nil
}

func (d *rawLog) list(ctx context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		prefix := path.Join(logDir, d.sub) + "/"
		for info, err := range d.inc.store.List(ctx, prefix, "", "/") {
			if err != nil {
				yield(child{}, err)
				return
			}
			name := strings.TrimSuffix(strings.TrimPrefix(info.Name, prefix), "/")
			if info.IsPrefix && (d.sub != "" || name != sidecarDir) || !info.IsPrefix && !d.holds(name) {
				continue
			}
			if !yield(d.child(name), nil) {
				return
			}
		}
	}
}

// holdsFiles reports whether the table has files below a directory.
func (inc *incarnation) holdsFiles(ctx context.Context, dir string) (bool, error) {
	for _, err := range inc.store.List(ctx, dir+"/", "", "/") {
		return err == nil, err
	}
	return false, nil
}
