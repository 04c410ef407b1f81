package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/snapshot"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "Write the files of a version to a directory",
		ArgsUsage: "TABLE[@VERSION] DIR",
		Description: `Writes the latest version, or the one named, as a mount would show it: Parquet
files in directories of partition values, with the rows, names and types of the
table. DIR is made, or must be empty; the files appear in it when all are
complete.

Examples:
  deltafs export sales@v3 /backup/sales-v3
  deltafs export sales out --fill-partitions --json`,
		Flags: slices.Concat(viewFlags("Output"), []cli.Flag{
			jsonFlag("what was written as a JSON object"), allowPathFlag("Access"),
		}, versionFlags()),
		Action: runExport,
	}
}

func runExport(c *cli.Context) error {
	if err := exactArgs(c, 2); err != nil {
		return err
	}
	t, err := firstTarget(c)
	if err != nil {
		return err
	}
	if t.shown, err = shownAs(c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	table, s, err := t.snapshot(ctx)
	if err != nil {
		return err
	}
	defer table.Close()
	totals, err := s.Totals(ctx)
	if err != nil {
		return err
	}
	bar := newBar(c.App.ErrWriter, totals.Files)
	done, err := s.Export(ctx, c.Args().Get(1), func(e snapshot.Exported) { bar.show(e.Files, e.Bytes) })
	bar.end()
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return writeJSON(c.App.Writer, exportSummary{s.Version(), done.Files, done.Bytes, c.Args().Get(1)})
	}
	_, err = fmt.Fprintf(c.App.Writer, "version %d: %d files, %d bytes written to %s\n", s.Version(), done.Files, done.Bytes, c.Args().Get(1))
	return err
}

// exportSummary is what export prints as JSON.
type exportSummary struct {
	Version int64  `json:"version"`
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"`
	Dir     string `json:"dir"`
}

// bar shows on a terminal how far work is, on one line.
type bar struct {
	w     io.Writer // nil without a terminal
	total int64
	shown time.Time
	width int
}

// newBar makes a bar for so many files.
func newBar(w io.Writer, total int64) *bar {
	if !isTerminal(w) {
		w = nil
	}
	return &bar{w: w, total: total}
}

// show says how many files and bytes are done.
func (b *bar) show(files, bytes int64) {
	const interval, width = 100 * time.Millisecond, 30
	if b.w == nil || time.Since(b.shown) < interval && files < b.total {
		return
	}
	b.shown = time.Now()
	filled := int(files * width / max(b.total, 1))
	size := byteSize(bytes)
	line := fmt.Sprintf("[%-*s] %d/%d files, %s", width, strings.Repeat("=", filled), files, b.total, size.String())
	fmt.Fprintf(b.w, "\r%-*s", b.width, line)
	b.width = len(line)
}

// end takes the bar away.
func (b *bar) end() {
	if b.w != nil && b.width > 0 {
		fmt.Fprintf(b.w, "\r%-*s\r", b.width, "")
	}
}
