package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
)

// read returns the adds and removes of a checkpoint.
func readFiles(t *testing.T, c *Checkpoint) (files, adds, removes []string) {
	t.Helper()
	ctx := context.Background()
	for _, g := range c.Groups() {
		for f, err := range g.Files(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			kind := "+"
			if f.Removed {
				kind = "-"
			}
			files = append(files, fmt.Sprint(kind, f.Path, f.DV))
		}
		for a, err := range g.Adds(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			adds = append(adds, fmt.Sprint("+", a.Path, a.DVID()))
		}
		for r, err := range g.Removes(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			removes = append(removes, fmt.Sprint("-", r.Path, r.DVID()))
		}
	}
	return files, adds, removes
}

func TestOpenCheckpointFindsTheNewestThatReads(t *testing.T) {
	f := threeVersions(t)
	open := func(v int64) *Checkpoint {
		t.Helper()
		c, err := f.open().OpenCheckpoint(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			t.Cleanup(c.Close)
		}
		return c
	}
	if c := open(1); c != nil {
		t.Errorf("version 1 has a checkpoint of %d", c.Version())
	}
	c := open(3)
	if c.Version() != 2 || c.Protocol().MinWriterVersion != 2 || c.Metadata().ID != "a-b" || c.Txns()["app"].Version != 4 {
		t.Errorf("checkpoint %d, %v, %v, %v", c.Version(), c.Protocol(), c.Metadata(), c.Txns())
	}
	files, adds, removes := readFiles(t, c)
	slices.Sort(files)
	if fmt.Sprint(files) != "[+b +c -a]" || fmt.Sprint(adds) != "[+b +c]" || fmt.Sprint(removes) != "[-a]" {
		t.Errorf("files %q, adds %q, removes %q", files, adds, removes)
	}
	f.write(checkpointName(3), "no parquet")
	if c := open(3); c.Version() != 2 {
		t.Errorf("checkpoint of %d", c.Version())
	}
	f.remove(CommitName(0))
	f.remove(CommitName(3))
	if _, err := f.open().OpenCheckpoint(context.Background(), 3); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged checkpoint that nothing stands in for: %v", err)
	}
}

func TestCheckpointOfSeveralPartsIsReadAsOne(t *testing.T) {
	f := newFixture(t)
	for p, rows := range [][]checkpointRow{
		{{Add: plainAdd("a")}, {Metadata: plainMetadata()}},
		{{Protocol: plainProtocol()}, {Add: plainAdd("b")}, {Remove: &removeRow{"x"}}},
	} {
		f.write(fmt.Sprintf("%s/%020d.checkpoint.%010d.%010d.parquet", logDir, 5, p+1, 2), encodeCheckpoint(t, rows...))
	}
	c, err := f.open().OpenCheckpoint(context.Background(), 5)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if files, _, _ := readFiles(t, c); fmt.Sprint(files) != "[+a +b -x]" {
		t.Errorf("files %q", files)
	}
}

func TestCheckpointWithAFileBothAddedAndRemovedInARowDoesNotRead(t *testing.T) {
	f := newFixture(t)
	writeCheckpoint(t, f, 0, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()},
		checkpointRow{Add: plainAdd("a"), Remove: &removeRow{"a"}})
	c, err := f.open().OpenCheckpoint(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	failed := false
	for _, g := range c.Groups() {
		for _, err := range g.Files(context.Background()) {
			failed = failed || errors.Is(err, ErrCorrupt)
		}
	}
	if !failed {
		t.Error("it was read")
	}
}

// TestUnknownColumnsAreNoticedWhereTheyHoldSomething: a null is nothing.
func TestUnknownColumnsAreNoticedWhereTheyHoldSomething(t *testing.T) {
	type addOf struct {
		Path   string  `parquet:"path,optional"`
		Size   int64   `parquet:"size"`
		Future *string `parquet:"future,optional"`
		Parsed *struct {
			NumRecords int64 `parquet:"numRecords"`
		} `parquet:"stats_parsed,optional"`
	}
	type row struct {
		Protocol  *protocolRow `parquet:"protocol,optional"`
		Metadata  *metadataRow `parquet:"metaData,optional"`
		Add       *addOf       `parquet:"add,optional"`
		Watermark *struct {
			Value int64 `parquet:"value"`
		} `parquet:"rowIdHighWaterMark,optional"`
		Info *struct {
			Operation string `parquet:"operation"`
		} `parquet:"commitInfo,optional"`
	}
	some := "x"
	for _, tt := range []struct {
		name string
		row  row
		want string
	}{
		{"nothing", row{Add: &addOf{Path: "a"}}, ""},
		{"member", row{Add: &addOf{Path: "a", Future: &some}}, "add.future"},
		{"action", row{Watermark: &struct {
			Value int64 `parquet:"value"`
		}{7}}, "rowIdHighWaterMark.value"},
		{"provenance", row{Info: &struct {
			Operation string `parquet:"operation"`
		}{"WRITE"}}, ""},
		{"parsed statistics", row{Add: &addOf{Path: "a", Parsed: &struct {
			NumRecords int64 `parquet:"numRecords"`
		}{1}}}, ""},
	} {
		f := newFixture(t)
		var out bytes.Buffer
		w := parquet.NewGenericWriter[row](&out)
		if _, err := w.Write([]row{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}, tt.row}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f.write(checkpointName(0), out.String())
		c, err := f.open().OpenCheckpoint(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Groups()[0].Unknown()
		c.Close()
		if got != tt.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestCommitTimesOfALogThatWasCleanedUp(t *testing.T) {
	info := func(ms int) string { return fmt.Sprintf(`{"commitInfo":{"inCommitTimestamp":%d}}`, ms) }
	f := newFixture(t).commit(0, info(1000), protocolLine, metadataLine("", "delta.enableInCommitTimestamps", "true"))
	f.commit(1, info(2000)).commit(2, info(3000))
	table := f.open()
	writeCheckpoint(t, f, 1, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: &metadataRow{
		ID: "a-b", SchemaString: plainMetadata().SchemaString, PartitionColumns: []string{},
		Configuration: map[string]string{"delta.enableInCommitTimestamps": "true"},
	}})
	f.remove(CommitName(0))
	if at, ok, err := table.CommitTime(context.Background(), 2); err != nil || !ok || at.UnixMilli() != 3000 {
		t.Errorf("version 2 was committed at %v, %v, %v", at, ok, err)
	}
	if p, _, err := f.openBefore(t, 0).Header(context.Background(), 1); err != nil || p == nil {
		t.Errorf("the header of version 1: %v", err)
	}
}

// openBefore opens the table as it was with a commit, which is gone at once.
func (f *fixture) openBefore(t *testing.T, v int64) *Table {
	t.Helper()
	f.commit(v, protocolLine, metadataLine(""))
	hidden := filepath.Join(f.dir, checkpointName(1))
	if err := os.Rename(hidden, hidden+".tmp"); err != nil {
		t.Fatal(err)
	}
	table := f.open()
	if err := os.Rename(hidden+".tmp", hidden); err != nil {
		t.Fatal(err)
	}
	f.remove(CommitName(v))
	return table
}

func TestSameLogTellsTablesApart(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, addLine("b", 1))
	table := f.open()
	life := table.Incarnation()
	if err := table.SameLog(context.Background(), life); err != nil {
		t.Error(err)
	}
	f.commit(2, addLine("c", 1))
	if err := table.SameLog(context.Background(), life); err != nil {
		t.Errorf("after another commit: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(f.dir, CommitName(1)))
	if err != nil {
		t.Fatal(err)
	}
	f.remove(CommitName(1))
	f.write(CommitName(1), strings.TrimSpace(string(raw)))
	if err := table.SameLog(context.Background(), life); !errors.Is(err, ErrNoVersion) {
		t.Errorf("after a commit was rewritten: %v", err)
	}
	if _, err := table.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := table.SameLog(context.Background(), life); !errors.Is(err, ErrNoVersion) {
		t.Errorf("after that was noticed: %v", err)
	}
	if err := table.SameLog(context.Background(), table.Incarnation()); err != nil {
		t.Error(err)
	}
}

func TestIndexedTotalsCostNothing(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 7)).commit(1, addLine("b", 1))
	table := f.open()
	if totals, ok := table.IndexedTotals(context.Background(), 1); ok {
		t.Errorf("%v before anything was loaded", totals)
	}
	at(t, table, 1)
	if totals, ok := table.IndexedTotals(context.Background(), 1); !ok || totals.Files != 2 || totals.Bytes != 8 {
		t.Errorf("%v, %v", totals, ok)
	}
}

func TestStatisticsAreMadeOfParsedOnes(t *testing.T) {
	type bounds struct {
		ID   *int64           `parquet:"id,optional"`
		Rate *float64         `parquet:"rate,optional"`
		Thin *float32         `parquet:"thin,optional"`
		Seen deprecated.Int96 `parquet:"seen,optional"`
	}
	type stats struct {
		MaxValues  *bounds  `parquet:"maxValues,optional"`
		NullCount  *bounds  `parquet:"nullCount,optional"`
		NumRecords *int64   `parquet:"numRecords,optional"`
		Tight      *bool    `parquet:"tightBounds,optional"`
		Tags       []string `parquet:"tags,list"`
	}
	type addOf struct {
		Path   string  `parquet:"path,optional"`
		Size   int64   `parquet:"size"`
		Stats  *string `parquet:"stats,optional"`
		Parsed *stats  `parquet:"stats_parsed,optional"`
	}
	type row struct {
		Protocol *protocolRow `parquet:"protocol,optional"`
		Metadata *metadataRow `parquet:"metaData,optional"`
		Add      *addOf       `parquet:"add,optional"`
	}
	n, f64, f32, yes, text := int64(-5), 0.1, float32(3), true, `{"numRecords":9}`
	// A Julian day and the nanoseconds in it.
	const nanos = uint64(45045123999999)
	seen := deprecated.Int96{uint32(nanos & 0xffffffff), uint32(nanos >> 32), 2460477}
	rows := []row{
		{Protocol: plainProtocol()}, {Metadata: plainMetadata()},
		{Add: &addOf{Path: "all", Parsed: &stats{&bounds{ID: &n, Rate: &f64, Thin: &f32, Seen: seen}, &bounds{ID: &n}, &n, &yes, []string{"x"}}}},
		{Add: &addOf{Path: "none"}},
		{Add: &addOf{Path: "some", Parsed: &stats{NullCount: &bounds{ID: &n}}}},
		{Add: &addOf{Path: "text", Stats: &text, Parsed: &stats{NumRecords: &n}}},
		{Add: &addOf{Path: "empty", Parsed: &stats{}}},
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.MaxRowsPerRowGroup(4))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t).write(checkpointName(0), out.String())
	s := at(t, f.open(), 0)
	want := map[string]string{
		"all":  `{"numRecords":-5,"maxValues":{"id":-5,"rate":0.1,"thin":3.0,"seen":"2024-06-15T12:30:45.123Z"},"nullCount":{"id":-5},"tightBounds":true}`,
		"none": "", "some": `{"nullCount":{"id":-5}}`, "text": text, "empty": "",
	}
	for f, err := range s.AllAdds(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Add.Stats != want[f.Path] {
			t.Errorf("%s has %s, want %s", f.Path, f.Add.Stats, want[f.Path])
		}
		delete(want, f.Path)
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}
