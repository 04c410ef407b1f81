package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
)

// appending measures from the open of a new file to the return of close, which
// with deltafs is when the commit is durable.
func (c *config) appending(current string) error {
	plain := filepath.Join(c.dir, "plain")
	if err := os.Mkdir(plain, 0o755); err != nil {
		return err
	}
	fmt.Printf("%-34s %10s %10s %10s\n", "appending one file", "median ms", "p95 ms", "ratio")
	for _, rows := range []int{1000, 100_000} {
		data := fixture.Parquet(fixture.Rows(1_000_000, rows))
		var durable, appended, closing []float64
		for i := range c.appends {
			name := fmt.Sprintf("f-%d-%d.parquet", rows, i)
			d, err := took(func() error { return writeDurably(plain, name, data) })
			if err != nil {
				return err
			}
			var closed float64
			a, err := took(func() error {
				f, err := os.Create(filepath.Join(current, name))
				if err != nil {
					return err
				}
				if _, err := f.Write(data); err != nil {
					return err
				}
				closed, err = took(f.Close)
				return err
			})
			if err != nil {
				return err
			}
			durable, appended, closing = append(durable, d), append(appended, a), append(closing, closed)
		}
		size := fmt.Sprintf("%d KiB", len(data)>>10)
		base := median(durable)
		for _, r := range []struct {
			name   string
			values []float64
		}{{"cp, fsync of file and directory", durable}, {"copied into current/", appended}, {"  of which close (the commit)", closing}} {
			m := median(r.values)
			fmt.Printf("%-34s %10.2f %10.2f %9.2fx  %s\n", r.name, m, r.values[len(r.values)*95/100], m/base, size)
		}
	}
	return nil
}

func took(fn func() error) (float64, error) {
	start := time.Now()
	err := fn()
	return float64(time.Since(start).Microseconds()) / 1000, err
}

// writeDurably is what cp followed by fsync of file and directory does.
func writeDurably(dir, name string, data []byte) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
