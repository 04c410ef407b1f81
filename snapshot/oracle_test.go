package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// tableRow is one line of the index of third-party tables.
type tableRow map[string]string

// id is source/table.
func (r tableRow) id() string { return r["source"] + "/" + r["table"] }

// thirdPartyTables returns the folder of the tables and their index.
func thirdPartyTables(t *testing.T) (string, []tableRow) {
	t.Helper()
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES does not name the folder with the third-party tables")
	}
	f, err := os.Open(filepath.Join(root, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []tableRow
	var head []string
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		cells := strings.Split(in.Text(), "\t")
		if head == nil {
			head = cells
			continue
		}
		row := tableRow{}
		for i, name := range head {
			if i < len(cells) {
				row[name] = cells[i]
			}
		}
		rows = append(rows, row)
	}
	if in.Err() != nil || len(rows) != 217 {
		t.Fatalf("index has %d tables: %v", len(rows), in.Err())
	}
	return root, rows
}

// oracle is what a correct reader finds in a table.
type oracle struct {
	LatestVersion           *int64                    `json:"latestVersion"`
	ReconstructableVersions []jsontext.Value          `json:"reconstructableVersions"`
	Schema                  jsontext.Value            `json:"schema"`
	Txn                     map[string]jsontext.Value `json:"txn"`
	DomainMetadata          map[string]jsontext.Value `json:"domainMetadata"`
	Metadata                struct {
		ID               string            `json:"id"`
		PartitionColumns []string          `json:"partitionColumns"`
		Configuration    map[string]string `json:"configuration"`
	} `json:"metadata"`
	Versions []oracleVersion `json:"versions"`
}

type oracleVersion struct {
	Version          int64            `json:"version"`
	NumFiles         *int64           `json:"numFiles"`
	SizeInBytes      *int64           `json:"sizeInBytes"`
	PartitionColumns []string         `json:"partitionColumns"`
	Protocol         oracleProtocol   `json:"protocol"`
	Files            []jsontext.Value `json:"files"`
}

type oracleProtocol struct {
	MinReader int `json:"minReader"`
	MinWriter int `json:"minWriter"`
}

type oracleFile struct {
	Path            string             `json:"path"`
	Decoded         string             `json:"decoded"`
	Size            int64              `json:"size"`
	PartitionValues map[string]*string `json:"partitionValues"`
}

// versions expands the ranges.
func (o *oracle) versions(t *testing.T) []int64 {
	var out []int64
	for _, raw := range o.ReconstructableVersions {
		var one int64
		var span [2]int64
		if json.Unmarshal(raw, &one) == nil {
			span = [2]int64{one, one}
		} else if err := json.Unmarshal(raw, &span); err != nil {
			t.Fatal(err)
		}
		for v := span[0]; v <= span[1]; v++ {
			out = append(out, v)
		}
	}
	return out
}

func readOracle(t *testing.T, root string, row tableRow) *oracle {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, row["oracle_json"]))
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{}
	if err := json.Unmarshal(raw, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func openTable(t *testing.T, dir string) (*Table, error) {
	t.Helper()
	st, err := store.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(context.Background(), st, Options{Name: filepath.Base(dir), View: ViewTable})
	if err == nil {
		t.Cleanup(func() { table.Close() })
	}
	return table, err
}

func TestThirdPartyTablesMatchTheOracle(t *testing.T) {
	root, rows := thirdPartyTables(t)
	checked := 0
	for _, row := range rows {
		if row["class"] != "ok" && row["class"] != "log-only" {
			continue
		}
		checked++
		t.Run(row.id(), func(t *testing.T) {
			o := readOracle(t, root, row)
			table, err := openTable(t, filepath.Join(root, row["table_path"]))
			if err != nil {
				t.Fatal(err)
			}
			checkVersions(t, table, o)
			for _, want := range o.Versions {
				checkVersion(t, table, want)
			}
			checkLatest(t, table, o)
			checkOpen(t, at(t, table, table.Latest()), row["class"] == "ok")
		})
	}
	if checked < 190 {
		t.Errorf("only %d tables were checked", checked)
	}
}

// TestThirdPartyTablesAreRefusedByName: what is not read says why, and what is
// read of such a table is right.
func TestThirdPartyTablesAreRefusedByName(t *testing.T) {
	root, rows := thirdPartyTables(t)
	// latest says what the refusal of the latest version must name; "" where
	// refusing is no duty.
	latest := map[string]string{
		"connectors-golden-2020/deltalog-invalid-protocol-version":                    "reader version 99",
		"connectors-golden-2020/deltalog-state-reconstruction-without-protocol":       "no protocol",
		"delta-golden/deltalog-invalid-protocol-version":                              "reader version 99",
		"delta-golden/deltalog-state-reconstruction-from-checkpoint-missing-metadata": "no metaData",
		"delta-golden/deltalog-state-reconstruction-without-protocol":                 "no protocol",
		"delta-golden/versions-not-contiguous":                                        "version 1 is missing",
		"delta-kernel-java/catalog-owned-preview":                                     "catalogManaged",
		"delta-rs-err-logs/table_c":                                                   "version 12 is missing",
		"delta-rs-err-logs/table_e":                                                   "catalogOwned",
		"delta-rs-err-logs/table_h":                                                   "catalogOwned",
		"delta-rs-err-logs/table_i":                                                   "catalogOwned",
		"delta-spark/table-with-dv-small-dv-missing":                                  "deletion vector is not there",
		"delta-spark/table-with-dv-special-char":                                      "deletion vector is not there",
		"dremio/malformedMetadata":                                                    "no metaData",
		"duckdb-delta/null_constraints_lists":                                         "does not parse",
		"kernel-rs-data/uc-catalog_managed_0":                                         "catalogManaged",
	}
	noTable := map[string]bool{"delta-golden/no-delta-log-folder": true, "dremio/checkpoint_empty": true}
	readable := map[string]int{
		"delta-rs-err-logs/table_h": 14, "delta-rs-err-logs/table_i": 14, "delta-rs-err-logs/table_c": 12,
		"delta-golden/versions-not-contiguous": 1, "delta-rs/table_with_deletion_logs": 3,
		"delta-golden/deltalog-state-reconstruction-from-checkpoint-missing-metadata": 10,
		"kernel-rs-data/type-widening": 1,
	}
	for _, row := range rows {
		if row["class"] == "ok" || row["class"] == "log-only" {
			continue
		}
		t.Run(row.id(), func(t *testing.T) {
			table, err := openTable(t, filepath.Join(root, row["table_path"]))
			if noTable[row.id()] {
				if !errors.Is(err, ErrNotTable) {
					t.Fatalf("opened: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			read := checkReadableVersions(t, table, readOracle(t, root, row))
			if want, ok := readable[row.id()]; ok && read != want {
				t.Errorf("%d versions read, want %d", read, want)
			}
			checkRefusal(t, table, row, latest[row.id()])
		})
	}
}

// checkReadableVersions compares the versions that read with the oracle; the
// others must fail with a reason.
func checkReadableVersions(t *testing.T, table *Table, o *oracle) (read int) {
	t.Helper()
	for _, want := range o.Versions {
		_, err := table.At(context.Background(), want.Version)
		switch {
		case err == nil:
			read++
			checkVersion(t, table, want)
		case !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNoVersion):
			t.Errorf("version %d: %v", want.Version, err)
		}
	}
	return read
}

func checkRefusal(t *testing.T, table *Table, row tableRow, names string) {
	t.Helper()
	s, err := table.At(context.Background(), table.Latest())
	if err == nil {
		for f, listErr := range s.Files(context.Background()) {
			if err = listErr; err == nil {
				_, err = table.Open(context.Background(), f)
			}
			if err == nil && names != "" {
				t.Errorf("%s is not refused", f.Name)
			}
		}
	}
	switch {
	case names == "" && row["class"] != "either":
		t.Error("the test does not say how the table is refused")
	case names != "" && (err == nil || !strings.Contains(err.Error(), names)):
		t.Errorf("the refusal does not name %q: %v", names, err)
	}
}

func checkVersions(t *testing.T, table *Table, o *oracle) {
	t.Helper()
	spans, err := table.Versions(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, s := range spans {
		for v := s.First; v <= s.Last; v++ {
			got = append(got, v)
		}
	}
	if want := o.versions(t); !slices.Equal(got, want) {
		t.Errorf("versions %v, want %v", got, want)
	}
	if table.Latest() != *o.LatestVersion {
		t.Errorf("latest %d, want %d", table.Latest(), *o.LatestVersion)
	}
}

func checkVersion(t *testing.T, table *Table, want oracleVersion) {
	t.Helper()
	ctx := context.Background()
	if want.NumFiles == nil {
		if s, err := table.At(ctx, want.Version); err == nil {
			t.Errorf("version %d reads, but the oracle could not: %v", want.Version, s)
		}
		return
	}
	s, err := table.At(ctx, want.Version)
	if err != nil {
		t.Errorf("version %d: %v", want.Version, err)
		return
	}
	totals, err := s.Totals(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if totals.Files != *want.NumFiles || totals.Bytes != *want.SizeInBytes {
		t.Errorf("version %d: %d files with %d bytes, want %d with %d",
			want.Version, totals.Files, totals.Bytes, *want.NumFiles, *want.SizeInBytes)
	}
	p := s.Protocol()
	if p.MinReaderVersion != want.Protocol.MinReader || p.MinWriterVersion != want.Protocol.MinWriter {
		t.Errorf("version %d: protocol %d/%d, want %v", want.Version, p.MinReaderVersion, p.MinWriterVersion, want.Protocol)
	}
	if !slices.Equal(s.Metadata().PartitionColumns, want.PartitionColumns) {
		t.Errorf("version %d: partition columns %q, want %q", want.Version, s.Metadata().PartitionColumns, want.PartitionColumns)
	}
	checkFiles(t, s, want)
}

// checkFiles compares the files with the oracle's list, and the directory
// tree with the flat list.
func checkFiles(t *testing.T, s *Snapshot, want oracleVersion) {
	t.Helper()
	got := map[string]FileAdd{}
	for f, err := range s.AllAdds(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Add.Path != f.Path || f.Add.DVID() != f.DV {
			t.Errorf("version %d: the add of %q is that of %q", s.Version(), f.Path, f.Add.Path)
		}
		got[decodePath(f.Path)] = f
	}
	tree := 0
	walkTree(t, s, "", func(f *File) {
		tree++
		if flat, ok := got[decodePath(f.Path)]; !ok || flat.Name != f.Name || flat.Dir != f.Dir || flat.ID != f.ID {
			t.Errorf("version %d: the tree shows %s/%s, the list %s/%s", s.Version(), f.Dir, f.Name, flat.Dir, flat.Name)
		}
	})
	if tree != len(got) {
		t.Errorf("version %d: the tree has %d files, the list %d", s.Version(), tree, len(got))
	}
	for _, raw := range want.Files {
		w := decodeOracleFile(t, raw)
		f, ok := got[w.Decoded]
		if !ok {
			t.Errorf("version %d lacks %q", s.Version(), w.Decoded)
			continue
		}
		delete(got, w.Decoded)
		if w.Path == "" {
			continue
		}
		if f.Path != w.Path || f.Size != w.Size {
			t.Errorf("version %d: %q with %d bytes, want %q with %d", s.Version(), f.Path, f.Size, w.Path, w.Size)
		}
		for k, v := range w.PartitionValues {
			if g := f.Add.PartitionValues[k]; (g == nil) != (v == nil) || (g != nil && *g != *v) {
				t.Errorf("version %d: %q: partition value %s differs", s.Version(), w.Path, k)
			}
		}
	}
	if want.Files != nil {
		for path := range got {
			t.Errorf("version %d shows %q, which the oracle does not", s.Version(), path)
		}
	}
}

// decodeOracleFile takes an object, a decoded path, or a path with a deletion
// vector id.
func decodeOracleFile(t *testing.T, raw jsontext.Value) oracleFile {
	t.Helper()
	var f oracleFile
	var err error
	switch raw.Kind() {
	case '{':
		err = json.Unmarshal(raw, &f)
	case '"':
		err = json.Unmarshal(raw, &f.Decoded)
	default:
		var pair []*string
		if err = json.Unmarshal(raw, &pair); err == nil {
			f.Decoded = *pair[0]
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func walkTree(t *testing.T, s *Snapshot, dir string, visit func(*File)) {
	t.Helper()
	ctx := context.Background()
	last := ""
	for e, err := range s.Dir(ctx, dir, "") {
		if err != nil {
			t.Fatalf("version %d: %q: %v", s.Version(), dir, err)
		}
		// Files that share a name come in the order of their paths.
		name := e.Name
		if stem, _, ext, _, shared := splitCollisionName(name); shared {
			name = stem + ext
		}
		if name < last {
			t.Errorf("version %d: %q: %q comes after %q", s.Version(), dir, e.Name, last)
		}
		last = name
		if e.File == nil {
			walkTree(t, s, joinDir(dir, e.Name), visit)
			continue
		}
		found, err := s.Lookup(ctx, dir, e.Name)
		if err != nil || found.File == nil || found.File.ID != e.File.ID {
			t.Errorf("version %d: lookup of %q: %v, %v", s.Version(), e.Name, found, err)
		}
		visit(e.File)
	}
}

func checkLatest(t *testing.T, table *Table, o *oracle) {
	t.Helper()
	ctx := context.Background()
	s, err := table.At(ctx, table.Latest())
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Schema) > 0 && o.Schema.Kind() == '{' {
		want, err := ParseSchema(string(o.Schema))
		if err != nil {
			t.Fatal(err)
		}
		wantText, _ := want.JSON()
		if got, err := s.Schema().JSON(); err != nil || !sameJSON(t, got, wantText) {
			t.Errorf("schema %s (%v), want %s", got, err, wantText)
		}
	}
	if s.Metadata().ID != o.Metadata.ID {
		t.Errorf("id %q, want %q", s.Metadata().ID, o.Metadata.ID)
	}
	for k, v := range o.Metadata.Configuration {
		if s.Metadata().Configuration[k] != v {
			t.Errorf("property %s is %q, want %q", k, s.Metadata().Configuration[k], v)
		}
	}
	if len(s.Metadata().Configuration) != len(o.Metadata.Configuration) {
		t.Errorf("properties %v, want %v", s.Metadata().Configuration, o.Metadata.Configuration)
	}
	if len(s.Txns()) != len(o.Txn) {
		t.Errorf("%d transactions, want %d", len(s.Txns()), len(o.Txn))
	}
	if len(s.Domains()) != len(o.DomainMetadata) {
		t.Errorf("%d domains, want %d", len(s.Domains()), len(o.DomainMetadata))
	}
}

// checkOpen reads every file: served in its size, or refused cleanly if not all
// of them are there.
func checkOpen(t *testing.T, s *Snapshot, complete bool) {
	t.Helper()
	ctx := context.Background()
	for f, err := range s.Files(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		size, sizeErr := s.Table().ServedSize(ctx, f)
		r, err := s.Table().Open(ctx, f)
		if err != nil || sizeErr != nil {
			same := f.SchemaOrdinal == 0 || fmt.Sprint(err) == fmt.Sprint(sizeErr)
			if complete || !same || !errors.Is(err, ErrFileGone) && !errors.Is(err, ErrOutside) {
				t.Errorf("%s: opened with %v, sized with %v", f.Name, err, sizeErr)
			}
			continue
		}
		n, err := io.Copy(io.Discard, io.NewSectionReader(r, 0, math.MaxInt64))
		if n != size || r.Content().Size != size || err != nil {
			t.Errorf("%s: read %d of %d bytes, %v", f.Name, n, size, err)
		}
		r.Close()
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	x, y := jsontext.Value(a), jsontext.Value(b)
	if err := errors.Join(x.Canonicalize(), y.Canonicalize()); err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}
