package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// checkpointRow is one action of a classic checkpoint.
type checkpointRow struct {
	Protocol *protocolRow `parquet:"protocol,optional"`
	Metadata *metadataRow `parquet:"metaData,optional"`
	Txn      *txnRow      `parquet:"txn,optional"`
	Add      *addRow      `parquet:"add,optional"`
	Remove   *removeRow   `parquet:"remove,optional"`
	Sidecar  *sidecarRow  `parquet:"sidecar,optional"`

	CheckpointMetadata *checkpointMetadataRow `parquet:"checkpointMetadata,optional"`
}

type protocolRow struct {
	MinReaderVersion int32    `parquet:"minReaderVersion,optional"`
	MinWriterVersion int32    `parquet:"minWriterVersion,optional"`
	ReaderFeatures   []string `parquet:"readerFeatures,optional,list"`
}

type metadataRow struct {
	ID               string            `parquet:"id,optional"`
	SchemaString     string            `parquet:"schemaString,optional"`
	PartitionColumns []string          `parquet:"partitionColumns,optional,list"`
	Configuration    map[string]string `parquet:"configuration,optional"`
	CreatedTime      *int64            `parquet:"createdTime,optional"`
}

type txnRow struct {
	AppID   string `parquet:"appId,optional"`
	Version int64  `parquet:"version"`
}

type addRow struct {
	Path             string             `parquet:"path,optional"`
	PartitionValues  map[string]*string `parquet:"partitionValues,optional" parquet-value:",optional"`
	Size             int64              `parquet:"size"`
	ModificationTime int64              `parquet:"modificationTime"`
	DataChange       bool               `parquet:"dataChange"`
	Tags             map[string]*string `parquet:"tags,optional" parquet-value:",optional"`
	Stats            string             `parquet:"stats,optional"`
	BaseRowID        *int64             `parquet:"baseRowId,optional"`
	DeletionVector   *dvRow             `parquet:"deletionVector,optional"`
}

type dvRow struct {
	StorageType    string `parquet:"storageType,optional"`
	PathOrInlineDV string `parquet:"pathOrInlineDv,optional"`
	Offset         *int32 `parquet:"offset,optional"`
	SizeInBytes    int32  `parquet:"sizeInBytes"`
	Cardinality    int64  `parquet:"cardinality"`
	MaxRowIndex    *int64 `parquet:"maxRowIndex,optional"`
}

type removeRow struct {
	Path string `parquet:"path,optional"`
}

type sidecarRow struct {
	Path        string `parquet:"path,optional"`
	SizeInBytes int64  `parquet:"sizeInBytes"`
}

type checkpointMetadataRow struct {
	Version int64 `parquet:"version"`
}

func plainProtocol() *protocolRow { return &protocolRow{MinReaderVersion: 1, MinWriterVersion: 2} }

func plainMetadata() *metadataRow {
	return &metadataRow{ID: "a-b", SchemaString: strings.ReplaceAll(schemaText, `\"`, `"`), PartitionColumns: []string{}}
}

func plainAdd(path string) *addRow { return &addRow{Path: path, Size: 1, ModificationTime: 1} }

func checkpointName(v int64) string { return fmt.Sprintf("%s/%020d.checkpoint.parquet", logDir, v) }

func writeCheckpoint(t *testing.T, f *fixture, v int64, rows ...checkpointRow) {
	t.Helper()
	f.write(checkpointName(v), encodeCheckpoint(t, rows...))
}

func encodeCheckpoint(t testing.TB, rows ...checkpointRow) string {
	t.Helper()
	return encodeCheckpointWith(t, &parquet.Snappy, rows...)
}

func encodeCheckpointWith(t testing.TB, codec compress.Codec, rows ...checkpointRow) string {
	t.Helper()
	return encodeRows(t, codec, rows...)
}

func encodeRows[T any](t testing.TB, codec compress.Codec, rows ...T) string {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[T](&out, parquet.MaxRowsPerRowGroup(3), parquet.Compression(codec))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// threeVersions is a table whose version 2 has a checkpoint.
func threeVersions(t *testing.T) *fixture {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1)).commit(2, addLine("c", 1), removeLine("a"))
	writeCheckpoint(t, f, 2, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()},
		checkpointRow{Txn: &txnRow{"app", 4}}, checkpointRow{Remove: &removeRow{"a"}},
		checkpointRow{Add: plainAdd("b")}, checkpointRow{Add: plainAdd("c")})
	return f.commit(3, addLine("d", 1))
}

func TestCheckpointStandsInForCleanedCommits(t *testing.T) {
	f := threeVersions(t)
	for v := int64(0); v <= 2; v++ {
		f.remove(CommitName(v))
	}
	table := f.open()
	wantPaths(t, table, 3, "b c d")
	wantPaths(t, table, 2, "b c")
	if v, ok := at(t, table, 3).Txn("app"); !ok || v != 4 {
		t.Errorf("app is at %d, %v", v, ok)
	}
	if _, err := table.At(context.Background(), 1); !errors.Is(err, ErrNoVersion) {
		t.Errorf("version 1: %v", err)
	}
}

func TestCheckpointAddsAreComplete(t *testing.T) {
	f := newFixture(t)
	row, offset, created := int64(77), int32(1), int64(5)
	metadata := plainMetadata()
	metadata.PartitionColumns, metadata.CreatedTime = []string{"k"}, &created
	metadata.Configuration = map[string]string{"x": "y"}
	writeCheckpoint(t, f, 4,
		checkpointRow{Protocol: &protocolRow{3, 7, []string{}}}, checkpointRow{Metadata: metadata},
		checkpointRow{Add: &addRow{
			Path: "k=1/a%20b", PartitionValues: map[string]*string{"k": text("1")}, Size: 9007199254740993,
			ModificationTime: 3, Tags: map[string]*string{TagName: text("shown.parquet"), "none": nil},
			Stats: `{"numRecords":5}`, BaseRowID: &row,
		}},
		checkpointRow{Add: &addRow{Path: "n", PartitionValues: map[string]*string{"k": nil}, Size: 1}})
	s := at(t, f.open(), 4)
	e, err := s.Lookup(context.Background(), "k=1", "shown.parquet")
	if err != nil || e.File == nil {
		t.Fatalf("lookup: %v, %v", e, err)
	}
	a := addOf(t, s, *e.File)
	if a.Path != "k=1/a%20b" || a.Size != 9007199254740993 || a.ModificationTime != 3 || a.Stats != `{"numRecords":5}` ||
		a.BaseRowID == nil || *a.BaseRowID != 77 || a.Tags["none"] != nil || len(a.Tags) != 2 {
		t.Errorf("add is %+v", a)
	}
	if _, err := s.Lookup(context.Background(), "k=__HIVE_DEFAULT_PARTITION__", "n"); err != nil {
		t.Error(err)
	}
	if p := s.Protocol(); p.ReaderFeatures == nil || len(p.ReaderFeatures) != 0 || p.WriterFeatures != nil {
		t.Errorf("an empty feature list and an absent one read as %#v and %#v", p.ReaderFeatures, p.WriterFeatures)
	}
	if m := s.Metadata(); m.Configuration["x"] != "y" || m.CreatedTime == nil || *m.CreatedTime != 5 {
		t.Errorf("metadata is %+v", m)
	}
	if totals, _ := s.Totals(context.Background()); totals.Bytes != 9007199254740994 {
		t.Errorf("totals %+v", totals)
	}

	f = newFixture(t)
	writeCheckpoint(t, f, 0, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()},
		checkpointRow{Add: &addRow{Path: "d", Size: 1, DeletionVector: &dvRow{"u", "x", &offset, 34, 2, &row}}})
	if file := onlyFile(t, f.open(), 0); file.DV != fmt.Sprintf("ux@%d", offset) {
		t.Errorf("a deletion vector in a checkpoint is %q", file.DV)
	}
}

func TestMultiPartCheckpoint(t *testing.T) {
	f := newFixture(t)
	part := func(p int, rows ...checkpointRow) {
		f.write(fmt.Sprintf("%s/%020d.checkpoint.%010d.%010d.parquet", logDir, 5, p, 2), encodeCheckpoint(t, rows...))
	}
	part(1, checkpointRow{Add: plainAdd("a")}, checkpointRow{Metadata: plainMetadata()})
	part(2, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Add: plainAdd("b")})
	wantPaths(t, f.open(), 5, "a b")
}

func TestDamagedCheckpointIsPassedOver(t *testing.T) {
	for name, damage := range map[string]func(string) string{
		"text":      func(string) string { return "no parquet" },
		"truncated": func(s string) string { return s[:len(s)/2] },
		"footer":    func(s string) string { return s[:len(s)-20] + strings.Repeat("\xff", 12) + s[len(s)-8:] },
		"pages":     func(s string) string { return s[:4] + strings.Repeat("\xff", len(s)/3) + s[4+len(s)/3:] },
	} {
		t.Run(name, func(t *testing.T) {
			f := threeVersions(t)
			raw, err := os.ReadFile(filepath.Join(f.dir, checkpointName(2)))
			if err != nil {
				t.Fatal(err)
			}
			f.write(checkpointName(2), damage(string(raw)))
			table := f.open()
			wantPaths(t, table, 3, "b c d")
			wantPaths(t, table, 2, "b c")

			f.remove(CommitName(0))
			_, err = f.open().At(context.Background(), 3)
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "checkpoint") {
				t.Errorf("without commits to fall back to: %v", err)
			}
		})
	}
}

func TestDamagedCheckpointFallsBackToAnOlderOne(t *testing.T) {
	f := threeVersions(t)
	f.remove(CommitName(0))
	f.write(checkpointName(3), "no parquet")
	wantPaths(t, f.open(), 3, "b c d")
}

func TestCheckpointWithoutMetadataIsRefused(t *testing.T) {
	for missing, row := range map[string]checkpointRow{
		"metaData": {Protocol: plainProtocol()}, "protocol": {Metadata: plainMetadata()},
	} {
		f := threeVersions(t)
		writeCheckpoint(t, f, 2, row, checkpointRow{Add: plainAdd("b")})
		table := f.open()
		for _, v := range []int64{2, 3} {
			_, err := table.At(context.Background(), v)
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "no "+missing) {
				t.Errorf("version %d: %v", v, err)
			}
		}
		wantPaths(t, table, 1, "a b")
		// Also when the version before is at hand.
		if _, err := table.At(context.Background(), 2); !errors.Is(err, ErrCorrupt) {
			t.Errorf("version 2 after version 1: %v", err)
		}
	}
}

func TestCheckpointWithABrokenCodecIsPassedOver(t *testing.T) {
	f := threeVersions(t)
	f.write(checkpointName(2), encodeCheckpointWith(t, &parquet.Lz4Raw,
		checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()}, checkpointRow{Add: plainAdd("wrong")}))
	wantPaths(t, f.open(), 2, "b c")
}

func TestCheckpointCodecs(t *testing.T) {
	for name, codec := range map[string]compress.Codec{
		"none": &parquet.Uncompressed, "snappy": &parquet.Snappy, "gzip": &parquet.Gzip, "zstd": &parquet.Zstd, "brotli": &parquet.Brotli,
	} {
		f := newFixture(t).write(checkpointName(2), encodeCheckpointWith(t, codec,
			checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()}, checkpointRow{Add: plainAdd(name)}))
		wantPaths(t, f.open(), 2, name)
	}
}

func TestLastCheckpointIsOnlyAHint(t *testing.T) {
	for name, hint := range map[string]string{
		"empty": "", "garbage": "PAR1", "stale": `{"version":0,"size":1}`, "dangling": `{"version":77,"size":1}`,
		"multi-part": `{"version":2,"size":1,"parts":3}`, "checksum": `{"version":2,"size":6,"checksum":"0"}`,
		"negative": `{"version":-1}`,
	} {
		f := threeVersions(t)
		f.write(logDir+"/_last_checkpoint", hint)
		table := f.open()
		if table.Latest() != 3 {
			t.Errorf("%s: latest is %d", name, table.Latest())
		}
		wantPaths(t, table, 3, "b c d")
	}
}
