package metacache_test

import (
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/deltafs/deltafs/metacache"
)

// manyFiles invents n files in days of a partitioned table, with an add action
// of about 150 bytes.
func manyFiles(n int) iter.Seq2[metacache.File, error] {
	return func(yield func(metacache.File, error) bool) {
		for i := range n {
			if !yield(oneFile(i), nil) {
				return
			}
		}
	}
}

func oneFile(i int) metacache.File {
	dir := fmt.Sprintf("date=2024-%02d-%02d", i%12+1, i%28+1)
	name := fmt.Sprintf("part-%05d-4f2c7b1e-8d9a-4b0c-9e6f-%012x.c000.snappy.parquet", i%100000, i)
	path := dir + "/" + name
	return metacache.File{
		Key: metacache.Key{Dir: dir, Name: name, Path: path}, Size: int64(i), ModTime: 1700000000000, Origin: uint64(i),
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestMemoryPerFile bounds what a large table costs.
func TestMemoryPerFile(t *testing.T) {
	const files, limit = 300_000, 130 << 20
	before := heap()
	x := metacache.NewMemory()
	if err := x.Load(t.Context(), 0, nil, manyFiles(files)); err != nil {
		t.Fatal(err)
	}
	if used := heap() - before; used > limit {
		t.Errorf("%d files take %d MB, want at most %d", files, used>>20, limit>>20)
	} else {
		t.Logf("%d files take %d MB, %d bytes each", files, used>>20, used/files)
	}
	if got, err := x.Totals(t.Context(), 0); err != nil || got.Files != files {
		t.Errorf("got %+v, %v", got, err)
	}
}

func BenchmarkMemoryLoad(b *testing.B) {
	const files = 1_000_000
	for b.Loop() {
		if err := metacache.NewMemory().Load(b.Context(), 0, nil, manyFiles(files)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/files, "ns/file")
}

// BenchmarkMemoryApply appends one file a commit to a million live files.
func BenchmarkMemoryApply(b *testing.B) {
	const files = 1_000_000
	x := metacache.NewMemory()
	if err := x.Load(b.Context(), 0, nil, manyFiles(files)); err != nil {
		b.Fatal(err)
	}
	v := int64(0)
	for b.Loop() {
		v++
		if err := x.Apply(b.Context(), v, nil, nil, []metacache.File{oneFile(files + int(v))}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMemoryFiles(b *testing.B) {
	const files = 100_000
	x := metacache.NewMemory()
	if err := x.Load(b.Context(), 0, nil, manyFiles(files)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, err := range x.Files(b.Context(), 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/files, "ns/file")
}
