package main

import (
	"bufio"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/snapshot"
)

func filesCommand() *cli.Command {
	return &cli.Command{
		Name:      "files",
		Usage:     "List the data files of a version",
		ArgsUsage: "TABLE[@VERSION]",
		Description: `Prints the files of the latest version, or of the one named, as a mount shows
them. ROWS is what the log says, without deleted rows; - if it does not say.

Examples:
  deltafs files sales
  deltafs files sales@v3 --json | jq -s 'map(.size) | add'
  deltafs files 'sales@2024-05-01 10:00:00' --timezone Europe/Vienna`,
		Flags:  append([]cli.Flag{jsonFlag("one JSON object a line")}, versionFlags()...),
		Action: showFiles,
	}
}

func showFiles(c *cli.Context) error {
	t, err := targetArg(c)
	if err != nil {
		return err
	}
	table, s, err := t.snapshot(c.Context)
	if err != nil {
		return err
	}
	defer table.Close()
	if c.Bool("json") {
		out := bufio.NewWriter(c.App.Writer)
		return errors.Join(snapshot.WriteLines(out, s.FileLines(c.Context)), out.Flush())
	}
	print, flush := filesTable(c)
	for f, err := range s.AllAdds(c.Context) {
		if err != nil {
			_ = flush()
			return err
		}
		if err := print(f); err != nil {
			return err
		}
	}
	return flush()
}

func filesTable(c *cli.Context) (print func(snapshot.FileAdd) error, flush func() error) {
	out := newColumns(c.App.Writer, ">SIZE", ">ROWS", "MODIFIED", "PARTITION", "NAME")
	return func(f snapshot.FileAdd) error {
		count := "-"
		if n, ok := rows(f); ok {
			count = strconv.FormatInt(n, 10)
		}
		return out.row(strconv.FormatInt(f.Size, 10), count, timeText(&f.ModTime),
			cell(partition(f.Add.PartitionValues), 60), printable(path.Join(f.Dir, f.Name), 4096))
	}, out.flush
}

// rows is the number of rows that readers see, if the log tells.
func rows(f snapshot.FileAdd) (int64, bool) {
	n := f.Add.NumRecords()
	if n < 0 {
		return 0, false
	}
	if dv := f.Add.DeletionVector; dv != nil {
		n -= dv.Cardinality
	}
	return n, true
}

func partition(values map[string]*string) string {
	var words []string
	for _, column := range slices.Sorted(maps.Keys(values)) {
		value := "null"
		if v := values[column]; v != nil {
			value = *v
		}
		words = append(words, column+"="+value)
	}
	return strings.Join(words, " ")
}
