package fsnode

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The benchmarks measure the server's part of an operation, without a kernel.

// served is a table with a version 1 of n small files in its root.
func served(b *testing.B, n int, onDisk bool) (f *FS, version uint64, names []string) {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "t")
	tab := makeTable(b, dir)
	adds := make([]map[string]any, n)
	for i := range adds {
		name := fmt.Sprintf("part-%05d-3f3c1f0e-6a4b-4c6e-9d1e-%012x-c000.snappy.parquet", i, i*7919)
		names = append(names, name)
		adds[i] = map[string]any{"add": map[string]any{
			"path": name, "partitionValues": map[string]string{}, "size": 4096,
			"modificationTime": tab.time.UnixMilli(), "dataChange": true,
		}}
		if onDisk {
			if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 4096), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	tab.commit(adds...)
	f, err := New(b.Context(), Options{Source: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close(b.Context()) })
	return f, lookup(b, f, fuse.FUSE_ROOT_ID, "@v1"), names
}

func lookup(tb testing.TB, f *FS, parent uint64, name string) uint64 {
	var out fuse.EntryOut
	if st := f.Lookup(nil, &fuse.InHeader{NodeId: parent}, name, &out); !st.Ok() {
		tb.Fatal(name, st)
	}
	return out.NodeId
}

func BenchmarkListing(b *testing.B) {
	const n = 100000
	f, version, names := served(b, n, false)
	buf := make([]byte, 1<<20)
	lookup(b, f, version, names[0]) // loads the version
	for _, kind := range []struct {
		name string
		read func(<-chan struct{}, *fuse.ReadIn, *fuse.DirEntryList) fuse.Status
	}{{"names", f.ReadDir}, {"attributes", f.ReadDirPlus}} {
		b.Run(kind.name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime(b)
			for range b.N {
				var open fuse.OpenOut
				if st := f.OpenDir(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: version}}, &open); !st.Ok() {
					b.Fatal(st)
				}
				for off := uint64(0); ; {
					list := fuse.NewDirEntryList(buf, off)
					if st := kind.read(nil, &fuse.ReadIn{Fh: open.Fh, Offset: off, Size: uint32(len(buf))}, list); !st.Ok() {
						b.Fatal(st)
					}
					if list.Offset == off {
						break
					}
					off = list.Offset
				}
				f.ReleaseDir(&fuse.ReleaseIn{Fh: open.Fh})
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/n, "cpu-ns/entry")
		})
	}
}

// cpuTime is what the process has used, which other processes disturb less than
// what has passed.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkLookup(b *testing.B) {
	f, version, names := served(b, 20000, false)
	for _, dir := range []struct {
		name string
		id   uint64
	}{{"snapshot", version}, {"current", lookup(b, f, fuse.FUSE_ROOT_ID, nameCurrent)}} {
		b.Run(dir.name, func(b *testing.B) {
			lookup(b, f, dir.id, names[0]) // loads the version
			b.ReportAllocs()
			b.ResetTimer()
			before := cpuTime(b)
			for i := range b.N {
				lookup(b, f, dir.id, names[i%len(names)])
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	f, version, names := served(b, 2000, true)
	ids := make([]uint64, len(names))
	for i, name := range names {
		ids[i] = lookup(b, f, version, name)
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for i := range b.N {
		var open fuse.OpenOut
		if st := f.Open(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: ids[i%len(ids)]}}, &open); !st.Ok() {
			b.Fatal(st)
		}
		f.Release(nil, &fuse.ReleaseIn{Fh: open.Fh})
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}
