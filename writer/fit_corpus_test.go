package writer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
	"github.com/deltafs/deltafs/snapshot"
)

// corpusFile is a data file that some engine added to a table.
type corpusFile struct {
	// table is its folder among the test tables.
	table  string
	path   string
	add    *action.Add
	target *target
}

// corpusFiles calls visit for every data file that an engine added in a
// commit of a table without features that change what a file means.
func corpusFiles(t *testing.T, visit func(t *testing.T, f corpusFile)) {
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES is not set: it names the folder with the test tables")
	}
	index, err := os.Open(filepath.Join(root, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	var columns map[string]int
	for lines := bufio.NewScanner(index); lines.Scan(); {
		row := strings.Split(lines.Text(), "\t")
		if columns == nil {
			columns = map[string]int{}
			for i, name := range row {
				columns[name] = i
			}
			continue
		}
		cell := func(name string) string { return row[columns[name]] }
		if cell("class") == "ok" && cell("columnMapping") == "" && cell("typeWidening") == "" && cell("variant") == "" {
			tableFiles(t, filepath.Join(root, cell("table_path")), visit)
		}
	}
}

func tableFiles(t *testing.T, table string, visit func(*testing.T, corpusFile)) {
	commits, err := filepath.Glob(filepath.Join(table, "_delta_log", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(commits)
	var at *target
	for _, commit := range commits {
		if len(filepath.Base(commit)) != len("00000000000000000000.json") {
			continue
		}
		var adds []*action.Add
		for _, a := range readCommit(t, commit) {
			switch a := a.(type) {
			case *action.Metadata:
				if schema, err := snapshot.ParseSchema(a.SchemaString); err == nil {
					at = &target{schema: schema, partitionColumns: a.PartitionColumns, config: a.Configuration}
				}
			case *action.Add:
				adds = append(adds, a)
			}
		}
		for _, add := range adds {
			name, err := url.PathUnescape(add.Path)
			path := filepath.Join(table, name)
			if _, missing := os.Stat(path); err != nil || missing != nil || at == nil {
				continue
			}
			to := *at
			to.partitionValues = add.PartitionValues
			visit(t, corpusFile{filepath.Join(filepath.Base(filepath.Dir(table)), filepath.Base(table)), path, add, &to})
		}
	}
}

func readCommit(t *testing.T, path string) (actions []action.Action) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := action.NewReader(f, 0); ; {
		a, err := r.Next()
		if err == io.EOF {
			return actions
		}
		if err != nil {
			return nil // a log that is broken on purpose
		}
		actions = append(actions, a)
	}
}

func openChecked(t *testing.T, path string) (*parquetfile.File, *os.File) {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	info, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquetfile.Check(r, info.Size())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return file, r
}

// corpusMisfits are the files of the corpus that do not fit, by table: change
// data in the data files, and times without a zone in zoned columns.
var corpusMisfits = map[string]string{
	"dat/cdf":                                              "_change_type",
	"delta-rs/cdc_ict_table":                               "_change_type",
	"kernel-rs-data/cdf-table-partitioned":                 "_change_type",
	"kernel-rs-data/compacted-log-files-table":             "_change_type",
	"kernel-rs-data/cdf-table-with-cdc-and-dvs":            "_change_type",
	"kernel-rs-data/cdf-table-delete-conditional-two-rows": "_change_type",
	"delta-rs/http_requests":                               "EdgeEndTimestamp",
	"delta-rs/issue_1374":                                  "timestamp",
}

func TestFitAcceptsWhatEnginesWrote(t *testing.T) {
	fitting, refused := 0, map[string]bool{}
	corpusFiles(t, func(t *testing.T, f corpusFile) {
		file, r := openChecked(t, f.path)
		err := fit(context.Background(), file, r, f.target)
		if err == nil {
			fitting++
			return
		}
		var e *fault.Error
		if !errors.Is(err, ErrMisfit) || !errors.As(err, &e) || e.Column != corpusMisfits[f.table] {
			t.Errorf("%s: %v", f.path, err)
		}
		refused[f.table] = true
	})
	if fitting < 1000 {
		t.Errorf("only %d files fit", fitting)
	}
	for table := range corpusMisfits {
		if !refused[table] {
			t.Errorf("%s: nothing was refused", table)
		}
	}
}

type fileStats struct {
	NumRecords json.Number
	MinValues  map[string]any
	MaxValues  map[string]any
	NullCount  map[string]any
}

func decodeStats(t *testing.T, text string) (s fileStats) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func TestStatsAgreeWithEngines(t *testing.T) {
	n := 0
	corpusFiles(t, func(t *testing.T, f corpusFile) {
		if f.table == "delta-rs/delta-0.8.0" || f.table == "kernel-rs-data/parsed-stats" {
			return // their logs do not tell the truth
		}
		file, r := openChecked(t, f.path)
		if f.add.Stats == "" || errors.Is(fit(context.Background(), file, r, f.target), ErrMisfit) {
			return
		}
		n++
		text, rows, err := statsFor(context.Background(), file, r, f.target)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := decodeStats(t, text), decodeStats(t, f.add.Stats)
		if rows != file.NumRows {
			t.Errorf("%s: %d rows instead of %d", f.path, rows, file.NumRows)
		}
		compareStats(t, f.path, "min", ours.MinValues, theirs.MinValues)
		compareStats(t, f.path, "max", ours.MaxValues, theirs.MaxValues)
		compareStats(t, f.path, "null", ours.NullCount, theirs.NullCount)
	})
	if n < 600 {
		t.Errorf("only %d files with statistics", n)
	}
}

func compareStats(t *testing.T, path, kind string, ours, theirs map[string]any) {
	for name, b := range theirs {
		a, ok := ours[name]
		if !ok {
			t.Errorf("%s: %s of %s: theirs %v, ours nothing", path, kind, name, b)
			continue
		}
		inner, nested := b.(map[string]any)
		if nested {
			if m, ok := a.(map[string]any); ok {
				compareStats(t, path, kind, m, inner)
				continue
			}
		}
		if !sameStat(kind, a, b) {
			t.Errorf("%s: %s of %s: ours %v, theirs %v", path, kind, name, a, b)
		}
	}
}

func parseTime(text string) (time.Time, error) {
	if t, err := time.Parse("2006-01-02T15:04:05", text); err == nil {
		return t, nil // without a zone; fractions parse too
	}
	return time.Parse(time.RFC3339, text)
}

func sameStat(kind string, a, b any) bool {
	x, ok1 := a.(json.Number)
	y, ok2 := b.(json.Number)
	if ok1 && ok2 {
		p, _ := new(big.Rat).SetString(x.String())
		q, _ := new(big.Rat).SetString(y.String())
		return p.Cmp(q) == 0
	}
	s, ok1 := a.(string)
	u, ok2 := b.(string)
	if !ok1 || !ok2 {
		return false
	}
	p, err1 := parseTime(s)
	q, err2 := parseTime(u)
	if err1 == nil && err2 == nil {
		d := p.Sub(q)
		return d == 0 || kind == "max" && d > 0 && d <= time.Millisecond || kind == "min" && d < 0 && d >= -time.Millisecond
	}
	// Writers differ in what they put behind a prefix.
	prefix := strings.TrimSuffix(s, "\x7f")
	return s == u || kind == "max" && s != prefix && strings.HasPrefix(u, prefix)
}
