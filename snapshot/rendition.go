package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetview"
)

// View says how data files are shown.
type View int

const (
	// ViewRaw shows them as they lie in storage.
	ViewRaw View = iota
	// ViewTable shows the rows, names and types that the table has.
	ViewTable
)

// rendition is what showing a data file depends on besides the file: the names,
// types and order of the table's columns. Versions with the same columns share
// one, whatever else of their metadata differs.
type rendition struct {
	// ordinal numbers the renditions of an incarnation, from 1 on.
	ordinal uint32
	// columns are all that a file shall have. Those in filled are partition
	// columns, which get their Constant from the file's values.
	columns []parquetview.Field
	filled  []filledColumn
	// err says why no file can be shown.
	err error
}

// filledColumn is a partition column that files are shown with.
type filledColumn struct {
	// column is its place among the columns, partition that among the partition
	// columns, of which there are so many.
	column, partition, partitions int
	field                         Field
}

// newRendition makes the rendition of a metadata, without its ordinal.
func newRendition(s *shape, mapping string, fillPartitions bool) *rendition {
	r := &rendition{}
	m := columnMapping{mode: mapping}
	for _, f := range s.schema.Fields {
		partition := slices.IndexFunc(s.partitions, func(p Field) bool { return p.Name == f.Name })
		if partition >= 0 && !fillPartitions {
			continue
		}
		wanted, err := m.field(f)
		if err != nil && r.err == nil {
			r.err = err
		}
		if partition >= 0 {
			r.filled = append(r.filled, filledColumn{len(r.columns), partition, len(s.partitions), f})
		}
		r.columns = append(r.columns, wanted)
	}
	return r
}

// fingerprint is equal for renditions that show every file alike.
func (r *rendition) fingerprint() [sha256.Size]byte {
	type filled struct{ column, partition, partitions int }
	var places []filled
	for _, f := range r.filled {
		places = append(places, filled{f.column, f.partition, f.partitions})
	}
	// There is no pointer in it: constants are those of files.
	return sha256.Sum256(fmt.Appendf(nil, "%#v %#v", r.columns, places))
}

// renditions are those of an incarnation, the one with ordinal n in place n-1.
type renditions struct {
	all     []*rendition
	byPrint map[[sha256.Size]byte]*rendition
}

// rendition returns how the files of a version are shown, nil if as they lie in
// storage.
func (n *incarnation) rendition(h *header) *rendition {
	// A log without a schema, as of a table that has no data, says nothing of
	// columns.
	if n.table.view == ViewRaw || len(h.shape.schema.Fields) == 0 {
		return nil
	}
	if r := h.shape.rendition.Load(); r != nil {
		return r
	}
	made := newRendition(h.shape, columnMappingMode(h.metadata), n.table.fillPartitions)
	print := made.fingerprint()
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.renditions.byPrint[print]
	if !ok {
		r = made
		n.renditions.all = append(n.renditions.all, r)
		r.ordinal = uint32(len(n.renditions.all))
		if n.renditions.byPrint == nil {
			n.renditions.byPrint = map[[sha256.Size]byte]*rendition{}
		}
		n.renditions.byPrint[print] = r
	}
	h.shape.rendition.Store(r)
	return r
}

// renditionAt returns the rendition with an ordinal.
func (n *incarnation) renditionAt(ordinal uint32) (*rendition, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ordinal == 0 || int(ordinal) > len(n.renditions.all) {
		return nil, false
	}
	return n.renditions.all[ordinal-1], true
}

// wanted is how a file shall look. Only what it takes for that is read, and its
// add action only if it is not given.
func (n *incarnation) wanted(ctx context.Context, f File, add *action.Add) (parquetview.Wanted, error) {
	r, ok := n.renditionAt(f.SchemaOrdinal)
	if !ok {
		return parquetview.Wanted{}, fault.New(ErrNotExist, "no table metadata has the ordinal %d", f.SchemaOrdinal)
	}
	if r.err != nil {
		return parquetview.Wanted{}, r.err
	}
	w := parquetview.Wanted{Columns: r.columns}
	if len(r.filled) > 0 {
		w.Columns = slices.Clone(r.columns)
		if err := n.fill(ctx, f, r.filled, w.Columns); err != nil {
			return w, err
		}
	}
	if f.DV == "" {
		return w, nil
	}
	if add == nil {
		adds, err := n.adds(ctx, []File{f})
		if err != nil {
			return w, err
		}
		add = adds[0]
	}
	var err error
	w.Deleted, err = n.table.DeletionVector(ctx, add)
	return w, err
}
