package writer

import (
	"fmt"
	"io"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/parquet-go/parquet-go"
)

// batchRows is how many rows of one kind are gathered before they are written,
// column by column.
const batchRows = 1024

// checkpointLimits bound the memory that a checkpoint takes.
type checkpointLimits struct {
	// rows and bytes are the size at which a row group ends. The smaller it is,
	// the more row groups can the next checkpoint copy as they are.
	rows, bytes int64
	// changes is how much of the commits is held in memory, in bytes.
	changes int64
}

var defaultCheckpointLimits = checkpointLimits{rows: 1 << 15, bytes: 32 << 20, changes: 32 << 20}

// checkpointEncoder writes actions as the rows of a checkpoint.
type checkpointEncoder struct {
	out     *parquet.GenericWriter[any]
	limits  checkpointLimits
	columns []*columnBatch
	// kind is the action of the rows that are gathered, gathered their number.
	kind     string
	gathered int
	// rows and bytes are about the size of the row group at hand.
	rows, bytes int64
	// total is the number of rows written.
	total int64

	protocol protocolBatch
	metadata metadataBatch
	txn      txnBatch
	domain   domainBatch
	added    fileBatch
	removed  fileBatch
	// partitions and stats are the parsed columns of adds.
	partitions partitionBatch
	stats      statsBatch
}

func newCheckpointEncoder(out io.Writer, layout checkpointLayout, limits checkpointLimits) *checkpointEncoder {
	schema := layout.schema()
	options := []parquet.WriterOption{
		schema, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("deltafs", "1", "0"),
		// What every reader of checkpoints has known for long.
		parquet.DataPageVersion(1), parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.Plain),
	}
	for _, path := range layout.unordered() {
		options = append(options, parquet.SkipPageBounds(path...))
	}
	e := &checkpointEncoder{limits: limits, out: parquet.NewGenericWriter[any](out, options...)}
	writers := e.out.ColumnWriters()
	for i, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		e.columns = append(e.columns, &columnBatch{
			out: writers[i], path: path, index: leaf.ColumnIndex, maxDef: leaf.MaxDefinitionLevel,
		})
	}
	e.protocol, e.metadata, e.txn, e.domain = e.stateBatches()
	e.added, e.removed = e.fileBatch("add"), e.fileBatch("remove")
	e.partitions, e.stats = e.parsedBatches(layout)
	return e
}

// find finds a leaf column, nil if there is none.
func (e *checkpointEncoder) find(path ...string) *columnBatch {
	for _, c := range e.columns {
		if slices.Equal(c.path, path) {
			return c
		}
	}
	return nil
}

// column finds a leaf column that the schema has.
func (e *checkpointEncoder) column(path ...string) *columnBatch {
	c := e.find(path...)
	if c == nil {
		panic(fmt.Sprintf("a checkpoint has no column %q", path)) // a defect, which guarded reports
	}
	return c
}

func (e *checkpointEncoder) mapping(path ...string) mapBatch {
	entry := append(path, "key_value")
	return mapBatch{e.column(append(entry, "key")...), e.column(append(entry, "value")...)}
}

func (e *checkpointEncoder) listing(path ...string) *columnBatch {
	return e.column(append(path, "list", "element")...)
}

// write writes one action as a row.
func (e *checkpointEncoder) write(a action.Action) error {
	if e.kind != a.Kind() {
		if err := e.flush(); err != nil {
			return err
		}
		e.kind = a.Kind()
	}
	if err := e.gather(a); err != nil {
		return err
	}
	if e.gathered++; e.gathered < batchRows && e.rows+int64(e.gathered) < e.limits.rows {
		return nil
	}
	return e.flush()
}

// grown notes that the row group has more rows, and ends one that is large.
func (e *checkpointEncoder) grown(rows, bytes int64) error {
	e.rows += rows
	e.bytes += bytes
	e.total += rows
	if e.rows < e.limits.rows && e.bytes < e.limits.bytes {
		return nil
	}
	return e.end()
}

func (e *checkpointEncoder) gather(a action.Action) error {
	switch a := a.(type) {
	case *action.Protocol:
		e.protocol.put(a)
	case *action.Metadata:
		e.metadata.put(a)
	case *action.Txn:
		e.txn.put(a)
	case *action.DomainMetadata:
		e.domain.put(a)
	case *action.Add:
		e.partitions.put(a.PartitionValues)
		e.stats.put(a.Stats)
		return e.added.add(a)
	case *action.Remove:
		return e.removed.remove(a)
	default:
		return fmt.Errorf("a checkpoint holds no %s action", a.Kind())
	}
	return nil
}

// flush writes the rows that are gathered.
func (e *checkpointEncoder) flush() error {
	if e.gathered == 0 {
		return nil
	}
	bytes := int64(0)
	for _, c := range e.columns {
		if c.path[0] != e.kind {
			if err := c.writeNulls(int64(e.gathered)); err != nil {
				return err
			}
			continue
		}
		if c.rows != e.gathered {
			return fmt.Errorf("column %q has %d of %d rows", c.path, c.rows, e.gathered)
		}
		if _, err := c.out.WriteRowValues(c.values); err != nil {
			return err
		}
		bytes += c.bytes + 8*int64(len(c.values))
		c.values, c.rows, c.bytes = c.values[:0], 0, 0
	}
	rows := int64(e.gathered)
	e.gathered = 0
	return e.grown(rows, bytes)
}

// endGroup ends the row group with the rows that are gathered.
func (e *checkpointEncoder) endGroup() error {
	if err := e.flush(); err != nil {
		return err
	}
	return e.end()
}

func (e *checkpointEncoder) end() error {
	e.rows, e.bytes = 0, 0
	return e.out.Flush()
}

// close ends the file.
func (e *checkpointEncoder) close() error {
	if err := e.endGroup(); err != nil {
		return err
	}
	return e.out.Close()
}
