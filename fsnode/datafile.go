package fsnode

import (
	"context"
	"errors"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// dataFile is a committed data file. It is made for one operation from its
// node id and then dropped; a name that several files share is then not the one
// that their directory lists.
type dataFile struct {
	inc *incarnation
	id  uint64
	*snapshot.File
	// unsure is set when the size shown is not that of what would be read, as
	// the file cannot be.
	unsure bool
}

// file builds the node of a file that a directory of the incarnation shows.
func (inc *incarnation) file(f *snapshot.File) (*dataFile, error) {
	d := &dataFile{inc: inc}
	return d, d.be(f)
}

// be makes the node that of another file of its incarnation.
func (d *dataFile) be(f *snapshot.File) error {
	id, ok := fileRef{d.inc.slot, f.SchemaOrdinal, f.ID}.nodeID()
	if !ok {
		return fault.New(errForbidden, "more files or schemas than the mount can number").
			AtTable(d.inc.t.source).InFile(f.Name).WithHint("mount the table again")
	}
	d.id, d.File = id, f
	return nil
}

// dataFile finds the file behind a node id.
func (f *FS) dataFile(ctx context.Context, id uint64) (*dataFile, error) {
	ref := unpackFile(id)
	inc, ok := f.incarnation(ref.slot)
	if !ok || inc.stale() {
		return nil, errStale
	}
	inc.t.use()
	file, err := inc.snap.ByID(ctx, ref.id)
	if errors.Is(err, snapshot.ErrNotExist) || inc.stale() {
		return nil, errStale
	}
	if err != nil {
		return nil, err
	}
	file.SchemaOrdinal = ref.ordinal
	return &dataFile{inc: inc, id: id, File: &file}, nil
}

func (d *dataFile) key() nodeKey   { return nodeKey{kind: kindData, table: d.inc.t} }
func (d *dataFile) kind() statKind { return dataStat }

func (d *dataFile) attrTTL() time.Duration {
	if d.unsure {
		return never
	}
	return forever
}

// stat shows a file that cannot be read in the size that the log says: why it
// cannot is told who opens it.
func (d *dataFile) stat(ctx context.Context) (stat, error) {
	size, err := d.inc.snap.ServedSize(ctx, *d.File)
	if err != nil && ctx.Err() != nil {
		return stat{}, ctx.Err()
	}
	if d.unsure = err != nil; d.unsure {
		size = d.Size
	}
	return stat{dataStat, size, d.ModTime}, nil
}

// sized reports whether the size is known without looking at the file.
func (d *dataFile) sized() bool {
	_, ok := d.inc.snap.KnownSize(*d.File)
	return ok
}

// readSizes reads the sizes of files of its table that are not known.
func (d *dataFile) readSizes(ctx context.Context, files []dataFile) {
	var unknown []snapshot.File
	for i := range files {
		if !files[i].sized() {
			unknown = append(unknown, *files[i].File)
		}
	}
	d.inc.snap.ReadSizes(ctx, unknown)
}

// goneWithTable reports whether the file is missing because the table was made
// again since the kernel looked it up.
func (d *dataFile) goneWithTable(ctx context.Context) bool {
	return d.inc.t.poll(ctx, 0) == nil && d.inc.stale()
}

// isLive reports whether the file is part of the newest version: only then can
// the path by which it was reached be in current/.
func (d *dataFile) isLive(ctx context.Context) (bool, error) {
	s, err := d.inc.snap.At(ctx, d.inc.snap.Latest())
	if err != nil {
		return false, err
	}
	f, ok, err := s.ByPath(ctx, d.Path)
	return ok && f.ID == d.ID, err
}
