package snapshot

import (
	"os"
	"testing"

	"github.com/deltafs/deltafs/internal/store"
)

// BenchmarkServedSize asks for the sizes of the files of the table that
// DELTAFS_BENCH_TABLE names, each for the first time.
func BenchmarkServedSize(b *testing.B) {
	dir := os.Getenv("DELTAFS_BENCH_TABLE")
	if dir == "" {
		b.Skip("DELTAFS_BENCH_TABLE names no table")
	}
	st, err := store.OpenLocal(dir)
	if err != nil {
		b.Fatal(err)
	}
	table, err := Open(b.Context(), st, Options{View: ViewTable})
	if err != nil {
		b.Fatal(err)
	}
	defer table.Close()
	s, err := table.At(b.Context(), table.Latest())
	if err != nil {
		b.Fatal(err)
	}
	var files []File
	for f, err := range s.Files(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		files = append(files, f)
	}
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if i%len(files) == 0 {
			table.sizes = sizeBook{}
		}
		if _, err := table.ServedSize(b.Context(), files[i%len(files)]); err != nil {
			b.Fatal(err)
		}
	}
}
