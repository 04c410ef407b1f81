package main

import (
	"fmt"
	"slices"

	"github.com/deltafs/deltafs/integration/fixture"
)

// Rows of a file: its ids start at a thousand times its number, and how many
// there are follows from the number too.
const idsPerFile = 1000

func rowsOf(file int64) []fixture.Row {
	return fixture.Rows(file*idsPerFile, 1+int(uint64(file)*2654435761%200))
}

// contentOf is the whole file with the number.
func contentOf(file int64) []byte { return fixture.Parquet(rowsOf(file)) }

// fileOf reads a file and returns its number. It is an error if the file is
// not exactly what its number says.
func fileOf(path string) (int64, error) {
	rows, err := fixture.ReadParquet(path)
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 {
		return 0, fmt.Errorf("%s has no rows", path)
	}
	file := rows[0].ID / idsPerFile
	if !slices.Equal(rows, rowsOf(file)) {
		return 0, fmt.Errorf("%s has %d rows from id %d on, which are not those of file %d", path, len(rows), rows[0].ID, file)
	}
	return file, nil
}
