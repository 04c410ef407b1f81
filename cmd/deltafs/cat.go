package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/snapshot"
)

func catCommand() *cli.Command {
	return &cli.Command{
		Name:      "cat",
		Usage:     "Print the rows of a version",
		ArgsUsage: "TABLE[@VERSION]",
		Description: `Prints the rows of the latest version, or of the one named, file by file in the
order of directories and names.

The format is a table on a terminal and CSV elsewhere. In CSV null is an empty
field and the empty text is "". In JSON lines longs and decimals have all their
digits, binary is base64, and NaN and the infinities are strings. A table cuts
long values short.

Examples:
  deltafs cat sales --limit 10
  deltafs cat sales@v3 --columns id,price --format csv | sort -t, -k1n
  deltafs cat sales@2024-05-01 --format jsonl | jq .price
  deltafs cat sales --format parquet > sales.parquet`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "columns", Category: "Output", Usage: "only these columns, separated by `COMMAS`", DefaultText: "all"},
			&cli.Int64Flag{Name: "limit", Category: "Output", Usage: "at most `N` rows", DefaultText: "all"},
			&cli.StringFlag{Name: "format", Category: "Output", Usage: "`FORMAT`: table, csv, jsonl or parquet",
				DefaultText: "table on a terminal, else csv"},
			allowPathFlag("Access"),
		}, versionFlags()...),
		Action: runCat,
	}
}

// formatTable is the format for people.
const formatTable = "table"

func runCat(c *cli.Context) error {
	t, err := targetArg(c)
	if err != nil {
		return err
	}
	format, rows, err := catRows(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a pipe whose reader has gone is an error of write, and the engine is ended
	if t.shown, err = shownAs(c); err != nil {
		return err
	}
	table, s, err := t.snapshot(ctx)
	if err != nil {
		return err
	}
	defer table.Close()
	engine := sql.New(sql.Options{})
	defer engine.Close()
	stream, err := s.Rows(ctx, engine, rows)
	if err != nil {
		return err
	}
	defer stream.Close()
	if format == formatTable {
		return catTable(c.App.Writer, stream, s.Schema())
	}
	_, err = io.Copy(struct{ io.Writer }{c.App.Writer}, stream)
	if err != nil && errors.Is(context.Cause(ctx), context.Canceled) && c.Context.Err() == nil {
		return reported{err} // by Ctrl-C
	}
	return ignoreBrokenPipe(err)
}

// catRows reads the flags.
func catRows(c *cli.Context) (format string, rows snapshot.Rows, err error) {
	terminal := isTerminal(c.App.Writer)
	format = c.String("format")
	if format == "" {
		format = string(sql.CSV)
		if terminal {
			format = formatTable
		}
	}
	rows = snapshot.Rows{Limit: -1, Format: sql.Format(format)}
	switch {
	case format == formatTable:
		rows.Format, rows.Null = sql.CSV, "NULL"
	case !slices.Contains([]sql.Format{sql.CSV, sql.JSONL, sql.Parquet}, rows.Format):
		return "", rows, usagef(c.Command, "unknown format %q: want table, csv, jsonl or parquet", format)
	case rows.Format == sql.Parquet && terminal:
		return "", rows, usagef(c.Command, "Parquet is not for a terminal: redirect it to a file")
	}
	if c.IsSet("limit") {
		if rows.Limit = c.Int64("limit"); rows.Limit < 0 {
			return "", rows, usagef(c.Command, "--limit cannot be negative")
		}
	}
	if c.IsSet("columns") {
		for name := range strings.SplitSeq(c.String("columns"), ",") {
			rows.Columns = append(rows.Columns, strings.TrimSpace(name))
		}
	}
	return format, rows, nil
}

// catTable prints CSV in aligned columns.
func catTable(w io.Writer, rows io.Reader, schema *snapshot.Schema) error {
	const widest = 60
	in := csv.NewReader(bufio.NewReader(rows))
	in.ReuseRecord = true
	in.LazyQuotes = false
	in.FieldsPerRecord = -1
	var out *columns
	for {
		record, err := in.Read()
		if err == io.EOF && out != nil {
			return ignoreBrokenPipe(out.flush())
		}
		if err != nil {
			if out != nil {
				_ = out.flush() // what came before the error
			}
			return err
		}
		cells := make([]string, len(record))
		for i, text := range record {
			cells[i] = printable(text, widest)
		}
		if out == nil {
			out = newColumns(w, tableHeader(cells, schema)...)
		} else if err := out.row(cells...); err != nil {
			return ignoreBrokenPipe(err)
		}
	}
}

// tableHeader marks the columns of numbers.
func tableHeader(names []string, schema *snapshot.Schema) []string {
	numbers := []string{"byte", "short", "integer", "long", "float", "double", "decimal"}
	for i, name := range names {
		f, ok := schema.Lookup(name)
		if p, primitive := f.Type.(*snapshot.Primitive); ok && primitive && slices.Contains(numbers, p.Name) {
			names[i] = ">" + name
		}
	}
	return names
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// ignoreBrokenPipe makes a reader that has seen enough no failure.
func ignoreBrokenPipe(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
