package writer

import (
	"slices"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/parquet-go/parquet-go"
)

// checkpointLayout is what the table decides about the columns of its
// checkpoints.
type checkpointLayout struct {
	// statsText says that statistics are written as text.
	statsText bool
	// partitions and stats are the parsed columns, nil without them.
	partitions, stats []parsedField
}

// newCheckpointLayout follows the properties delta.checkpoint.writeStatsAsJson
// and delta.checkpoint.writeStatsAsStruct. By default the first is on, and the
// second, on which engines differ, is on if statistics would be lost without.
func newCheckpointLayout(s tableState) (checkpointLayout, error) {
	config := s.metadata.Configuration
	l := checkpointLayout{statsText: !isOff(config, "delta.checkpoint.writeStatsAsJson")}
	const asStruct = "delta.checkpoint.writeStatsAsStruct"
	_, set := property(config, asStruct)
	if set && !isTrue(config, asStruct) || !set && l.statsText {
		return l, nil
	}
	schema, err := snapshot.ParseSchema(s.metadata.SchemaString)
	if err != nil {
		return l, fault.Wrap(ErrNoCheckpoint, err, "statistics have no types")
	}
	t := &target{
		schema: schema, partitionColumns: s.metadata.PartitionColumns, config: config,
		clustering: clusteringColumns(s.domains), tightBounds: slices.Contains(s.protocol.WriterFeatures, "deletionVectors"),
	}
	var partitions []snapshot.Field
	for _, name := range t.partitionColumns {
		if f, ok := schema.Lookup(name); ok {
			partitions = append(partitions, f)
		}
	}
	l.partitions, l.stats = parsedPartitions(partitions), parsedStatistics(t)
	return l, nil
}

// unordered are the columns whose bounds the Parquet library finds wrong, as it
// compares decimals in bytes without their sign.
func (l checkpointLayout) unordered() (out [][]string) {
	for _, f := range slices.Concat(l.partitions, l.stats) {
		if f.node.Type().Kind() == parquet.FixedLenByteArray {
			out = append(out, append([]string{"add"}, f.path...))
		}
	}
	return out
}

// schema is the Parquet schema of a classic checkpoint as Spark writes it
// (protocol section "Checkpoint Schema"): everything is optional but the keys
// of maps.
func (l checkpointLayout) schema() *parquet.Schema {
	text := parquet.Optional(parquet.String())
	number := parquet.Optional(parquet.Leaf(parquet.Int64Type))
	small := parquet.Optional(parquet.Leaf(parquet.Int32Type))
	flag := parquet.Optional(parquet.Leaf(parquet.BooleanType))
	list := parquet.Optional(parquet.List(text))
	mapping := parquet.Optional(parquet.Map(parquet.String(), text))
	group := func(members parquet.Group) parquet.Node { return parquet.Optional(members) }

	deletionVector := group(parquet.Group{
		"storageType": text, "pathOrInlineDv": text, "offset": small,
		"sizeInBytes": small, "cardinality": number, "maxRowIndex": number,
	})
	add := parquet.Group{
		"path": text, "partitionValues": mapping, "size": number, "modificationTime": number, "dataChange": flag,
		"tags": mapping, "deletionVector": deletionVector,
		"baseRowId": number, "defaultRowCommitVersion": number, "clusteringProvider": text,
	}
	if l.statsText {
		add["stats"] = text
	}
	for name, fields := range map[string][]parsedField{"partitionValues_parsed": l.partitions, "stats_parsed": l.stats} {
		if node := parsedGroup(fields, name); node != nil {
			add[name] = node
		}
	}
	return parquet.NewSchema("checkpoint", parquet.Group{
		"protocol": group(parquet.Group{
			"minReaderVersion": small, "minWriterVersion": small, "readerFeatures": list, "writerFeatures": list,
		}),
		"metaData": group(parquet.Group{
			"id": text, "name": text, "description": text,
			"format":       group(parquet.Group{"provider": text, "options": mapping}),
			"schemaString": text, "partitionColumns": list, "createdTime": number, "configuration": mapping,
		}),
		"txn":            group(parquet.Group{"appId": text, "version": number, "lastUpdated": number}),
		"domainMetadata": group(parquet.Group{"domain": text, "configuration": text, "removed": flag}),
		"add":            group(add),
		"remove": group(parquet.Group{
			"path": text, "deletionTimestamp": number, "dataChange": flag, "extendedFileMetadata": flag,
			"partitionValues": mapping, "size": number, "deletionVector": deletionVector,
			"baseRowId": number, "defaultRowCommitVersion": number,
		}),
	})
}
