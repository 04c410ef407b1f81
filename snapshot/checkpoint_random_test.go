package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// TestRandomCheckpointsReadAsRowByRow compares what is read column by column,
// and only where it is asked for, with all rows as the library reads them.
func TestRandomCheckpointsReadAsRowByRow(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			f := newFixture(t)
			c := writeRandomCheckpoint(t, rng, f)
			st, err := store.OpenLocal(f.dir)
			if err != nil {
				t.Fatal(err)
			}
			rows := readRowByRow(t, f, c)
			h := checkRead(t, c, st, rows)
			checkListed(t, c, st, h, rows)
			for range 5 {
				checkAddsOf(t, rng, c, st, rows)
			}
		})
	}
}

// The variants of an add's columns that writers use.
type (
	plainCheckpoint struct {
		Protocol *protocolRow `parquet:"protocol,optional"`
		Metadata *metadataRow `parquet:"metaData,optional"`
		Txn      *txnRow      `parquet:"txn,optional"`
		Add      *struct {
			Path            string             `parquet:"path,optional,plain"`
			PartitionValues map[string]*string `parquet:"partitionValues,optional" parquet-value:",optional"`
			Size            int64              `parquet:"size,optional"`
		} `parquet:"add,optional"`
		Remove *removeRow `parquet:"remove,optional"`
	}
	dictionaryCheckpoint struct {
		Txn *txnRow `parquet:"txn,optional"`
		Add *struct {
			Path            string             `parquet:"path,optional,dict"`
			PartitionValues map[string]*string `parquet:"partitionValues,optional" parquet-key:",dict" parquet-value:",optional,dict"`
			Parsed          *struct {
				K *string `parquet:"k,optional"`
			} `parquet:"partitionValues_parsed,optional"`
			Size             int64              `parquet:"size,dict"`
			ModificationTime int64              `parquet:"modificationTime,dict"`
			DataChange       bool               `parquet:"dataChange"`
			Tags             map[string]*string `parquet:"tags,optional" parquet-value:",optional,dict"`
			DeletionVector   *dvRow             `parquet:"deletionVector,optional"`
		} `parquet:"add,optional"`
		Remove   *removeRow   `parquet:"remove,optional"`
		Metadata *metadataRow `parquet:"metaData,optional"`
		Protocol *protocolRow `parquet:"protocol,optional"`
	}
	deltaCheckpoint struct {
		Add *struct {
			Path             string             `parquet:"path,delta"`
			PartitionValues  map[string]*string `parquet:"partitionValues" parquet-value:",optional"`
			Size             int64              `parquet:"size,delta"`
			ModificationTime int32              `parquet:"modificationTime,optional,delta"`
			Stats            string             `parquet:"stats,optional,delta"`
			Tags             map[string]*string `parquet:"tags,optional" parquet-value:",optional"`
		} `parquet:"add,optional"`
		Protocol *protocolRow `parquet:"protocol,optional"`
		Metadata *metadataRow `parquet:"metaData,optional"`
		Txn      *txnRow      `parquet:"txn,optional"`
	}
)

// writeRandomCheckpoint writes a checkpoint of version 5 in one or more parts.
func writeRandomCheckpoint(t *testing.T, rng *rand.Rand, f *fixture) *checkpointFile {
	t.Helper()
	metadata := plainMetadata()
	metadata.PartitionColumns = [][]string{{}, {"k"}, {"k", "id"}}[rng.IntN(3)]
	rows := randomActions(rng)
	rows = append(rows, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: metadata})
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })

	encode := []func(testing.TB, []checkpointRow, []parquet.WriterOption) string{
		encodeAs[checkpointRow], encodeAs[plainCheckpoint], encodeAs[dictionaryCheckpoint], encodeAs[deltaCheckpoint],
	}[rng.IntN(4)]
	options := []parquet.WriterOption{
		parquet.Compression([]compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Zstd}[rng.IntN(3)]),
		parquet.PageBufferSize(1 << (6 + rng.IntN(8))), parquet.DataPageVersion(1 + rng.IntN(2)),
		parquet.MaxRowsPerRowGroup([]int64{3, 100, 1_000_000}[rng.IntN(3)]),
	}
	c := &checkpointFile{version: 5}
	parts := 1 + rng.IntN(3)
	for i := range parts {
		name := fmt.Sprintf("%s/%020d.checkpoint.%010d.%010d.parquet", logDir, 5, i+1, parts)
		text := encode(t, rows[i*len(rows)/parts:(i+1)*len(rows)/parts], options)
		if rng.IntN(2) == 0 {
			text = withoutIndex(t, text)
		}
		f.write(name, text)
		c.parts = append(c.parts, store.Info{Name: name, Size: int64(len(text))})
	}
	return c
}

// encodeAs writes rows with the columns of T.
func encodeAs[T any](t testing.TB, rows []checkpointRow, options []parquet.WriterOption) string {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[T](&out, options...)
	for _, row := range rows {
		var narrowed T
		copyFields(reflect.ValueOf(&narrowed).Elem(), reflect.ValueOf(row))
		if _, err := w.Write([]T{narrowed}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// withoutIndex returns a Parquet file without its page index.
func withoutIndex(t *testing.T, text string) string {
	t.Helper()
	file, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	meta := file.Metadata()
	for _, g := range meta.RowGroups {
		for i := range g.Columns {
			g.Columns[i].OffsetIndexOffset, g.Columns[i].OffsetIndexLength = 0, 0
			g.Columns[i].ColumnIndexOffset, g.Columns[i].ColumnIndexLength = 0, 0
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	old := int(binary.LittleEndian.Uint32([]byte(text[len(text)-8:])))
	out := append([]byte(text[:len(text)-8-old]), footer...)
	return string(binary.LittleEndian.AppendUint32(out, uint32(len(footer)))) + "PAR1"
}

// copyFields copies the fields that both structs have.
func copyFields(dst, src reflect.Value) {
	for i := range dst.NumField() {
		from := src.FieldByName(dst.Type().Field(i).Name)
		to := dst.Field(i)
		switch {
		case !from.IsValid():
		case from.Type() == to.Type():
			to.Set(from)
		case from.Kind() == reflect.Pointer && !from.IsNil():
			to.Set(reflect.New(to.Type().Elem()))
			copyFields(to.Elem(), from.Elem())
		case from.Kind() != reflect.Pointer:
			to.Set(from.Convert(to.Type()))
		}
	}
}

func randomActions(rng *rand.Rand) (rows []checkpointRow) {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	nullable := func(texts ...string) *string {
		if rng.IntN(5) == 0 {
			return nil
		}
		out := pick(texts...)
		return &out
	}
	few := rng.IntN(2) == 0
	for i := range 1 + rng.IntN(400) {
		switch {
		case rng.IntN(8) == 0:
			rows = append(rows, checkpointRow{Remove: &removeRow{Path: fmt.Sprint("gone", i)}})
			continue
		case rng.IntN(20) == 0:
			rows = append(rows, checkpointRow{Txn: &txnRow{AppID: fmt.Sprint("app", i), Version: int64(i)}})
			continue
		}
		name := fmt.Sprintf("part-%05d-%d.parquet", i, rng.Uint64())
		add := &addRow{
			Path: pick("", "", "", "k=1/", "k=a%20b/id=2/", "a//b/", "./", "../", "/abs/", "file:///abs/", "s3://bucket/", "a:b/", "ü/") + name,
			Size: rng.Int64N(1 << 40), ModificationTime: rng.Int64N(1 << 30), Stats: pick("", `{"numRecords":1}`),
		}
		if rng.IntN(6) > 0 {
			add.PartitionValues = map[string]*string{}
			for _, column := range []string{"k", "id", "else"}[:rng.IntN(4)] {
				add.PartitionValues[column] = nullable("", "1", "a b", "x/y%z=", "ü", strings.Repeat("long", 80), fmt.Sprint(i))
			}
		}
		if rng.IntN(4) == 0 && few {
			add.Tags = map[string]*string{}
			for _, tag := range []string{TagName, TagModTime, "other"}[:rng.IntN(4)] {
				add.Tags[tag] = nullable("", "shown.parquet", "..", "2024-01-02T03:04:05.678Z")
			}
		}
		if rng.IntN(9) == 0 && few {
			add.DeletionVector = &dvRow{StorageType: pick("u", "i"), PathOrInlineDV: pick("ab^-aqEH.-t@S}K{vb[*k^", "x"), SizeInBytes: 4, Cardinality: 5}
			if offset := rng.Int32(); rng.IntN(2) == 0 {
				add.DeletionVector.Offset = &offset
			}
		}
		rows = append(rows, checkpointRow{Add: add})
	}
	return rows
}

// readRowByRow reads all rows of all parts.
func readRowByRow(t *testing.T, f *fixture, c *checkpointFile) (rows []checkpointRow) {
	t.Helper()
	for _, part := range c.parts {
		file, err := os.Open(filepath.Join(f.dir, part.Name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r := parquet.NewGenericReader[checkpointRow](file)
		for {
			row := make([]checkpointRow, 1)
			n, err := r.Read(row)
			rows = append(rows, row[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
	}
	return rows
}

func checkRead(t *testing.T, c *checkpointFile, st store.Store, rows []checkpointRow) *header {
	t.Helper()
	h, err := c.readState(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	txns := h.txns.all()
	for _, row := range rows {
		if m := row.Metadata; m != nil && (m.ID != h.metadata.ID || m.SchemaString != h.metadata.SchemaString ||
			!slices.Equal(m.PartitionColumns, h.metadata.PartitionColumns)) {
			t.Errorf("metadata is %+v, want %+v", h.metadata, m)
		}
		if row.Txn != nil {
			if txn := txns[row.Txn.AppID]; txn == nil || txn.Version != row.Txn.Version {
				t.Errorf("txn is %+v, want %+v", txn, row.Txn)
			}
			delete(txns, row.Txn.AppID)
		}
	}
	if len(txns) != 0 || h.protocol.MinWriterVersion != 2 {
		t.Errorf("%d txns too many, protocol %+v", len(txns), h.protocol)
	}
	return h
}

// action is the add as the log's action.
func (r *addRow) action() *action.Add {
	add := &action.Add{
		Path: r.Path, PartitionValues: r.PartitionValues, Size: r.Size, ModificationTime: r.ModificationTime,
		DataChange: r.DataChange, Tags: r.Tags, Stats: r.Stats, BaseRowID: r.BaseRowID,
	}
	// The library makes structs of nulls where the file has no such column.
	if dv := r.DeletionVector; dv != nil && dv.StorageType != "" {
		add.DeletionVector = &action.DeletionVector{
			StorageType: dv.StorageType, PathOrInlineDV: dv.PathOrInlineDV,
			SizeInBytes: int64(dv.SizeInBytes), Cardinality: dv.Cardinality,
		}
		if dv.Offset != nil {
			offset := int64(*dv.Offset)
			add.DeletionVector.Offset = &offset
		}
	}
	return add
}

func checkListed(t *testing.T, c *checkpointFile, st store.Store, h *header, rows []checkpointRow) {
	t.Helper()
	var got, want []metacache.File
	for f, err := range c.files(t.Context(), st, h, nil) {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*string{&f.Dir, &f.Name, &f.Path, &f.Raw, &f.DV} {
			*s = strings.Clone(*s)
		}
		got = append(got, f)
	}
	for i, row := range rows {
		if row.Add == nil {
			continue
		}
		from, err := fromCheckpoint(c.version, int64(i))
		if err != nil {
			t.Fatal(err)
		}
		f, err := indexFile(row.Add.action(), from, PartitionDir(h.shape.partitions, row.Add.PartitionValues), st.Root())
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, f)
	}
	if len(got) != len(want) {
		t.Fatalf("%d files, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("file %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// checkAdds reads some of the rows.
func checkAddsOf(t *testing.T, rng *rand.Rand, c *checkpointFile, st store.Store, rows []checkpointRow) {
	t.Helper()
	var wanted []int64
	every := 1 + rng.IntN(100)
	for i := range rows {
		if rng.IntN(every) == 0 {
			wanted = append(wanted, int64(i))
		}
	}
	err := c.adds(t.Context(), st, wanted, func(number int64, got *action.Add) bool {
		if number != wanted[0] {
			t.Fatalf("row %d comes after %d rows are left", number, len(wanted))
		}
		wanted = wanted[1:]
		row := rows[number].Add
		if (row == nil) != (got == nil) {
			t.Fatalf("row %d is %+v, want %+v", number, got, row)
		}
		if row == nil {
			return true
		}
		want := row.action()
		for _, m := range []*map[string]*string{&want.PartitionValues, &want.Tags, &got.PartitionValues, &got.Tags} {
			if *m == nil {
				*m = map[string]*string{}
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("row %d is %+v, want %+v", number, got, want)
		}
		return true
	})
	if err != nil || len(wanted) != 0 {
		t.Fatalf("%d rows are left: %v", len(wanted), err)
	}
}
