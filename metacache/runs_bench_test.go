package metacache_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/deltafs/deltafs/metacache"
)

// The table of the benchmarks: partitions of 500 files in the order in which a
// checkpoint has them, which is none.
const (
	benchFiles   = 1_000_000
	benchDirs    = 2000
	benchDirName = "p=17"
)

// namer invents paths as "p=17/part-00117-<16 hex digits>-<16>.c000.snappy.parquet",
// in one buffer again and again: strings are borrowed.
type namer struct{ buffer []byte }

func (n *namer) file(i int) metacache.File {
	random := mix(uint64(i))
	b := append(n.buffer[:0], "p="...)
	b = strconv.AppendUint(b, random%benchDirs, 10)
	dir := len(b)
	b = append(b, "/part-00"...)
	b = strconv.AppendUint(b, 100+uint64(i)%200, 10)
	b = append(b, '-')
	b = appendHex(b, mix(random))
	b = append(b, '-')
	b = appendHex(b, random)
	b = append(b, ".c000.snappy.parquet"...)
	n.buffer = b
	path := unsafe.String(&b[0], len(b))
	return metacache.File{
		Key:  metacache.Key{Dir: path[:dir], Name: path[dir+1:], Path: path},
		Size: 100<<20 + int64(random%(50<<20)), ModTime: 1700000000000 + int64(i)*1700, Origin: 1<<40 + uint64(i),
	}
}

func appendHex(b []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[n>>shift&15])
	}
	return b
}

func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// oneFile is a file that nobody else writes to.
func oneFile(i int) metacache.File { return new(namer).file(i) }

func manyFiles(n int) iter.Seq2[metacache.File, error] {
	return func(yield func(metacache.File, error) bool) {
		var names namer
		for i := range n {
			if !yield(names.file(i), nil) {
				return
			}
		}
	}
}

func loaded(tb testing.TB, files int) *metacache.Runs {
	tb.Helper()
	x := metacache.NewMemory()
	if err := x.Load(context.Background(), 0, nil, manyFiles(files)); err != nil {
		tb.Fatal(err)
	}
	return x
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestHeapPerFile bounds what a large table costs.
func TestHeapPerFile(t *testing.T) {
	const files, limit = 300_000, 110
	before := heap()
	x := loaded(t, files)
	used := heap() - before
	if used > limit*files {
		t.Errorf("%d bytes for each of %d files, want at most %d", used/files, files, limit)
	}
	if got, err := x.Totals(t.Context(), 0); err != nil || got.Files != files {
		t.Errorf("got %+v, %v", got, err)
	}
}

// cpu is the time that the process worked so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLoad reports CPU time, the collector's too and without that of
// inventing the files.
func BenchmarkLoad(b *testing.B) {
	var work time.Duration
	bytes := uint64(0)
	for b.Loop() {
		before, start := heap(), cpu()
		for range manyFiles(benchFiles) {
		}
		inventing := cpu() - start
		start = cpu()
		x := loaded(b, benchFiles)
		work += cpu() - start - inventing
		bytes = heap() - before
		runtime.KeepAlive(x)
	}
	b.ReportMetric(float64(work.Milliseconds())/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(bytes)/benchFiles, "bytes/file")
}

// BenchmarkFirstDir lists a directory of 500 files of a million for the first
// time.
func BenchmarkFirstDir(b *testing.B) {
	x := loaded(b, benchFiles)
	n := 0
	for b.Loop() {
		if n++; n == benchDirs {
			b.StopTimer()
			x, n = loaded(b, benchFiles), 0
			b.StartTimer()
		}
		list(b, x, fmt.Sprint("p=", n))
	}
}

// BenchmarkDir lists it again.
func BenchmarkDir(b *testing.B) {
	x := loaded(b, benchFiles)
	for b.Loop() {
		list(b, x, benchDirName)
	}
}

func list(b *testing.B, x *metacache.Runs, dir string) {
	files := 0
	for _, err := range x.Dir(b.Context(), 0, dir, "") {
		if err != nil {
			b.Fatal(err)
		}
		files++
	}
	if files < 300 {
		b.Fatalf("%s has %d files", dir, files)
	}
}

func BenchmarkByPath(b *testing.B) {
	x := loaded(b, benchFiles)
	i := 0
	for b.Loop() {
		i += 7919
		if _, ok, err := x.ByPath(b.Context(), 0, oneFile(i%benchFiles).Path); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkByID(b *testing.B) {
	x := loaded(b, benchFiles)
	i := 0
	for b.Loop() {
		i += 7919
		if _, ok, err := x.ByID(b.Context(), metacache.FileID(i%benchFiles+1)); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkApply adds files to a million live ones, with all folds that this
// leads to.
func BenchmarkApply(b *testing.B) {
	for _, files := range []int{1, 100} {
		b.Run(fmt.Sprint("files=", files), func(b *testing.B) {
			x := loaded(b, benchFiles)
			next := benchFiles
			for v := int64(1); b.Loop(); v++ {
				added := make([]metacache.File, files)
				for i := range added {
					added[i] = oneFile(next)
					next++
				}
				if err := x.Apply(b.Context(), v, nil, nil, added); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFiles reads a million files in order, which the first time is to put
// them in order.
func BenchmarkFiles(b *testing.B) {
	for _, name := range []string{"first", "again"} {
		b.Run(name, func(b *testing.B) {
			x := loaded(b, benchFiles)
			for b.Loop() {
				for _, err := range x.Files(b.Context(), 0) {
					if err != nil {
						b.Fatal(err)
					}
				}
				if name == "first" {
					b.StopTimer()
					x = loaded(b, benchFiles)
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchFiles, "ns/file")
		})
	}
}

// BenchmarkLoadAgain loads a version of which another run has all files.
func BenchmarkLoadAgain(b *testing.B) {
	x := loaded(b, benchFiles)
	for v := int64(10); b.Loop(); v += 10 {
		if err := x.Load(b.Context(), v, nil, manyFiles(benchFiles)); err != nil {
			b.Fatal(err)
		}
	}
}
