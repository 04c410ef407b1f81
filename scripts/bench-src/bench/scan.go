package main

import (
	"fmt"
	"path/filepath"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

func (b *bench) scannedFiles() int {
	if b.full {
		return 160
	}
	return 16
}

func (b *bench) scanned() string {
	return filepath.Join(b.keep, fmt.Sprintf("scanned-%d", b.scannedFiles()))
}

func (b *bench) makeScanned() error {
	sayMaking(b.scanned(), "the table of %d files of 64 MB", b.scannedFiles())
	return tables.MakeScanned(b.scanned(), b.scannedFiles(), func(dir string, files int) error {
		_, err := b.peer("make_scanned.py", dir, files, tables.ScannedRows)
		return err
	})
}

// scan compares a DuckDB aggregate over the files of a snapshot with the same
// over the plain files, and with its delta extension on the table. A mount that
// can be written to is compared as well as one that cannot: through the latter
// the kernel asks nothing between two reads.
func (b *bench) scan() error {
	writable, err := b.mountTable(b.scanned(), "")
	if err != nil {
		return err
	}
	defer writable.stop()
	readOnly, err := b.mountTable(b.scanned(), "", "--read-only")
	if err != nil {
		return err
	}
	defer readOnly.stop()
	sources := []string{
		fmt.Sprintf("read_parquet('%s/@v1/*.parquet')", readOnly.point),
		fmt.Sprintf("read_parquet('%s/@v1/*.parquet')", writable.point),
		fmt.Sprintf("read_parquet('%s/*.parquet')", b.scanned()),
		fmt.Sprintf("delta_scan('%s')", b.scanned()),
	}
	for _, cold := range []bool{true, false} {
		medians, err := alternately(b.runs, contenders(sources, func(source string) (float64, error) {
			r, err := b.peer("scan_duckdb.py", source, cold)
			if err == nil && r.Count != b.scannedFiles()*tables.ScannedRows {
				err = fmt.Errorf("%s has %d rows", source, r.Count)
			}
			return r.Milliseconds, err
		})...)
		if err != nil {
			return err
		}
		temperature := "warm"
		if cold {
			temperature = "cold"
		}
		for i, mount := range []string{"--read-only", "writable mount"} {
			what := fmt.Sprintf("aggregate over %.1f GB, %s, %s", float64(b.scannedFiles())*64/1000, temperature, mount)
			b.report.add(what, milliseconds, medians[i], "the same files read directly", medians[2])
			b.report.add(what, milliseconds, medians[i], "delta_scan of the table", medians[3])
		}
	}
	return nil
}
