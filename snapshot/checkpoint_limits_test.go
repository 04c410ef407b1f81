package snapshot

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// onlyCheckpoint is a table of which version 1 has nothing but a checkpoint,
// this file.
func onlyCheckpoint(t *testing.T, file string) *Table {
	t.Helper()
	return newFixture(t).write(checkpointName(1), file).open()
}

// readAll counts the files of version 1.
func readAll(table *Table) (n int, err error) {
	s, err := table.At(context.Background(), 1)
	if err != nil {
		return 0, err
	}
	for _, err := range s.Files(context.Background()) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func TestCheckpointThatExpandsBeyondMeasureIsRefused(t *testing.T) {
	var rows []checkpointRow
	for _, name := range []string{"a", "b", "c", "d"} {
		add := plainAdd(strings.Repeat(name, 500))
		add.Stats = strings.Repeat("y", 500)
		rows = append(rows, checkpointRow{Add: add})
	}
	file := encodeCheckpoint(t, rows...)
	f := newFixture(t).plain().write(checkpointName(1), file)
	table := f.open()
	info, err := table.store.Head(t.Context(), checkpointName(1))
	if err != nil {
		t.Fatal(err)
	}
	part, err := openCheckpointPart(t.Context(), table.store, info.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer part.close()
	if part.budget != maxBytes(int64(len(file))) {
		t.Errorf("the budget is %d bytes", part.budget)
	}
	// The fourth add, in the second row group, is one too many.
	part.budget = 1750
	free, decoded := make(chan *fileBatch, 2), make(chan *fileBatch, 2)
	free <- &fileBatch{}
	free <- &fileBatch{}
	for i, group := range part.file.RowGroups() {
		columns := fileColumns{
			dirs: newDirNames(nil), budget: &part.budget, rows: group.NumRows(),
			origin: func(row int64) (origin, error) { return fromCheckpoint(1, row) },
		}
		err = columns.decode(t.Context(), part, i, free, decoded)
	}
	close(decoded)
	n := 0
	for b := range decoded {
		n += len(b.files)
	}
	if n != 3 || !errors.Is(err, errInflated) {
		t.Errorf("%d files, %v", n, err)
	}
	n = 0
	part.budget = 3500
	for i := range part.file.RowGroups() {
		first := int64(3 * i)
		_, err = part.adds(t.Context(), i, first, []int64{first, first + 1, first + 2}[:3-2*i], func(int64, *action.Add) bool { n++; return true })
	}
	if n != 3 || !errors.Is(err, errInflated) {
		t.Errorf("%d adds, %v", n, err)
	}
}

func TestCheckpointFooterMustNotClaimMoreThanTheFileHolds(t *testing.T) {
	column := func(values, bytes int64) format.ColumnChunk {
		return format.ColumnChunk{MetaData: format.ColumnMetaData{NumValues: values, TotalUncompressedSize: bytes}}
	}
	group := func(rows int64, c ...format.ColumnChunk) format.RowGroup {
		return format.RowGroup{NumRows: rows, Columns: c}
	}
	index := func(bytes int32) format.ColumnChunk { return format.ColumnChunk{OffsetIndexLength: bytes} }
	const size = 100 << 10
	for name, c := range map[string]struct {
		groups []format.RowGroup
		bad    bool
	}{
		"plain":               {[]format.RowGroup{group(1000, column(1000, 1<<20), column(3000, 1<<20))}, false},
		"all that is allowed": {[]format.RowGroup{group(maxValues(size), column(maxValues(size), maxBytes(size)))}, false},
		"rows":                {[]format.RowGroup{group(maxValues(size) + 1)}, true},
		"rows together":       {[]format.RowGroup{group(maxValues(size)), group(1)}, true},
		"rows that overflow":  {[]format.RowGroup{group(1), group(math.MaxInt64)}, true},
		"negative rows":       {[]format.RowGroup{group(-1)}, true},
		"values":              {[]format.RowGroup{group(1, column(maxValues(size)+1, 1))}, true},
		"negative values":     {[]format.RowGroup{group(1, column(-1, 1))}, true},
		"bytes":               {[]format.RowGroup{group(1, column(1, maxBytes(size)+1))}, true},
		"bytes together":      {[]format.RowGroup{group(1, column(1, maxBytes(size)), column(1, 1))}, true},
		"bytes that overflow": {[]format.RowGroup{group(1, column(1, 1), column(1, math.MaxInt64))}, true},
		"negative bytes":      {[]format.RowGroup{group(1, column(1, -1))}, true},
		"index":               {[]format.RowGroup{group(1, index(size+1))}, true},
		"negative index":      {[]format.RowGroup{group(1, index(-1))}, true},
	} {
		if err := checkClaims(&format.FileMetaData{RowGroups: c.groups}, size); (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckpointOfAMillionNullRowsPerKilobyteIsRefused(t *testing.T) {
	var out bytes.Buffer
	w := parquet.NewGenericWriter[checkpointRow](&out, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(64<<20))
	for _, r := range [][]checkpointRow{
		{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}, {Add: plainAdd("a")}}, make([]checkpointRow, 3<<20),
	} {
		if _, err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := readAll(onlyCheckpoint(t, out.String())); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "claims") {
		t.Errorf("%d bytes: %d files, %v", out.Len(), n, err)
	}
}

func TestCheckpointWithoutPathsIsRefused(t *testing.T) {
	type noAdd struct {
		Protocol *protocolRow `parquet:"protocol,optional"`
		Metadata *metadataRow `parquet:"metaData,optional"`
	}
	var out bytes.Buffer
	if err := parquet.Write(&out, []noAdd{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}}); err != nil {
		t.Fatal(err)
	}
	emptyPath := encodeCheckpoint(t, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()},
		checkpointRow{Add: plainAdd("a")}, checkpointRow{Add: plainAdd("")})
	for name, file := range map[string]string{"no add column": out.String(), "an add without a path": emptyPath} {
		if n, err := readAll(onlyCheckpoint(t, file)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %d files, %v", name, n, err)
		}
	}
	noFiles := encodeCheckpoint(t, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()})
	if n, err := readAll(onlyCheckpoint(t, noFiles)); n != 0 || err != nil {
		t.Errorf("a checkpoint of an empty table: %d files, %v", n, err)
	}
}
