package snapshot

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/go-json-experiment/json/jsontext"
)

// rowReader appends to out what it finds in the next rows, of which the first
// has the number row.
type rowReader[T any] func(out []T, row int64, rows int) ([]T, error)

// addActions reads adds.
func addActions(g *rowGroupColumns) rowReader[*action.Add] {
	columns, maxRow := newAddColumns(g), g.long("add", "deletionVector", "maxRowIndex")
	return perRow(newIdentityColumns(g, "add", "size"), func(s *rowScan) *action.Add {
		add := columns.read(s)
		if add != nil {
			keepMaxRow(add.DeletionVector, s.long(maxRow))
		}
		return add
	})
}

// removeActions reads removes.
func removeActions(g *rowGroupColumns) rowReader[*action.Remove] {
	path, deleted := g.text("remove", "path"), g.long("remove", "deletionTimestamp")
	changes, extended := g.flag("remove", "dataChange"), g.flag("remove", "extendedFileMetadata")
	values, size := g.mapping("remove", "partitionValues"), g.long("remove", "size")
	row, version := g.long("remove", "baseRowId"), g.long("remove", "defaultRowCommitVersion")
	vector, maxRow := newVectorColumns(g, "remove"), g.long("remove", "deletionVector", "maxRowIndex")
	return perRow(newIdentityColumns(g, "remove", "deletionTimestamp"), func(s *rowScan) *action.Remove {
		r := &action.Remove{
			Path: value(s.text(path)), DeletionTimestamp: s.long(deleted), DataChange: s.flag(changes),
			ExtendedFileMetadata: scan(s, extended, extended.optionalFlag), PartitionValues: s.entries(values),
			Size: s.long(size), BaseRowID: s.long(row), DefaultRowCommitVersion: s.long(version),
			DeletionVector: vector.read(s),
		}
		keepMaxRow(r.DeletionVector, s.long(maxRow))
		return r
	})
}

// perRow reads an action from each row that has one.
func perRow[T any](identity *identityColumns, read func(*rowScan) T) rowReader[T] {
	return func(out []T, row int64, rows int) ([]T, error) {
		if err := identity.next(rows); err != nil {
			return out, err
		}
		s := &rowScan{}
		for i := range rows {
			if there, err := identity.there(i); err != nil {
				return out, err
			} else if there {
				s.row = row + int64(i)
				out = append(out, read(s))
			}
		}
		return out, s.err
	}
}

// keepMaxRow keeps a member of deletion vectors that is not in the protocol but
// in every checkpoint that Spark writes.
func keepMaxRow(dv *action.DeletionVector, last *int64) {
	if dv != nil && last != nil {
		dv.Extra = jsontext.Value(`{"maxRowIndex":` + strconv.FormatInt(*last, 10) + `}`)
	}
}

// CheckpointFile is what identifies a file action of a checkpoint.
type CheckpointFile struct {
	// Row is the number of the row in its row group.
	Row int64
	// Path is as in the log, DV the id of the deletion vector.
	Path, DV string
	// Size is that of an add.
	Size int64
	// Removed says that it is a remove, of this time in milliseconds.
	Removed           bool
	DeletionTimestamp int64
}

// identities reads what identifies adds and removes. Its strings are valid until
// the pages are released.
func identities(g *rowGroupColumns) rowReader[CheckpointFile] {
	adds, removes := newIdentityColumns(g, "add", "size"), newIdentityColumns(g, "remove", "deletionTimestamp")
	return func(out []CheckpointFile, row int64, rows int) ([]CheckpointFile, error) {
		if err := errors.Join(adds.next(rows), removes.next(rows)); err != nil {
			return out, err
		}
		for i := range rows {
			add, err1 := adds.there(i)
			remove, err2 := removes.there(i)
			f := CheckpointFile{Row: row + int64(i)}
			switch {
			case err1 != nil || err2 != nil:
				return out, errors.Join(err1, err2)
			case add && remove:
				return out, errors.New("a row both adds and removes a file")
			case add:
				f.Path, f.DV, f.Size = borrowed(adds.paths[i]), adds.dv(i), adds.numbers[i].n
			case remove:
				f.Path, f.DV, f.Removed = borrowed(removes.paths[i]), removes.dv(i), true
				f.DeletionTimestamp = removes.numbers[i].n
			default:
				continue
			}
			out = append(out, f)
		}
		return out, nil
	}
}

// identityColumns are the columns that identify the files of adds or removes,
// and the rows of them that were read last.
type identityColumns struct {
	path, number, dvKind, dvPath, dvOffset *column
	paths, dvKinds, dvPaths                [][]byte
	numbers, dvOffsets                     []long
}

// newIdentityColumns opens them; number is one that is of interest beside.
func newIdentityColumns(g *rowGroupColumns, kind, number string) *identityColumns {
	return &identityColumns{
		path: g.text(kind, "path"), number: g.long(kind, number),
		dvKind: g.text(kind, "deletionVector", "storageType"), dvPath: g.text(kind, "deletionVector", "pathOrInlineDv"),
		dvOffset: g.long(kind, "deletionVector", "offset"),
	}
}

func (c *identityColumns) next(rows int) error {
	for _, texts := range []*[][]byte{&c.paths, &c.dvKinds, &c.dvPaths} {
		*texts = slices.Grow((*texts)[:0], rows)[:rows]
	}
	for _, longs := range []*[]long{&c.numbers, &c.dvOffsets} {
		*longs = slices.Grow((*longs)[:0], rows)[:rows]
	}
	return errors.Join(c.path.texts(c.paths), c.number.longs(c.numbers),
		c.dvKind.texts(c.dvKinds), c.dvPath.texts(c.dvPaths), c.dvOffset.longs(c.dvOffsets))
}

// there reports whether row i holds an action.
func (c *identityColumns) there(i int) (bool, error) {
	if len(c.paths[i]) == 0 && (c.paths[i] != nil || c.numbers[i].valid) {
		return false, errors.New("a file has no path")
	}
	return c.paths[i] != nil, nil
}

// dv is the id of the deletion vector of row i.
func (c *identityColumns) dv(i int) string {
	if c.dvKinds[i] == nil {
		return ""
	}
	dv := action.DeletionVector{StorageType: string(c.dvKinds[i]), PathOrInlineDV: string(c.dvPaths[i]), Offset: c.dvOffsets[i].pointer()}
	return dv.ID()
}

// knownCheckpointColumns are the columns whose values a checkpoint made of
// another one holds too, or need not hold: provenance and change data files do
// not belong in a checkpoint, nor statistics and tags of removed files. Parsed
// values repeat others. A name stands for all that is below it.
var knownCheckpointColumns = []string{
	"protocol.minReaderVersion", "protocol.minWriterVersion", "protocol.readerFeatures", "protocol.writerFeatures",
	"metaData.id", "metaData.name", "metaData.description", "metaData.format.provider", "metaData.format.options",
	"metaData.schemaString", "metaData.partitionColumns", "metaData.createdTime", "metaData.configuration",
	"txn.appId", "txn.version", "txn.lastUpdated",
	"domainMetadata.domain", "domainMetadata.configuration", "domainMetadata.removed",
	"add.path", "add.partitionValues", "add.size", "add.modificationTime", "add.dataChange", "add.stats", "add.tags",
	"add.deletionVector.storageType", "add.deletionVector.pathOrInlineDv", "add.deletionVector.offset",
	"add.deletionVector.sizeInBytes", "add.deletionVector.cardinality", "add.deletionVector.maxRowIndex",
	"add.baseRowId", "add.defaultRowCommitVersion", "add.clusteringProvider",
	"add.stats_parsed", "add.partitionValues_parsed",
	"remove.path", "remove.deletionTimestamp", "remove.dataChange", "remove.extendedFileMetadata",
	"remove.partitionValues", "remove.size", "remove.baseRowId", "remove.defaultRowCommitVersion",
	"remove.deletionVector.storageType", "remove.deletionVector.pathOrInlineDv", "remove.deletionVector.offset",
	"remove.deletionVector.sizeInBytes", "remove.deletionVector.cardinality", "remove.deletionVector.maxRowIndex",
	"remove.stats", "remove.tags", "remove.numRecords",
	"commitInfo", "cdc", "checkpointMetadata", "sidecar",
}

func knownCheckpointColumn(leaf []string) bool {
	name := strings.Join(leaf, ".")
	return slices.ContainsFunc(knownCheckpointColumns, func(known string) bool {
		rest, ok := strings.CutPrefix(name, known)
		return ok && (rest == "" || rest[0] == '.')
	})
}
