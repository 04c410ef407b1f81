package tables

import (
	"os"

	"github.com/parquet-go/parquet-go"
)

// rowsOf is the number of rows of a Parquet file.
func rowsOf(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	p, err := parquet.OpenFile(f, st.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, err
	}
	return p.NumRows(), nil
}
