package snapshot

import (
	"errors"

	"github.com/deltafs/deltafs/internal/action"
)

// rowScan collects the first error of a row, so that a row reads as a list of
// columns.
type rowScan struct{ err error }

func scan[T any](s *rowScan, read func() (T, error)) T {
	v, err := read()
	if err != nil && s.err == nil {
		s.err = err
	}
	return v
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// readStateRows reads every action of a row group that is not about files.
func readStateRows(g *rowGroupColumns, rows int64, emit func(action.Action)) error {
	var readers []func() (action.Action, error)
	for _, r := range []struct {
		column string
		rows   func(*rowGroupColumns) func() (action.Action, error)
	}{
		{"protocol", protocolRows}, {"metaData", metadataRows}, {"txn", txnRows},
		{"domainMetadata", domainRows}, {"checkpointMetadata", checkpointMetadataRows},
	} {
		if g.column(r.column) != nil {
			readers = append(readers, r.rows(g))
		}
	}
	if g.err != nil || len(readers) == 0 {
		return g.err
	}
	for range rows {
		for _, read := range readers {
			a, err := read()
			if err != nil {
				return err
			}
			if a != nil {
				emit(a)
			}
		}
	}
	return nil
}

func protocolRows(g *rowGroupColumns) func() (action.Action, error) {
	reader, writer := g.long("protocol", "minReaderVersion"), g.long("protocol", "minWriterVersion")
	readerFeatures, writerFeatures := g.list("protocol", "readerFeatures"), g.list("protocol", "writerFeatures")
	return func() (action.Action, error) {
		var s rowScan
		r, w := scan(&s, reader.long), scan(&s, writer.long)
		p := &action.Protocol{
			MinReaderVersion: int(value(r)), MinWriterVersion: int(value(w)),
			ReaderFeatures: scan(&s, readerFeatures.list), WriterFeatures: scan(&s, writerFeatures.list),
		}
		if s.err != nil || r == nil || w == nil {
			return nil, s.err
		}
		return p, nil
	}
}

func metadataRows(g *rowGroupColumns) func() (action.Action, error) {
	id, name := g.text("metaData", "id"), g.text("metaData", "name")
	description, schema := g.text("metaData", "description"), g.text("metaData", "schemaString")
	provider, options := g.text("metaData", "format", "provider"), g.mapping("metaData", "format", "options")
	partitionColumns := g.list("metaData", "partitionColumns")
	created, configuration := g.long("metaData", "createdTime"), g.mapping("metaData", "configuration")
	return func() (action.Action, error) {
		var s rowScan
		key, text := scan(&s, id.text), scan(&s, schema.text)
		m := &action.Metadata{
			ID: value(key), SchemaString: value(text),
			Name: scan(&s, name.text), Description: scan(&s, description.text),
			Format: action.Format{
				Provider: value(scan(&s, provider.text)), Options: plain(scan(&s, options.entries)),
			},
			PartitionColumns: scan(&s, partitionColumns.list), CreatedTime: scan(&s, created.long),
			Configuration: plain(scan(&s, configuration.entries)),
		}
		if s.err != nil || (key == nil && text == nil) {
			return nil, s.err
		}
		return m, nil
	}
}

// plain drops the entries without a value.
func plain(in map[string]*string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		if v != nil {
			out[k] = *v
		}
	}
	return out
}

func txnRows(g *rowGroupColumns) func() (action.Action, error) {
	app, version, updated := g.text("txn", "appId"), g.long("txn", "version"), g.long("txn", "lastUpdated")
	return func() (action.Action, error) {
		var s rowScan
		id, v, u := scan(&s, app.text), scan(&s, version.long), scan(&s, updated.long)
		if s.err != nil || id == nil {
			return nil, s.err
		}
		return &action.Txn{AppID: *id, Version: value(v), LastUpdated: u}, nil
	}
}

func domainRows(g *rowGroupColumns) func() (action.Action, error) {
	domain, configuration := g.text("domainMetadata", "domain"), g.text("domainMetadata", "configuration")
	removed := g.flag("domainMetadata", "removed")
	return func() (action.Action, error) {
		var s rowScan
		name, conf, gone := scan(&s, domain.text), scan(&s, configuration.text), scan(&s, removed.boolean)
		if s.err != nil || name == nil {
			return nil, s.err
		}
		return &action.DomainMetadata{Domain: *name, Configuration: value(conf), Removed: gone}, nil
	}
}

func checkpointMetadataRows(g *rowGroupColumns) func() (action.Action, error) {
	version := g.long("checkpointMetadata", "version")
	return func() (action.Action, error) {
		v, err := version.long()
		if err != nil || v == nil {
			return nil, err
		}
		return &action.CheckpointMetadata{Version: *v}, nil
	}
}

// addColumns are the columns of the adds of a row group.
type addColumns struct {
	path, stats, clusteringProvider             *cursor
	size, modified, baseRowID, rowCommitVersion *cursor
	dataChange                                  *cursor
	partitionValues, tags                       *mapCursor

	dvType, dvPath, dvOffset, dvSize, dvCardinality *cursor
}

func newAddColumns(g *rowGroupColumns) *addColumns {
	return &addColumns{
		path: g.text("add", "path"), stats: g.text("add", "stats"),
		clusteringProvider: g.text("add", "clusteringProvider"),
		size:               g.long("add", "size"), modified: g.long("add", "modificationTime"),
		baseRowID: g.long("add", "baseRowId"), rowCommitVersion: g.long("add", "defaultRowCommitVersion"),
		dataChange:      g.flag("add", "dataChange"),
		partitionValues: g.mapping("add", "partitionValues"), tags: g.mapping("add", "tags"),
		dvType: g.text("add", "deletionVector", "storageType"), dvPath: g.text("add", "deletionVector", "pathOrInlineDv"),
		dvOffset: g.long("add", "deletionVector", "offset"), dvSize: g.long("add", "deletionVector", "sizeInBytes"),
		dvCardinality: g.long("add", "deletionVector", "cardinality"),
	}
}

// row reads the next row; nil when it is no add.
func (c *addColumns) row() (*action.Add, error) {
	var s rowScan
	path, size := scan(&s, c.path.text), scan(&s, c.size.long)
	add := &action.Add{
		PartitionValues: scan(&s, c.partitionValues.entries), Size: value(size),
		ModificationTime: value(scan(&s, c.modified.long)), DataChange: scan(&s, c.dataChange.boolean),
		Stats: value(scan(&s, c.stats.text)), Tags: scan(&s, c.tags.entries),
		DeletionVector: c.deletionVector(&s),
		BaseRowID:      scan(&s, c.baseRowID.long), DefaultRowCommitVersion: scan(&s, c.rowCommitVersion.long),
		ClusteringProvider: scan(&s, c.clusteringProvider.text),
	}
	switch {
	case s.err != nil || (path == nil && size == nil):
		return nil, s.err
	case path == nil || *path == "":
		return nil, errors.New("an add has no path")
	case size == nil:
		return nil, errors.New("an add has no size")
	}
	add.Path = *path
	if add.PartitionValues == nil {
		add.PartitionValues = map[string]*string{}
	}
	return add, nil
}

func (c *addColumns) deletionVector(s *rowScan) *action.DeletionVector {
	storage, path := scan(s, c.dvType.text), scan(s, c.dvPath.text)
	offset, size, rows := scan(s, c.dvOffset.long), scan(s, c.dvSize.long), scan(s, c.dvCardinality.long)
	if storage == nil {
		return nil
	}
	return &action.DeletionVector{
		StorageType: *storage, PathOrInlineDV: value(path), Offset: offset,
		SizeInBytes: value(size), Cardinality: value(rows),
	}
}

// addBatches reads the adds of a row group a batch at a time, so that no
// foreign code runs inside guard.
type addBatches struct {
	part    *checkpointPart
	columns *rowGroupColumns
	adds    *addColumns
	// row is the number of the next row, left how many there are.
	row, left int64
	err       error
}

func (p *checkpointPart) newAddBatches(rowGroup int) *addBatches {
	b := &addBatches{part: p}
	b.err = guard(func() error {
		b.columns = newRowGroupColumns(p.file, rowGroup)
		b.adds = newAddColumns(b.columns)
		b.left = p.file.RowGroups()[rowGroup].NumRows()
		// A checkpoint without files has the columns all the same: without
		// them, files that are there would go unseen.
		if b.columns.err == nil && (b.adds.path == nil || b.adds.size == nil) {
			return errors.New("it has no columns add.path and add.size")
		}
		return b.columns.err
	})
	return b
}

// next returns the adds among the next rows, nil at the end.
func (b *addBatches) next() ([]numberedAdd, error) {
	if b.err != nil || b.left <= 0 {
		return nil, b.err
	}
	rows := min(b.left, addBatch)
	b.left -= rows
	adds := make([]numberedAdd, 0, rows)
	err := guard(func() error {
		for number := b.row; number < b.row+rows; number++ {
			add, err := b.adds.row()
			if err != nil {
				return err
			}
			if add == nil {
				continue
			}
			if b.part.budget -= addBytes(add); b.part.budget < 0 {
				return errInflated
			}
			adds = append(adds, numberedAdd{add, number})
		}
		return nil
	})
	b.row += rows
	return adds, err
}

// addBytes is about how much memory an add takes.
func addBytes(add *action.Add) int64 {
	n := len(add.Path) + len(add.Stats)
	for _, m := range []map[string]*string{add.PartitionValues, add.Tags} {
		for k, v := range m {
			n += len(k) + len(value(v))
		}
	}
	return int64(n)
}

func (b *addBatches) close() {
	if b.columns != nil {
		_ = guard(func() error { b.columns.close(); return nil })
	}
}
