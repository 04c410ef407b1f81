package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestHistoryListsCommitsNewestFirst(t *testing.T) {
	table := newTable(t)
	rows := printed(t, must(t, "history", table))
	var got []string
	for _, row := range rows {
		got = append(got, row["VERSION"]+" "+row["OPERATION"])
	}
	if want := []string{"3 DELETE", "2 WRITE", "1 WRITE", "0 CREATE TABLE"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", rows[0]["TIME"]); err != nil {
		t.Error(err)
	}
	if n := len(printed(t, must(t, "history", "--limit", "2", table))); n != 2 {
		t.Errorf("--limit 2 printed %d commits", n)
	}
	if must(t, "history", table, "--limit", "2") != must(t, "history", "--limit=2", table) {
		t.Error("flags behind the argument mean something else")
	}
}

func TestHistorySumsUpParametersAndMetrics(t *testing.T) {
	table := newTable(t)
	commit(t, table, 4, `{"commitInfo":{"timestamp":1,"operation":"MERGE","operationParameters":{"predicate":"a\tb","z":"[]","n":1},`+
		`"operationMetrics":{"numOutputRows":"99","numTargetRowsInserted":"7","numTargetRowsUpdated":"2","numTargetRowsDeleted":"0","numTargetFilesAdded":"3"},`+
		`"engineInfo":"Apache-Spark/4.0 Delta-Lake/4.0"}}`)
	commit(t, table, 5, `{"commitInfo":{"timestamp":1,"operation":"WRITE","operationMetrics":{"num_added_rows":5,"num_added_files":1,"num_removed_files":0}}}`)
	rows := printed(t, must(t, "history", table, "--limit", "2"))
	if got := rows[1]; got["PARAMETERS"] != "n=1 predicate=a b" || got["ROWS"] != "+7 ~2" || got["FILES"] != "+3" ||
		got["ENGINE"] != "Apache-Spark/4.0 Delta-Lake/4.0" {
		t.Errorf("Spark's commit: %v", got)
	}
	if got := rows[0]; got["ROWS"] != "+5" || got["FILES"] != "+1" || got["ENGINE"] != "-" {
		t.Errorf("delta-rs's commit: %v", got)
	}
}

func TestHistoryAsJSONHoldsTheWholeCommitInfo(t *testing.T) {
	table := newTable(t)
	commit(t, table, 4, `{"commitInfo":{"timestamp":1700000000000,"operation":"X","big":9007199254740993,"odd":{"a":[1,null]}}}`)
	lines := jsonLines(t, must(t, "history", table, "--json"))
	if len(lines) != 5 {
		t.Fatalf("got %d lines", len(lines))
	}
	first := lines[0]
	if string(first["version"]) != "4" || string(first["readable"]) != "true" ||
		string(first["operation"]) != `"X"` || string(first["big"]) != "9007199254740993" || string(first["odd"]) != `{"a":[1,null]}` {
		t.Errorf("got %s", first)
	}
}

// Its log lacks version 7, and a checkpoint comes at 10: 8 and 9 are lost.
func TestHistoryMarksVersionsThatCannotBeRebuilt(t *testing.T) {
	table := filepath.Join(thirdParty(t), "data", "delta-rs-err-logs", "table_b")
	var gone []string
	for _, row := range printed(t, must(t, "history", table)) {
		if v, ok := strings.CutSuffix(row["VERSION"], " (gone)"); ok {
			gone = append(gone, v)
		}
	}
	if want := []string{"9", "8"}; !slices.Equal(gone, want) {
		t.Errorf("marked %q, want %q", gone, want)
	}
	for _, line := range jsonLines(t, must(t, "history", table, "--json")) {
		if v := string(line["version"]); (string(line["readable"]) == "false") != slices.Contains(gone, v) {
			t.Errorf("version %s is readable: %s", v, line["readable"])
		}
	}
}

func TestDetailDescribesTheVersionAsked(t *testing.T) {
	table := newTable(t)
	for _, c := range []struct {
		args           []string
		version, files int
	}{
		{[]string{table}, 3, 1},
		{[]string{table + "@v2"}, 2, 2},
		{[]string{table, "--version", "0"}, 0, 0},
		{[]string{"file://" + table + "@v1"}, 1, 1},
	} {
		var d struct {
			Version, NumFiles, SizeInBytes int
			PartitionColumns               []string
			Location, Format               string
		}
		check(t, json.Unmarshal([]byte(must(t, append([]string{"detail", "--json"}, c.args...)...)), &d))
		if d.Version != c.version || d.NumFiles != c.files || !slices.Equal(d.PartitionColumns, []string{"day"}) || d.Format != "delta" {
			t.Errorf("detail %q: %+v", c.args, d)
		}
	}
	text := must(t, "detail", table+"@v2")
	for _, want := range []string{"version             2", "files               2", "partition columns   day", table} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

func TestFilesListsWhatAMountShows(t *testing.T) {
	table := newTable(t)
	rows := printed(t, must(t, "files", table+"@v2"))
	if len(rows) != 2 || rows[0]["NAME"] != "day=1/a.parquet" || rows[0]["ROWS"] != "10" || rows[0]["PARTITION"] != "day=1" ||
		rows[1]["NAME"] != "day=2/b.parquet" || rows[1]["ROWS"] != "5" {
		t.Errorf("got %v", rows)
	}
	info, err := os.Stat(filepath.Join(table, "day=1", "a.parquet"))
	check(t, err)
	if rows[0]["SIZE"] != strconv.FormatInt(info.Size(), 10) {
		t.Errorf("size %s, want %d", rows[0]["SIZE"], info.Size())
	}
	lines := jsonLines(t, must(t, "files", "--json", table))
	if len(lines) != 1 || string(lines[0]["name"]) != `"day=2/b.parquet"` || string(lines[0]["path"]) != `"day=2/b.parquet"` ||
		string(lines[0]["rows"]) != "5" || string(lines[0]["partitionValues"]) != `{"day":"2"}` {
		t.Errorf("got %s", lines)
	}
}

func TestVersionIsNamedByNumberOrTime(t *testing.T) {
	table := newTable(t)
	times := map[string]time.Time{"0": date(1), "1": date(3), "2": date(5), "3": date(7)}
	for v, when := range times {
		check(t, os.Chtimes(filepath.Join(table, "_delta_log", "0000000000000000000"+v+".json"), when, when))
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{table + "@2024-05-03T00:00:00Z"}, "1"},
		{[]string{table + "@2024-05-04"}, "1"},
		{[]string{table, "--timestamp", "2024-05-05T12:00:00Z"}, "2"},
		{[]string{table, "--timestamp", "2024-05-03 00:30:00", "--timezone", "Europe/Vienna"}, "0"},
		{[]string{table, "--timestamp", "2024-05-03 02:00:00", "--timezone", "Europe/Vienna"}, "1"},
		{[]string{table, "--timestamp", "2024-05-08T00:00:00Z"}, "3"},
	} {
		var d struct{ Version json.Number }
		check(t, json.Unmarshal([]byte(must(t, append([]string{"detail", "--json"}, c.args...)...)), &d))
		if d.Version.String() != c.want {
			t.Errorf("%q is version %s, want %s", c.args, d.Version, c.want)
		}
	}
	refused(t, deltafs(t, "detail", table+"@2024-04-30"), exitNotFound, "2024-04-30")
	refused(t, deltafs(t, "detail", table+"@2999-01-01"), exitNotFound, "2999-01-01")
}

func TestPathWithAtSignThatExistsIsTheTable(t *testing.T) {
	table := newTable(t)
	odd := table + "@v1"
	check(t, os.Rename(table, odd))
	var d struct{ Version int }
	check(t, json.Unmarshal([]byte(must(t, "detail", "--json", odd)), &d))
	if d.Version != 3 {
		t.Errorf("got version %d, want 3", d.Version)
	}
	check(t, json.Unmarshal([]byte(must(t, "detail", "--json", odd+"@v2")), &d))
	if d.Version != 2 {
		t.Errorf("got version %d, want 2", d.Version)
	}
}

func TestFailuresHaveTheirExitCode(t *testing.T) {
	table := newTable(t)
	empty := t.TempDir()
	file := filepath.Join(empty, "file")
	check(t, os.WriteFile(file, nil, 0o644))
	future := newTableOf(t, `{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timeMachine"],"writerFeatures":["timeMachine"]}`)
	for _, command := range []string{"history", "detail", "files"} {
		refused(t, deltafs(t, command, filepath.Join(empty, "none")), exitNotFound, "none", "no such")
		refused(t, deltafs(t, command, file), exitNotFound, "not a directory")
		refused(t, deltafs(t, command, empty), exitNotFound, empty)
		refused(t, deltafs(t, command, "s3://bucket/table"), exitUnsupported, "s3://", "not supported yet")
	}
	for _, command := range []string{"detail", "files"} {
		refused(t, deltafs(t, command, table+"@v9"), exitNotFound, "9")
		refused(t, deltafs(t, command, future), exitUnsupported, "timeMachine")
	}
}

func TestVersionDescribesTheBinary(t *testing.T) {
	var v struct{ Version, Go, OS, Arch string }
	check(t, json.Unmarshal([]byte(must(t, "version", "--json")), &v))
	if v.Version == "" || v.Go != runtime.Version() || v.OS != runtime.GOOS || v.Arch != runtime.GOARCH {
		t.Errorf("got %+v", v)
	}
	if text := must(t, "version"); !strings.HasPrefix(text, "deltafs "+v.Version+" (") {
		t.Errorf("got %q", text)
	}
	if text := must(t, "--version"); !strings.Contains(text, v.Version) {
		t.Errorf("got %q", text)
	}
}

// Real tables: what the commands print must agree with the oracle.
func TestInspectThirdPartyTables(t *testing.T) {
	root := thirdParty(t)
	for _, name := range []string{"connectors-flink/source_table_no_partitions", "aloneguid-delta/chinook__track.partitioned.mediatypeid.trickle"} {
		t.Run(name, func(t *testing.T) {
			table := filepath.Join(root, "data", name)
			var oracle struct {
				LatestVersion int
				Versions      []struct {
					Version               int
					NumFiles, SizeInBytes int64
				}
			}
			data, err := os.ReadFile(filepath.Join(root, "expected", name+".json"))
			check(t, err)
			check(t, json.Unmarshal(data, &oracle))
			if n := len(jsonLines(t, must(t, "history", table, "--json"))); n != oracle.LatestVersion+1 {
				t.Errorf("history has %d commits, want %d", n, oracle.LatestVersion+1)
			}
			for _, v := range []int{0, len(oracle.Versions) / 2, len(oracle.Versions) - 1} {
				want := oracle.Versions[v]
				var size int64
				lines := jsonLines(t, must(t, "files", "--json", table+"@v"+strconv.Itoa(want.Version)))
				for _, line := range lines {
					n, err := strconv.ParseInt(string(line["size"]), 10, 64)
					check(t, err)
					size += n
				}
				if int64(len(lines)) != want.NumFiles || size != want.SizeInBytes {
					t.Errorf("version %d: %d files of %d bytes, want %+v", want.Version, len(lines), size, want)
				}
			}
		})
	}
}

// thirdParty is the collection of tables written by other engines.
func thirdParty(t *testing.T) string {
	t.Helper()
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES is not set")
	}
	return root
}

func date(day int) time.Time { return time.Date(2024, 5, day, 0, 0, 0, 0, time.UTC) }

func commit(t *testing.T, table string, version int, lines ...string) {
	t.Helper()
	name := strings.Repeat("0", 20-len(strconv.Itoa(version))) + strconv.Itoa(version) + ".json"
	check(t, os.WriteFile(filepath.Join(table, "_delta_log", name), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

// printed reads a printed table back.
func printed(t *testing.T, text string) []map[string]string {
	t.Helper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	names := splitCells(lines[0])
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		cells := splitCells(line)
		if len(cells) != len(names) {
			t.Fatalf("%d cells under %d headers:\n%s\n%s", len(cells), len(names), lines[0], line)
		}
		for i, name := range names {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// splitCells splits at two or more spaces.
func splitCells(line string) []string {
	var cells []string
	for _, cell := range strings.Split(line, "  ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			cells = append(cells, cell)
		}
	}
	return cells
}

func jsonLines(t *testing.T, text string) []map[string]json.RawMessage {
	t.Helper()
	var out []map[string]json.RawMessage
	for line := range strings.Lines(text) {
		m := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		out = append(out, m)
	}
	return out
}
