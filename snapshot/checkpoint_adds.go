package snapshot

import (
	"context"
	"sort"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
)

// adds calls visit with the add of each of the rows, which are ascending; nil
// where a row is none. It decodes these rows and no others, and ends when visit
// returns false.
func (c *checkpointFile) adds(ctx context.Context, st store.Store, rows []int64, visit func(row int64, add *action.Add) bool) error {
	return c.visit(ctx, st, checkpointVisitor{
		rowGroup: func(p *checkpointPart, number int, first int64) (bool, error) {
			end := first + p.file.RowGroups()[number].NumRows()
			n := sort.Search(len(rows), func(i int) bool { return rows[i] >= end })
			wanted := rows[:n]
			rows = rows[n:]
			more, err := p.adds(ctx, number, first, wanted, visit)
			return more && len(rows) > 0, err
		},
		line: func(r *action.Reader, _ action.Action, row int64) (bool, error) {
			if len(rows) == 0 || rows[0] != row {
				return len(rows) > 0, nil
			}
			rows = rows[1:]
			whole, err := r.Whole()
			add, _ := whole.(*action.Add)
			return err == nil && visit(row, add) && len(rows) > 0, err
		},
	})
}

// adds does so for one row group, whose first row has the number first.
func (p *checkpointPart) adds(ctx context.Context, number int, first int64, rows []int64, visit func(row int64, add *action.Add) bool) (bool, error) {
	if len(rows) == 0 {
		return true, nil
	}
	g, err := p.columns(number)
	defer p.closeColumns(g)
	var columns *addColumns
	if err == nil {
		err = guard(func() error { columns = newAddColumns(g); return g.err })
	}
	for i := 0; err == nil && i < len(rows); i++ {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		var add *action.Add
		err = guard(func() error {
			s := &rowScan{row: rows[i] - first}
			add = columns.read(s)
			g.release()
			if p.budget -= addBytes(add); s.err == nil && p.budget < 0 {
				return errInflated
			}
			return s.err
		})
		if err == nil && !visit(rows[i], add) {
			return false, nil
		}
	}
	return true, err
}

// addBytes is about how much memory an add takes.
func addBytes(add *action.Add) int64 {
	if add == nil {
		return 0
	}
	n := len(add.Path) + len(add.Stats)
	for _, m := range []map[string]*string{add.PartitionValues, add.Tags} {
		for k, v := range m {
			n += len(k) + len(value(v))
		}
	}
	return int64(n)
}

// addColumns are the columns of the adds of a row group.
type addColumns struct {
	path, stats, clusteringProvider             *column
	size, modified, baseRowID, rowCommitVersion *column
	dataChange                                  *column
	partitionValues, tags                       *mapColumn
	vector                                      vectorColumns
	parsed                                      *parsedStats

	// known are the maps of partition values by their spelling.
	known map[string]map[string]*string
	key   []byte
}

// vectorColumns are the columns of deletion vectors.
type vectorColumns struct{ kind, path, offset, size, cardinality *column }

func newAddColumns(g *rowGroupColumns) *addColumns {
	return &addColumns{
		known: map[string]map[string]*string{},
		path:  g.text("add", "path"), stats: g.text("add", "stats"),
		clusteringProvider: g.text("add", "clusteringProvider"),
		size:               g.long("add", "size"), modified: g.long("add", "modificationTime"),
		baseRowID: g.long("add", "baseRowId"), rowCommitVersion: g.long("add", "defaultRowCommitVersion"),
		dataChange:      g.flag("add", "dataChange"),
		partitionValues: g.mapping("add", "partitionValues"), tags: g.mapping("add", "tags"),
		vector: newVectorColumns(g, "add"), parsed: newParsedStats(g),
	}
}

// newVectorColumns opens those of adds or removes.
func newVectorColumns(g *rowGroupColumns, kind string) vectorColumns {
	return vectorColumns{
		kind: g.text(kind, "deletionVector", "storageType"), path: g.text(kind, "deletionVector", "pathOrInlineDv"),
		offset: g.long(kind, "deletionVector", "offset"), size: g.long(kind, "deletionVector", "sizeInBytes"),
		cardinality: g.long(kind, "deletionVector", "cardinality"),
	}
}

// read reads a row; nil when it is no add.
func (c *addColumns) read(s *rowScan) *action.Add {
	path, size := s.text(c.path), s.long(c.size)
	if path == nil && size == nil {
		return nil
	}
	add := &action.Add{
		Path: value(path), PartitionValues: c.sharedValues(s), Size: value(size),
		ModificationTime: value(s.long(c.modified)), DataChange: s.flag(c.dataChange),
		Stats: value(s.text(c.stats)), Tags: s.entries(c.tags),
		DeletionVector: c.vector.read(s),
		BaseRowID:      s.long(c.baseRowID), DefaultRowCommitVersion: s.long(c.rowCommitVersion),
		ClusteringProvider: s.text(c.clusteringProvider),
	}
	if add.Stats == "" {
		add.Stats = c.parsed.read(s)
	}
	return add
}

// sharedValues returns the partition values, a map for all adds that have the
// same.
func (c *addColumns) sharedValues(s *rowScan) map[string]*string {
	m := c.partitionValues
	if m == nil {
		return map[string]*string{}
	}
	read := func() (entries, error) {
		err := m.read(1)
		if err != nil {
			return entries{}, err
		}
		return m.row(0), nil
	}
	values := scan(s, m, read)
	c.key = values.appendTo(c.key[:0])
	out, ok := c.known[string(c.key)]
	if !ok {
		out = values.toMap()
		c.known[string(c.key)] = out
	}
	return out
}

func (c *vectorColumns) read(s *rowScan) *action.DeletionVector {
	kind := s.text(c.kind)
	if kind == nil {
		return nil
	}
	return &action.DeletionVector{
		StorageType: *kind, PathOrInlineDV: value(s.text(c.path)), Offset: s.long(c.offset),
		SizeInBytes: value(s.long(c.size)), Cardinality: value(s.long(c.cardinality)),
	}
}
