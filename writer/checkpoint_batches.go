package writer

import (
	"strconv"

	"github.com/deltafs/deltafs/internal/action"
)

// The columns of each kind of action. Every put gives every column one row.

type protocolBatch struct{ reader, writer, readerFeatures, writerFeatures *columnBatch }

type metadataBatch struct {
	id, name, description, provider, schema, partitions, created *columnBatch
	options, configuration                                       mapBatch
}

type txnBatch struct{ app, version, updated *columnBatch }

type domainBatch struct{ domain, configuration, removed *columnBatch }

func (e *checkpointEncoder) stateBatches() (protocolBatch, metadataBatch, txnBatch, domainBatch) {
	return protocolBatch{
			reader: e.column("protocol", "minReaderVersion"), writer: e.column("protocol", "minWriterVersion"),
			readerFeatures: e.listing("protocol", "readerFeatures"), writerFeatures: e.listing("protocol", "writerFeatures"),
		}, metadataBatch{
			id: e.column("metaData", "id"), name: e.column("metaData", "name"),
			description: e.column("metaData", "description"), provider: e.column("metaData", "format", "provider"),
			schema: e.column("metaData", "schemaString"), partitions: e.listing("metaData", "partitionColumns"),
			created: e.column("metaData", "createdTime"), options: e.mapping("metaData", "format", "options"),
			configuration: e.mapping("metaData", "configuration"),
		}, txnBatch{
			app: e.column("txn", "appId"), version: e.column("txn", "version"), updated: e.column("txn", "lastUpdated"),
		}, domainBatch{
			domain: e.column("domainMetadata", "domain"), configuration: e.column("domainMetadata", "configuration"),
			removed: e.column("domainMetadata", "removed"),
		}
}

func (b *protocolBatch) put(p *action.Protocol) {
	b.reader.short(int32(p.MinReaderVersion))
	b.writer.short(int32(p.MinWriterVersion))
	b.readerFeatures.list(p.ReaderFeatures, 1)
	b.writerFeatures.list(p.WriterFeatures, 1)
}

func (b *metadataBatch) put(m *action.Metadata) {
	b.id.text(m.ID)
	b.name.someText(m.Name)
	b.description.someText(m.Description)
	b.provider.text(m.Format.Provider)
	b.options.entries(nullable(m.Format.Options), 2)
	b.schema.text(m.SchemaString)
	b.partitions.list(append([]string{}, m.PartitionColumns...), 1)
	b.created.someLong(m.CreatedTime)
	b.configuration.entries(nullable(m.Configuration), 1)
}

func (b *txnBatch) put(t *action.Txn) {
	b.app.text(t.AppID)
	b.version.long(t.Version)
	b.updated.someLong(t.LastUpdated)
}

func (b *domainBatch) put(d *action.DomainMetadata) {
	b.domain.text(d.Domain)
	b.configuration.text(d.Configuration)
	b.removed.flag(d.Removed)
}

// parsedBatches are the parsed columns of adds, if the table has them.
func (e *checkpointEncoder) parsedBatches(l checkpointLayout) (p partitionBatch, s statsBatch) {
	column := func(f parsedField) *parsedColumn {
		return &parsedColumn{batch: e.column(append([]string{"add"}, f.path...)...), parse: f.parse}
	}
	for _, f := range l.partitions {
		p.names, p.columns = append(p.names, f.path[1]), append(p.columns, column(f))
	}
	for _, f := range l.stats {
		s.add(f.path[1:], column(f))
	}
	return p, s
}

// fileBatch are the columns of adds or removes; what only the one kind has, or
// the table does not want, is nil.
type fileBatch struct {
	path, size, dataChange, baseRow, rowVersion *columnBatch
	partitionValues                             mapBatch
	dv                                          dvBatch

	modified, stats, clustering *columnBatch
	tags                        mapBatch

	deleted, extended *columnBatch
}

type dvBatch struct{ storage, path, offset, size, cardinality, maxRow *columnBatch }

func (e *checkpointEncoder) fileBatch(kind string) fileBatch {
	dv := func(name string) *columnBatch { return e.column(kind, "deletionVector", name) }
	b := fileBatch{
		path: e.column(kind, "path"), size: e.column(kind, "size"), dataChange: e.column(kind, "dataChange"),
		baseRow: e.column(kind, "baseRowId"), rowVersion: e.column(kind, "defaultRowCommitVersion"),
		partitionValues: e.mapping(kind, "partitionValues"),
		dv: dvBatch{
			storage: dv("storageType"), path: dv("pathOrInlineDv"), offset: dv("offset"), size: dv("sizeInBytes"),
			cardinality: dv("cardinality"), maxRow: dv("maxRowIndex"),
		},
	}
	if kind == "add" {
		b.modified, b.stats = e.column(kind, "modificationTime"), e.find(kind, "stats")
		b.clustering, b.tags = e.column(kind, "clusteringProvider"), e.mapping(kind, "tags")
	} else {
		b.deleted, b.extended = e.column(kind, "deletionTimestamp"), e.column(kind, "extendedFileMetadata")
	}
	return b
}

// add puts an add. In a checkpoint nothing changes data.
func (b *fileBatch) add(a *action.Add) error {
	b.path.text(a.Path)
	if a.PartitionValues == nil {
		b.partitionValues.null(2)
	} else {
		b.partitionValues.entries(a.PartitionValues, 1)
	}
	b.size.long(a.Size)
	b.modified.long(a.ModificationTime)
	b.dataChange.flag(false)
	switch {
	case b.stats == nil:
	case a.Stats == "":
		b.stats.null(1)
	default:
		b.stats.text(a.Stats)
	}
	b.tags.entries(a.Tags, 1)
	b.baseRow.someLong(a.BaseRowID)
	b.rowVersion.someLong(a.DefaultRowCommitVersion)
	b.clustering.someText(a.ClusteringProvider)
	return b.dv.put(a.DeletionVector)
}

func (b *fileBatch) remove(r *action.Remove) error {
	b.path.text(r.Path)
	b.deleted.someLong(r.DeletionTimestamp)
	b.dataChange.flag(false)
	b.extended.someFlag(r.ExtendedFileMetadata)
	b.partitionValues.entries(r.PartitionValues, 1)
	b.size.someLong(r.Size)
	b.baseRow.someLong(r.BaseRowID)
	b.rowVersion.someLong(r.DefaultRowCommitVersion)
	return b.dv.put(r.DeletionVector)
}

func (b *dvBatch) put(d *action.DeletionVector) error {
	if d == nil {
		for _, c := range []*columnBatch{b.storage, b.path, b.offset, b.size, b.cardinality, b.maxRow} {
			c.null(1)
		}
		return nil
	}
	b.storage.text(d.StorageType)
	b.path.text(d.PathOrInlineDV)
	b.cardinality.long(d.Cardinality)
	b.maxRow.someLong(maxRowIndex(d))
	if d.Offset == nil {
		b.offset.null(2)
	} else if err := b.offset.narrow(*d.Offset); err != nil {
		return err
	}
	return b.size.narrow(d.SizeInBytes)
}

// maxRowIndex is a member that Spark gives deletion vectors beyond the
// protocol.
func maxRowIndex(d *action.DeletionVector) *int64 {
	for name, value := range action.Members(d.Extra) {
		if name == maxRowMember {
			if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
				return &n
			}
		}
	}
	return nil
}

const maxRowMember = "maxRowIndex"
