package main

import (
	"bufio"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

func historyCommand() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "List the commits of a table, newest first",
		ArgsUsage: "TABLE",
		Description: `Prints a line a commit. A version marked (gone) can no longer be rebuilt,
because the log before it was cleaned up. ROWS and FILES are what the commit
says it added (+), removed (-) and updated (~). Times are UTC.

Examples:
  deltafs history sales
  deltafs history sales --limit 10
  deltafs history sales --json | jq -r .userName`,
		Flags: []cli.Flag{
			jsonFlag("one JSON object a line, with all of commitInfo"),
			&cli.IntFlag{Name: "limit", Category: "Output", DefaultText: "all", Usage: "print the newest `N` commits"},
		},
		Action: showHistory,
	}
}

func showHistory(c *cli.Context) error {
	if err := exactArgs(c, 1); err != nil {
		return err
	}
	limit := c.Int("limit")
	if limit < 0 {
		return usagef(c.Command, "--limit cannot be negative")
	}
	t := target{name: c.Args().First()}
	var err error
	if t.path, err = localPath(t.name); err != nil {
		return err
	}
	table, err := t.open(c.Context)
	if err != nil {
		return err
	}
	defer table.Close()
	print, flush := historyTable(c)
	if c.Bool("json") {
		print, flush = historyJSON(c)
	}
	n := 0
	for commit, err := range table.History(c.Context) {
		if err != nil {
			_ = flush()
			return err
		}
		if err := print(commit); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	return flush()
}

// historyJSON prints what .delta/history.jsonl of a mount shows.
func historyJSON(c *cli.Context) (print func(snapshot.Commit) error, flush func() error) {
	w := bufio.NewWriter(c.App.Writer)
	return func(commit snapshot.Commit) error {
		line, err := commit.JSON()
		if err != nil {
			return err
		}
		_, err = w.Write(append(line, '\n'))
		return err
	}, w.Flush
}

func historyTable(c *cli.Context) (print func(snapshot.Commit) error, flush func() error) {
	out := newColumns(c.App.Writer, "VERSION", "TIME", "OPERATION", "PARAMETERS", "ROWS", "FILES", "ENGINE")
	return func(commit snapshot.Commit) error {
		version := strconv.FormatInt(commit.Version, 10)
		if !commit.Readable {
			version += " (gone)"
		}
		info := commit.Info
		if info == nil {
			info = &action.CommitInfo{}
		}
		operation, _ := info.Operation()
		engine, _ := info.EngineInfo()
		metrics, _ := info.OperationMetrics()
		return out.row(version, timeText(&commit.Time), cell(operation, 30), cell(parameters(info), 50),
			counts(metrics, rowMetrics), counts(metrics, fileMetrics), cell(engine, 40))
	}, out.flush
}

func cell(s string, limit int) string {
	if s == "" {
		return "-"
	}
	return printable(s, limit)
}

// parameters are the operation's parameters that say anything.
func parameters(info *action.CommitInfo) string {
	params, _ := info.OperationParameters()
	var words []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch value := plain(params[name]); value {
		case "", "[]", "{}", "null":
		default:
			words = append(words, name+"="+value)
		}
	}
	return strings.Join(words, " ")
}

// plain is a JSON string without its quotes, or other JSON as it stands.
func plain(v jsontext.Value) string {
	if v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	return string(v)
}

// metric is a sign and the names under which Spark and delta-rs count the same
// thing; the first that is present counts.
type metric struct {
	sign  string
	names []string
}

var rowMetrics = []metric{
	{"+", []string{"numTargetRowsInserted", "num_target_rows_inserted", "num_added_rows", "numOutputRows", "num_output_rows"}},
	{"-", []string{"numTargetRowsDeleted", "num_target_rows_deleted", "numDeletedRows", "num_deleted_rows"}},
	{"~", []string{"numTargetRowsUpdated", "num_target_rows_updated", "numUpdatedRows", "num_updated_rows"}},
}

var fileMetrics = []metric{
	{"+", []string{"numTargetFilesAdded", "num_target_files_added", "numAddedFiles", "numFilesAdded", "num_added_files", "numFiles"}},
	{"-", []string{"numTargetFilesRemoved", "num_target_files_removed", "numRemovedFiles", "numFilesRemoved", "num_removed_files"}},
}

// counts sums a commit's metrics up as "+10 -2"; zeros are left out beside
// other numbers.
func counts(metrics map[string]jsontext.Value, which []metric) string {
	var words []string
	for _, m := range which {
		for _, name := range m.names {
			value, ok := metrics[name]
			if !ok {
				continue
			}
			if n := plain(value); n != "0" {
				words = append(words, m.sign+printable(n, 20))
			}
			break
		}
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}
