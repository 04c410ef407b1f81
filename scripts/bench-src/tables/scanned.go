package tables

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/deltafs/deltafs/integration/fixture"
)

// ScannedRows is the number of rows of each file of the table to scan: 64 MB.
const ScannedRows = 3_600_000

const scannedSchema = `{"type":"struct","fields":[` +
	`{"name":"id","type":"long","nullable":true,"metadata":{}},` +
	`{"name":"store","type":"integer","nullable":true,"metadata":{}},` +
	`{"name":"amount","type":"double","nullable":true,"metadata":{}},` +
	`{"name":"name","type":"string","nullable":true,"metadata":{}}]}`

// MakeScanned makes a table of files with ScannedRows rows each, all in version
// 1. The function given writes the data files into a directory.
func MakeScanned(dir string, files int, write func(dir string, files int) error) error {
	_, err := making(dir, func(dir string) (struct{}, error) {
		t, err := fixture.Create(dir, fixture.Spec{Schema: scannedSchema})
		if err != nil {
			return struct{}{}, err
		}
		if err := write(dir, files); err != nil {
			return struct{}{}, err
		}
		paths, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
		if err != nil {
			return struct{}{}, err
		}
		if len(paths) != files {
			return struct{}{}, fmt.Errorf("%d data files were written, not %d", len(paths), files)
		}
		lines := make([]string, len(paths))
		for i, p := range paths {
			st, err := os.Stat(p)
			if err != nil {
				return struct{}{}, err
			}
			lines[i] = addLine(filepath.Base(p), st.Size(), ScannedRows)
		}
		return struct{}{}, t.Commit("WRITE", lines...)
	})
	return err
}
