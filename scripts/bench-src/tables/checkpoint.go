package tables

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/snappy"
)

// checkpointRow is a row of a classic checkpoint: one of its columns is set.
// No map value is null, so none is declared optional: parquet-go writes
// optional map values as nulls.
type checkpointRow struct {
	Txn      *txnColumns      `parquet:"txn,optional"`
	Add      *addColumns      `parquet:"add,optional"`
	Remove   *removeColumns   `parquet:"remove,optional"`
	MetaData *metaDataColumns `parquet:"metaData,optional"`
	Protocol *protocolColumns `parquet:"protocol,optional"`
}

type txnColumns struct {
	AppID       string `parquet:"appId,optional"`
	Version     int64  `parquet:"version"`
	LastUpdated *int64 `parquet:"lastUpdated,optional"`
}

type addColumns struct {
	Path             string            `parquet:"path,optional"`
	PartitionValues  map[string]string `parquet:"partitionValues,optional"`
	Size             int64             `parquet:"size"`
	ModificationTime int64             `parquet:"modificationTime"`
	DataChange       bool              `parquet:"dataChange"`
	Stats            string            `parquet:"stats,optional"`
}

type removeColumns struct {
	Path                 string            `parquet:"path,optional"`
	DeletionTimestamp    *int64            `parquet:"deletionTimestamp,optional"`
	DataChange           bool              `parquet:"dataChange"`
	ExtendedFileMetadata bool              `parquet:"extendedFileMetadata"`
	PartitionValues      map[string]string `parquet:"partitionValues,optional"`
	Size                 *int64            `parquet:"size,optional"`
}

type metaDataColumns struct {
	ID               string            `parquet:"id,optional"`
	Format           formatColumns     `parquet:"format,optional"`
	SchemaString     string            `parquet:"schemaString,optional"`
	PartitionColumns []string          `parquet:"partitionColumns,optional,list"`
	Configuration    map[string]string `parquet:"configuration,optional"`
	CreatedTime      *int64            `parquet:"createdTime,optional"`
}

type formatColumns struct {
	Provider string            `parquet:"provider,optional"`
	Options  map[string]string `parquet:"options,optional"`
}

type protocolColumns struct {
	MinReaderVersion int32 `parquet:"minReaderVersion"`
	MinWriterVersion int32 `parquet:"minWriterVersion"`
}

// writeCheckpoint writes the classic checkpoint of version v, and the hint that
// it is the last one.
func writeCheckpoint(log string, v int64, names fileNames, live []file, removed []tombstone) error {
	path := filepath.Join(log, fmt.Sprintf("%020d.checkpoint.parquet", v))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := parquet.NewGenericWriter[checkpointRow](f, parquet.Compression(&snappy.Codec{}), parquet.MaxRowsPerRowGroup(250_000))
	rows := checkpointRows{w: w}
	created := commitTime(0).UnixMilli()
	rows.put(checkpointRow{Protocol: &protocolColumns{1, 2}})
	rows.put(checkpointRow{MetaData: &metaDataColumns{
		ID: "00000000-0000-4000-8000-00000000beef", Format: formatColumns{"parquet", map[string]string{}}, SchemaString: names.schema(),
		PartitionColumns: names.partitionColumns(), Configuration: properties, CreatedTime: &created,
	}})
	for _, f := range live {
		rows.put(checkpointRow{Add: &addColumns{Path: f.path, PartitionValues: map[string]string{"date": f.date},
			Size: f.size, ModificationTime: f.modified, Stats: f.stats}})
	}
	for _, t := range removed {
		at, size := t.at.UnixMilli(), t.size
		rows.put(checkpointRow{Remove: &removeColumns{Path: t.path, DeletionTimestamp: &at, ExtendedFileMetadata: true,
			PartitionValues: map[string]string{"date": t.date}, Size: &size}})
	}
	if err := rows.flush(); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	at := commitTime(v)
	if err := os.Chtimes(path, at, at); err != nil {
		return err
	}
	hint := fmt.Sprintf(`{"version":%d,"size":%d,"numOfAddFiles":%d}`, v, rows.total, len(live))
	return os.WriteFile(filepath.Join(log, "_last_checkpoint"), []byte(hint), 0o644)
}

// checkpointRows hands rows on in batches and remembers the first failure.
type checkpointRows struct {
	w       *parquet.GenericWriter[checkpointRow]
	pending []checkpointRow
	total   int
	err     error
}

func (r *checkpointRows) put(row checkpointRow) {
	r.pending = append(r.pending, row)
	r.total++
	if len(r.pending) == 4096 {
		r.flush()
	}
}

func (r *checkpointRows) flush() error {
	if r.err == nil {
		_, r.err = r.w.Write(r.pending)
	}
	r.pending = r.pending[:0]
	return r.err
}
