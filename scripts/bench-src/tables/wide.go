package tables

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/deltafs/deltafs/integration/fixture"
)

// WideFiles is the number of files, all in one directory, of the table that
// MakeWide makes, and WideSize the size of each.
const (
	WideFiles = 100_000
	WideSize  = 4096
)

// WideFile names a file of that table.
func WideFile(i int) string { return fmt.Sprintf("part-%06d.parquet", i) }

// MakeWide makes a table of many small files in one directory, at version 1.
// Nothing decodes them.
func MakeWide(dir string) error {
	_, err := making(dir, func(dir string) (struct{}, error) {
		t, err := fixture.Create(dir, fixture.Spec{})
		if err != nil {
			return struct{}{}, err
		}
		content := make([]byte, WideSize)
		lines := make([]string, WideFiles)
		for i := range lines {
			if err := os.WriteFile(filepath.Join(dir, WideFile(i)), content, 0o644); err != nil {
				return struct{}{}, err
			}
			lines[i] = addLine(WideFile(i), WideSize, 1)
		}
		return struct{}{}, t.Commit("WRITE", lines...)
	})
	return err
}
