// Command bench measures deltafs beside its peers, for scripts/bench: it makes
// the tables, runs the rows one after another and prints what they found as a
// Markdown table. What is compared is measured alternately, so that what
// disturbs the machine disturbs all of it, and medians are reported.
//
// deltafs is measured through its binary alone. Each row is in a file named
// after it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

// row is a part of the comparison that can be run alone.
type row struct {
	name, about string
	// tables makes the kept tables that the row needs.
	tables func(*bench) error
	run    func(*bench) error
}

var rows = []row{
	{"list", "first listing of a partition, without and with a cache; a million files", (*bench).makeMillion, (*bench).list},
	{"old-list", "the same 500 and 5,000 commits back", (*bench).makeMillion, (*bench).oldList},
	{"memory", "memory of a mount of a million files", (*bench).makeMillion, (*bench).memory},
	{"read", "reading a large file, cold and warm", (*bench).makeBig, (*bench).read},
	{"walk", "find, ls -l and stat of 100,000 files in one directory", (*bench).makeWide, (*bench).walk},
	{"small-files", "open, read 4 KiB and close 20,000 files", (*bench).makeWide, (*bench).smallFiles},
	{"scan", "a DuckDB aggregate over the files of a snapshot", (*bench).makeScanned, (*bench).scan},
	{"rendered", "a DuckDB aggregate over files with deletion vectors and renamed columns", (*bench).makeRendered, (*bench).renderedFiles},
	{"visible", "a commit of another process becoming visible; a million files", (*bench).makeMillion, (*bench).visible},
	{"append", "appends of 1, 4 and 16 processes, durable at close", (*bench).makeHistories, (*bench).append},
}

// bench is one run.
type bench struct {
	bin, work, keep, peers, python string
	deltafs                        string
	full                           bool
	only                           string
	runs                           int
	report                         report
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == appendWorkerArg {
		if err := runAppendWorker(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench: a writer:", err)
			os.Exit(1)
		}
		return
	}
	var b bench
	var write string
	var list, tablesOnly bool
	flag.StringVar(&b.bin, "bin", "", "directory of the binaries")
	flag.StringVar(&b.work, "work", "", "work directory, on the disk to measure")
	flag.StringVar(&b.peers, "peers", "", "directory of the peers' programs")
	flag.StringVar(&b.python, "python", "", "Python with the engines")
	flag.StringVar(&b.deltafs, "deltafs", "", "the deltafs binary to measure")
	flag.StringVar(&b.keep, "keep", "", "where tables are kept")
	flag.StringVar(&b.only, "only", "", "rows to run, separated by commas")
	flag.StringVar(&write, "write", "", "file with the markers that the table goes between")
	flag.BoolVar(&b.full, "full", false, "the long form")
	flag.BoolVar(&list, "list", false, "name the rows")
	flag.BoolVar(&tablesOnly, "tables", false, "only make the tables")
	flag.IntVar(&b.runs, "runs", 0, "runs of each measurement; by default 3, in the long form 5")
	flag.Parse()
	if b.runs == 0 {
		b.runs = 3
		if b.full {
			b.runs = 5
		}
	}
	if list {
		for _, r := range rows {
			fmt.Printf("%-12s %s\n", r.name, r.about)
		}
		return
	}
	if err := b.main(write, tablesOnly); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) main(write string, tablesOnly bool) error {
	chosen, err := choose(b.only)
	if err != nil {
		return err
	}
	if err := b.paths(); err != nil {
		return err
	}
	for _, r := range chosen {
		if r.tables == nil {
			continue
		}
		if err := r.tables(b); err != nil {
			return fmt.Errorf("making the tables of %s: %w", r.name, err)
		}
	}
	if tablesOnly {
		return nil
	}
	b.removeScratchesOnSignal()
	defer os.RemoveAll(b.scratches())
	for _, r := range chosen {
		start := time.Now()
		b.report.row = r.name
		if err := r.run(b); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		progress("%s took %.0f s", r.name, time.Since(start).Seconds())
	}
	text := b.heading() + b.report.markdown()
	fmt.Print(text)
	if write == "" {
		return nil
	}
	return putBetweenMarkers(write, text)
}

func choose(only string) ([]row, error) {
	if only == "" {
		return rows, nil
	}
	var chosen []row
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no row %q; --list names them", name)
		}
		chosen = append(chosen, rows[i])
	}
	return chosen, nil
}

func (b *bench) paths() error {
	if b.deltafs == "" {
		b.deltafs = filepath.Join(b.bin, "deltafs")
	}
	if b.keep == "" {
		b.keep = filepath.Join(b.work, "tables")
	}
	if err := os.MkdirAll(b.keep, 0o755); err != nil {
		return err
	}
	for _, p := range []*string{&b.deltafs, &b.keep, &b.work, &b.peers} {
		full, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = full
	}
	return nil
}

// sayMaking tells what is made, unless it was kept.
func sayMaking(dir, format string, args ...any) {
	if !tables.Kept(dir) {
		progress("making "+format, args...)
	}
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "== "+format+"\n", args...)
}
