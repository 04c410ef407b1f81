// Command mktable makes a small Delta table to try deltafs on, and a Parquet
// file that fits it:
//
//	go run ./integration/mktable TABLE DROP.parquet
//
// TABLE must not exist; it gets versions 0 (empty), 1 (three rows) and 2 (two
// more rows).
package main

import (
	"fmt"
	"os"

	"github.com/deltafs/deltafs/integration/fixture"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: mktable TABLE DROP.parquet")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "mktable:", err)
		os.Exit(1)
	}
}

func run(table, drop string) error {
	t, err := fixture.Create(table, fixture.Spec{})
	if err != nil {
		return err
	}
	if err := t.Add("part-00000.parquet", fixture.Rows(1, 3)); err != nil {
		return err
	}
	if err := t.Add("part-00001.parquet", fixture.Rows(4, 2)); err != nil {
		return err
	}
	return fixture.WriteParquet(drop, fixture.Rows(6, 4))
}
