package metacache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const benchFiles = 1_000_000

// benchBase is a table of a million files as Spark writes them, in a thousand
// directories.
func benchBase() sliceBase {
	r := rand.New(rand.NewPCG(1, 2))
	b := make(sliceBase, benchFiles)
	for i := range b {
		dir := fmt.Sprintf("date=2024-%04d", i/1000)
		name := fmt.Sprintf("part-%05d-%08x-%04x-%04x-%04x-%012x.c000.snappy.parquet", r.IntN(200), r.Uint32(), r.Uint32()&0xffff,
			r.Uint32()&0xffff, r.Uint32()&0xffff, r.Uint64()&0xffffffffffff)
		b[i] = File{Key: Key{Dir: dir, Name: name, Path: dir + "/" + name}, ID: FileID(i + 1),
			Size: 1e6 + r.Int64N(1e8), ModTime: 1714000000000 + int64(i/1000)*1000, Origin: 1<<40 | uint64(i)}
	}
	slices.SortFunc(b, func(x, y File) int { return x.Compare(y.Key) })
	for i := range b {
		b[i].ID = FileID(i + 1)
	}
	return b
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident returns a line of /proc/self/status in bytes.
func resident(line string) float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), line+":")
	var kb float64
	_, _ = fmt.Sscan(rest, &kb)
	return kb * 1024
}

func BenchmarkCacheFill(b *testing.B) {
	files := benchBase()
	for range b.N {
		c := OpenCache(CacheOptions{Dir: b.TempDir(), Size: 1 << 40})
		k := c.newKeeper("t")
		debug.FreeOSMemory()
		_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // resets VmHWM
		before, cpu := resident("VmRSS"), cpuTime()
		base, err := k.keep(context.Background(), someRun(1, 1, files))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((cpuTime() - cpu).Seconds(), "cpu-s/op")
		b.ReportMetric((resident("VmHWM")-before)/1e6, "extra-MB")
		b.ReportMetric(float64(diskUse(c.options.Dir))/1e6, "disk-MB")
		base.close()
		_ = k.close()
	}
}

func BenchmarkCacheRestore(b *testing.B) {
	c := OpenCache(CacheOptions{Dir: b.TempDir(), Size: 1 << 40})
	k := c.newKeeper("t")
	base, err := k.keep(context.Background(), someRun(1, 1, benchBase()))
	if err != nil {
		b.Fatal(err)
	}
	base.close()
	_ = k.close()
	runtime.GC()
	debug.FreeOSMemory()
	b.ResetTimer()
	for range b.N {
		restoreAndList(b, c)
	}
}

// restoreAndList opens the cache as a process does, and lists one directory.
func restoreAndList(b *testing.B, c *Cache) {
	ctx := context.Background()
	begun, anon := time.Now(), resident("RssAnon")
	k := c.newKeeper("t")
	defer k.close()
	restored, err := k.restore(ctx)
	if err != nil || len(restored.runs) != 1 {
		b.Fatal(err, len(restored.runs))
	}
	base := restored.runs[0].base
	defer base.close()
	opened := time.Now()
	list := func(dir string) time.Duration {
		begun := time.Now()
		n, err := base.seekDir(ctx, dir)
		if err != nil {
			b.Fatal(err)
		}
		d, _, _ := base.dir(ctx, n)
		count := 0
		for _, err := range base.scan(ctx, d.first, d.end()) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		if count != 1000 {
			b.Fatal(count)
		}
		return time.Since(begun)
	}
	first := list("date=2024-0500")
	b.ReportMetric(float64(opened.Sub(begun).Microseconds())/1000, "restore-ms")
	b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
	b.ReportMetric(float64(list("date=2024-0100").Microseconds())/1000, "next-ms")
	b.ReportMetric((resident("RssAnon")-anon)/1e6, "anon-MB")
}
