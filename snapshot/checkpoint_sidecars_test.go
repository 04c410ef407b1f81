package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// sidecarFileRow is a row of a sidecar.
type sidecarFileRow struct {
	Add    *addRow    `parquet:"add,optional"`
	Remove *removeRow `parquet:"remove,optional"`
}

// topRow is a row of a file that names sidecars and has no columns for files.
type topRow struct {
	Protocol           *protocolRow           `parquet:"protocol,optional"`
	Metadata           *metadataRow           `parquet:"metaData,optional"`
	Sidecar            *sidecarRow            `parquet:"sidecar,optional"`
	CheckpointMetadata *checkpointMetadataRow `parquet:"checkpointMetadata,optional"`
}

const someUUID = "80a083e8-7026-4e79-81be-64bd76c43a11"

func uuidName(v int64, ext string) string {
	return fmt.Sprintf("%s/%020d.checkpoint.%s.%s", logDir, v, someUUID, ext)
}

func sidecarLine(path string) string {
	return fmt.Sprintf(`{"sidecar":{"path":%q,"sizeInBytes":1,"modificationTime":1}}`, path)
}

// topJSON is a JSON file for version 2 with these lines beside the usual ones.
func topJSON(lines ...string) string {
	return strings.Join(append([]string{`{"checkpointMetadata":{"version":2}}`, protocolLine, metadataLine(""),
		`{"txn":{"appId":"app","version":4}}`}, lines...), "\n")
}

func addWithStats(path string) *addRow {
	return &addRow{Path: path, Size: 1, ModificationTime: 1, Stats: `{"numRecords":7}`}
}

// twoSidecars are those of version 2 of threeVersions.
func twoSidecars(t *testing.T, f *fixture) *fixture {
	t.Helper()
	return f.write(sidecarDir+"/x y.parquet", encodeRows(t, &parquet.Snappy, sidecarFileRow{Add: addWithStats("b")},
		sidecarFileRow{Remove: &removeRow{"a"}})).
		write(sidecarDir+"/z.parquet", encodeRows(t, &parquet.Snappy, sidecarFileRow{Add: addWithStats("c")}))
}

// v2Forms are the forms that V2 content has, of version 2 of threeVersions.
func v2Forms(t *testing.T) map[string]func(*fixture) {
	top := []checkpointRow{{CheckpointMetadata: &checkpointMetadataRow{2}}, {Protocol: plainProtocol()}, {Metadata: plainMetadata()},
		{Txn: &txnRow{"app", 4}}}
	sidecars := append(top[:len(top):len(top)], checkpointRow{Sidecar: &sidecarRow{"x%20y.parquet", 1}}, checkpointRow{Sidecar: &sidecarRow{"z.parquet", 1}})
	inline := append(top[:len(top):len(top)], checkpointRow{Add: addWithStats("b")}, checkpointRow{Remove: &removeRow{"a"}}, checkpointRow{Add: addWithStats("c")})
	line := func(path string) string {
		return fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":1,"modificationTime":1,"dataChange":false,"stats":"{\"numRecords\":7}"}}`, path)
	}
	return map[string]func(*fixture){
		"classic name":         func(f *fixture) { twoSidecars(t, f); writeCheckpoint(t, f, 2, sidecars...) },
		"classic name, inline": func(f *fixture) { writeCheckpoint(t, f, 2, inline...) },
		"Parquet":              func(f *fixture) { twoSidecars(t, f).write(uuidName(2, "parquet"), encodeCheckpoint(t, sidecars...)) },
		"Parquet, inline":      func(f *fixture) { f.write(uuidName(2, "parquet"), encodeCheckpoint(t, inline...)) },
		"JSON, inline":         func(f *fixture) { f.write(uuidName(2, "json"), topJSON(line("b"), removeLine("a"), line("c"))) },
		"JSON": func(f *fixture) {
			twoSidecars(t, f).write(uuidName(2, "json"), topJSON(sidecarLine("z.parquet"), sidecarLine("x%20y.parquet")))
		},
		"JSON, a name repeated": func(f *fixture) {
			twoSidecars(t, f).write(uuidName(2, "json"), topJSON(sidecarLine("z.parquet"), sidecarLine("x%20y.parquet"), sidecarLine("z.parquet")))
		},
		"JSON, longer paths": func(f *fixture) {
			twoSidecars(t, f).write(uuidName(2, "json"), topJSON(
				sidecarLine("file:"+f.dir+"/_delta_log/_sidecars/z.parquet"), sidecarLine("_delta_log/_sidecars/x%20y.parquet")))
		},
	}
}

// withoutBeginning makes of threeVersions a log that begins with version 2.
func withoutBeginning(t *testing.T) *fixture {
	f := threeVersions(t)
	for v := int64(0); v <= 2; v++ {
		f.remove(CommitName(v))
	}
	f.remove(checkpointName(2))
	return f
}

func TestV2CheckpointsStandInForCommits(t *testing.T) {
	for name, write := range v2Forms(t) {
		t.Run(name, func(t *testing.T) {
			f := withoutBeginning(t)
			write(f)
			table := f.open()
			wantPaths(t, table, 3, "b c d")
			wantPaths(t, table, 2, "b c")
			s := at(t, table, 2)
			if v, ok := s.Txn("app"); !ok || v != 4 {
				t.Errorf("app is at %d, %v", v, ok)
			}
			for f, err := range s.AllAdds(t.Context()) {
				if err != nil || f.Add.NumRecords() != 7 || f.Add.Path != f.Path {
					t.Errorf("%s: %+v, %v", f.Path, f.Add, err)
				}
			}
		})
	}
}

func TestTopFileWithoutColumnsForFiles(t *testing.T) {
	f := twoSidecars(t, withoutBeginning(t))
	f.write(uuidName(2, "parquet"), encodeRows(t, &parquet.Snappy, topRow{CheckpointMetadata: &checkpointMetadataRow{2}},
		topRow{Protocol: plainProtocol()}, topRow{Metadata: plainMetadata()},
		topRow{Sidecar: &sidecarRow{"x%20y.parquet", 1}}, topRow{Sidecar: &sidecarRow{"z.parquet", 1}}))
	wantPaths(t, f.open(), 3, "b c d")
}

// TestSidecarThatCannotBeRead: another start does, or the error names it.
func TestSidecarThatCannotBeRead(t *testing.T) {
	for name, damage := range map[string]func(*fixture){
		"missing":   func(f *fixture) { f.remove(sidecarDir + "/z.parquet") },
		"no file":   func(f *fixture) { f.write(sidecarDir+"/z.parquet", "no parquet") },
		"empty":     func(f *fixture) { f.write(sidecarDir+"/z.parquet", "") },
		"no column": func(f *fixture) { f.write(sidecarDir+"/z.parquet", encodeRows(t, &parquet.Snappy, txnRow{"app", 4})) },
	} {
		t.Run(name, func(t *testing.T) {
			f := twoSidecars(t, withoutBeginning(t))
			f.write(uuidName(2, "json"), topJSON(sidecarLine("z.parquet"), sidecarLine("x%20y.parquet")))
			damage(f)
			for _, v := range []int64{2, 3} {
				_, err := f.open().At(t.Context(), v)
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "_sidecars/z.parquet") || strings.Contains(err.Error(), "try again") {
					t.Errorf("version %d: %v", v, err)
				}
			}
			// Commits that reach back to an older checkpoint.
			f.commit(2, addLine("c", 1), removeLine("a"))
			writeCheckpoint(t, f, 1, checkpointRow{Protocol: plainProtocol()}, checkpointRow{Metadata: plainMetadata()},
				checkpointRow{Add: plainAdd("a")}, checkpointRow{Add: plainAdd("b")})
			wantPaths(t, f.open(), 3, "b c d")
		})
	}
}

func TestSidecarsLieInTheirDirectory(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{
		"", ".", "..", "../x.parquet", "%2e%2e/x.parquet", "/etc/x.parquet", "file:///x/_sidecars/x.parquet", "s3://b/x.parquet",
		"a/b.parquet", "a\x00b", "../_sidecars/../x.parquet", strings.Repeat("x", maxSidecarPath+1),
	} {
		if name, err := sidecarName(path); err == nil {
			t.Errorf("%q is %q", path, name)
		}
	}
	twoSidecars(t, f).write("_delta_log/x.parquet", "").write(uuidName(2, "json"), topJSON(sidecarLine("../x.parquet")))
	if _, err := f.open().At(t.Context(), 2); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "../x.parquet") {
		t.Errorf("a sidecar elsewhere: %v", err)
	}
}

func TestCheckpointOfAnotherVersionIsPassedOver(t *testing.T) {
	f := threeVersions(t)
	f.remove(checkpointName(2))
	f.write(uuidName(3, "json"), topJSON(addLine("wrong", 1)))
	wantPaths(t, f.open(), 3, "b c d")
}

func TestSidecarsAreNotWithoutNumber(t *testing.T) {
	f := withoutBeginning(t)
	lines := make([]string, maxSidecars+1)
	for i := range lines {
		lines[i] = sidecarLine(fmt.Sprint(i))
	}
	f.write(uuidName(2, "json"), topJSON(lines...))
	if _, err := f.open().At(t.Context(), 2); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "sidecars") {
		t.Errorf("read: %v", err)
	}
}

func TestCacheIsNotBelievedWhenASidecarWasReplaced(t *testing.T) {
	f, c := twoSidecars(t, withoutBeginning(t)), &keptCache{}
	f.remove(CommitName(3))
	f.write(uuidName(2, "json"), topJSON(sidecarLine("z.parquet"), sidecarLine("x%20y.parquet")))
	table, _ := reopened(t, f, c)
	wantPaths(t, table, 2, "b c")
	table, w := reopened(t, f, c)
	wantPaths(t, table, 2, "b c")
	if c.discards != 0 || len(w.opened) != 0 {
		t.Errorf("%d discarded, read %q", c.discards, w.opened)
	}
	f.remove(sidecarDir + "/z.parquet")
	f.write(sidecarDir+"/z.parquet", encodeRows(t, &parquet.Snappy, sidecarFileRow{Add: addWithStats("other")}))
	table, _ = reopened(t, f, c)
	wantPaths(t, table, 2, "b other")
	if c.discards != 1 {
		t.Errorf("%d discarded", c.discards)
	}
}

func TestCheckpointMakerPassesOverV2Content(t *testing.T) {
	for name, write := range v2Forms(t) {
		f := threeVersions(t)
		f.remove(checkpointName(2))
		write(f)
		if c, err := f.open().OpenCheckpoint(t.Context(), 3); c != nil || err != nil {
			t.Errorf("%s: opened %v, %v", name, c, err)
		}
	}
}

// TestThirdPartyV2CheckpointsStandInForCommits reads the tables without the
// commits that their checkpoints stand in for.
func TestThirdPartyV2CheckpointsStandInForCommits(t *testing.T) {
	root, rows := thirdPartyTables(t)
	checked := 0
	for _, row := range rows {
		if row["v2ckpt"] == "" {
			continue
		}
		checked++
		t.Run(row.id(), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, row["table_path"]))); err != nil {
				t.Fatal(err)
			}
			whole, err := openTable(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			newest, ok := whole.CheckpointBefore(whole.Latest())
			if !ok {
				t.Fatal("no checkpoint")
			}
			want := map[string]string{}
			for f, err := range at(t, whole, whole.Latest()).AllAdds(context.Background()) {
				if err != nil {
					t.Fatal(err)
				}
				want[f.Path] = f.Add.Stats
			}
			for v := range newest + 1 {
				if err := os.Remove(filepath.Join(dir, CommitName(v))); err != nil {
					t.Fatal(err)
				}
			}
			table, err := openTable(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			o := readOracle(t, root, row)
			for _, want := range o.Versions {
				if want.Version >= newest {
					checkVersion(t, table, want)
				}
			}
			checkLatest(t, table, o)
			for f, err := range at(t, table, table.Latest()).AllAdds(context.Background()) {
				if err != nil || !sameJSON(t, f.Add.Stats, want[f.Path]) {
					t.Errorf("%s: %+v, %v, want %s", f.Path, f.Add, err, want[f.Path])
				}
			}
		})
	}
	if checked < 9 {
		t.Errorf("only %d tables were checked", checked)
	}
}
