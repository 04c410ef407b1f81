package metacache

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// sliceBase is a base as a sorted slice.
type sliceBase []File

func (b sliceBase) count() int { return len(b) }

func (b sliceBase) totals() Totals {
	var t Totals
	for _, f := range b {
		t.Files++
		t.Bytes += f.Size
		if f.DV != "" {
			t.DVs++
		}
	}
	return t
}

func (b sliceBase) dirs() []baseDir {
	var out []baseDir
	for i, f := range b {
		if n := len(out); n > 0 && out[n-1].path == f.Dir {
			out[n-1].files++
			continue
		}
		out = append(out, baseDir{path: f.Dir, first: i, files: 1})
	}
	return out
}

func (b sliceBase) seekDir(_ context.Context, dir string) (int, error) {
	dirs := b.dirs()
	for i, d := range dirs {
		if CompareDirs(d.path, dir) >= 0 {
			return i, nil
		}
	}
	return len(dirs), nil
}

func (b sliceBase) dir(_ context.Context, number int) (baseDir, bool, error) {
	if dirs := b.dirs(); number < len(dirs) {
		return dirs[number], true, nil
	}
	return baseDir{}, false, nil
}

func (b sliceBase) seekName(_ context.Context, d baseDir, name string) (int, error) {
	for i := d.first; i < d.end(); i++ {
		if b[i].Name >= name {
			return i, nil
		}
	}
	return d.end(), nil
}

func (b sliceBase) file(_ context.Context, rank int) (File, error) { return b[rank], nil }

func (b sliceBase) scan(_ context.Context, first, end int) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for _, f := range b[first:end] {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (b sliceBase) find(is func(File) bool) (int, bool, error) {
	i := slices.IndexFunc(b, is)
	return max(i, 0), i >= 0, nil
}

func (b sliceBase) byPath(_ context.Context, path string) (int, bool, error) {
	return b.find(func(f File) bool { return f.Path == path })
}

func (b sliceBase) byID(_ context.Context, id FileID) (int, bool, error) {
	return b.find(func(f File) bool { return f.ID == id })
}

func (b sliceBase) bytes() int64 { return 0 }
func (b sliceBase) close()       {}

var _ base = sliceBase(nil)

// someFiles invents n files in about so many directories, in order. Their IDs
// follow from firstID, or are mixed if that is 0.
func someFiles(n, dirs int, firstID FileID) sliceBase {
	r := rand.New(rand.NewPCG(uint64(n), uint64(dirs)))
	b := make(sliceBase, n)
	for i := range b {
		dir := ""
		if d := r.IntN(dirs); d > 0 {
			dir = fmt.Sprintf("day=%04d/part=%d", d/3, d%3)
		}
		name := fmt.Sprintf("part-%05d-%08x-%08x.snappy.parquet", r.IntN(200), r.Uint32(), r.Uint32())
		f := File{Key: Key{Dir: dir, Name: name, Path: join(dir, name)}}
		f.Size, f.ModTime, f.Origin = r.Int64N(1<<30), 1<<40+r.Int64N(1<<30), r.Uint64()
		switch r.IntN(5) {
		case 0:
			f.DV = fmt.Sprint("u", r.Uint32())
		case 1:
			f.Raw = "%70" + f.Path
		case 2:
			f.Name = "same"
		case 3:
			f.Path = "s3://elsewhere/" + f.Name
		}
		b[i] = f
	}
	slices.SortFunc(b, func(x, y File) int { return x.Compare(y.Key) })
	ids := r.Perm(n)
	for i := range b {
		b[i].ID = firstID + FileID(i)
		if firstID == 0 {
			b[i].ID = 1 + 3*FileID(ids[i])
		}
	}
	return b
}

// someRun is a run of one version with a base.
func someRun(serial uint64, first int64, b sliceBase) keptRun {
	r := keptRun{serial: serial, base: b, first: first, ownIDs: true}
	if len(b) > 0 && !slices.ContainsFunc(b, func(f File) bool { return f.ID < b[0].ID }) {
		r.ownIDs, r.firstID = false, b[0].ID
	}
	r.versions = []keptVersion{{version: first, note: fmt.Appendf(nil, "note %d", first), totals: b.totals()}}
	return r
}

// testCache is a cache that keeps everything, in a directory of the test.
func testCache(t *testing.T) *Cache {
	t.Helper()
	return openTestCache(t, filepath.Join(t.TempDir(), "cache"))
}

func openTestCache(t *testing.T, dir string) *Cache {
	t.Helper()
	return OpenCache(CacheOptions{Dir: dir, Size: 1 << 30, Logger: testLog(t)})
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// testKeeper opens the slot of a table.
func testKeeper(t *testing.T, c *Cache) *diskKeeper {
	t.Helper()
	k := c.newKeeper("/tables/t")
	t.Cleanup(func() { check(t, k.close()) })
	return k
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func collect[T any](t *testing.T, items iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for item, err := range items {
		check(t, err)
		out = append(out, item)
	}
	return out
}

// sameBase compares all answers of two bases.
func sameBase(t *testing.T, got, want base) {
	t.Helper()
	ctx := t.Context()
	if got.count() != want.count() || got.totals() != want.totals() {
		t.Fatalf("got %d files, %+v, want %d, %+v", got.count(), got.totals(), want.count(), want.totals())
	}
	files := collect(t, want.scan(ctx, 0, want.count()))
	if g := collect(t, got.scan(ctx, 0, want.count())); !slices.Equal(g, files) {
		for i := range min(len(g), len(files)) {
			if g[i] != files[i] {
				t.Fatalf("file %d is\n%+v, want\n%+v", i, g[i], files[i])
			}
		}
		t.Fatalf("got %d files, want %d", len(g), len(files))
	}
	for number := 0; ; number++ {
		g, ok, err := got.dir(ctx, number)
		check(t, err)
		w, more, _ := want.dir(ctx, number)
		if g != w || ok != more {
			t.Fatalf("directory %d is %+v, %v, want %+v, %v", number, g, ok, w, more)
		}
		if !more {
			break
		}
		if number%(1+number/30) != 0 {
			continue // the slice takes its time
		}
		for _, dir := range []string{w.path, w.path + "/", w.path + "\x00", w.path[:len(w.path)/2]} {
			g, err := got.seekDir(ctx, dir)
			check(t, err)
			if w, _ := want.seekDir(ctx, dir); g != w {
				t.Fatalf("seekDir(%q) is %d, want %d", dir, g, w)
			}
		}
		for rank := w.first; rank < w.end(); rank += 1 + w.files/50 {
			for _, name := range []string{files[rank].Name, files[rank].Name + "\x00", "", "\xff"} {
				g, err := got.seekName(ctx, w, name)
				check(t, err)
				if w, _ := want.seekName(ctx, w, name); g != w {
					t.Fatalf("seekName(%q) is %d, want %d", name, g, w)
				}
			}
		}
	}
	for rank, f := range files {
		if g, err := got.file(ctx, rank); err != nil || g != f {
			t.Fatalf("file(%d) is %+v, %v, want %+v", rank, g, err, f)
		}
		g, ok, err := got.byPath(ctx, f.Path)
		check(t, err)
		if w, _, _ := want.byPath(ctx, f.Path); g != w || !ok {
			t.Fatalf("byPath(%q) is %d, %v, want %d", f.Path, g, ok, w)
		}
		g, ok, err = got.byID(ctx, f.ID)
		if err != nil || !ok || g != rank {
			t.Fatalf("byID(%d) is %d, %v, %v, want %d", f.ID, g, ok, err, rank)
		}
		for _, id := range []FileID{f.ID + 1, f.ID - 1} {
			g, ok, err = got.byID(ctx, id)
			check(t, err)
			if w, more, _ := want.byID(ctx, id); ok != more || ok && g != w {
				t.Fatalf("byID(%d) is %d, %v, want %d, %v", id, g, ok, w, more)
			}
		}
		if _, ok, err := got.byPath(ctx, f.Path+"x"); ok || err != nil {
			t.Fatalf("byPath of a path that is not there: %v, %v", ok, err)
		}
	}
	for _, bounds := range [][2]int{{0, 0}, {1, 2}, {len(files) / 3, len(files)}, {len(files) / 2, len(files) * 3 / 4}} {
		if bounds[1] > len(files) {
			continue
		}
		if g := collect(t, got.scan(ctx, bounds[0], bounds[1])); !slices.Equal(g, files[bounds[0]:bounds[1]]) {
			t.Fatalf("scan of %v differs", bounds)
		}
	}
}

func TestDiskBaseHasTheSameFiles(t *testing.T) {
	for _, size := range []struct {
		files, dirs int
		firstID     FileID
	}{
		{0, 1, 1}, {1, 1, 1}, {1, 5, 0}, {blockFiles, 3, 7}, {blockFiles + 1, 1, 0}, {4*blockFiles - 1, 2000, 9}, {3000, 1, 0},
		{3000, 700, 1 << 39},
	} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			c := testCache(t)
			k := testKeeper(t, c)
			want := someFiles(size.files, size.dirs, size.firstID)
			b, err := k.keep(t.Context(), someRun(1, 5, want))
			check(t, err)
			sameBase(t, b, want)
			b.close()
			check(t, k.close())

			again := testKeeper(t, c)
			restored, err := again.restore(t.Context())
			check(t, err)
			if len(restored.runs) != 1 {
				t.Fatalf("restored %+v", restored)
			}
			r := restored.runs[0]
			if r.serial != 1 || r.first != 5 || len(r.versions) != 1 || string(r.versions[0].note) != "note 5" ||
				r.versions[0].totals != want.totals() || restored.lastSerial != 1 {
				t.Errorf("restored %+v", restored)
			}
			for _, f := range want {
				if f.ID > restored.lastID {
					t.Fatalf("file %d is beyond the last ID %d", f.ID, restored.lastID)
				}
			}
			sameBase(t, r.base, want)
			r.base.close()
		})
	}
}

func TestSorterSpills(t *testing.T) {
	for _, n := range []int{0, 1, 99, 100, 101, 1000} {
		s := newPairSorter(t.TempDir(), n)
		s.limit = 100
		r := rand.New(rand.NewPCG(1, uint64(n)))
		var want []pair
		for range n {
			p := pair{r.Uint64N(300), r.Uint32()}
			want = append(want, p)
			check(t, s.add(p))
		}
		slices.SortFunc(want, comparePairs)
		if got := collect(t, s.sorted()); !slices.Equal(got, want) {
			t.Errorf("%d pairs: got %d, not as sorted in memory", n, len(got))
		}
		s.close()
		left, err := os.ReadDir(s.dir)
		if err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	}
}

func TestSearchFirst(t *testing.T) {
	for first := range 12 {
		for end := first; end < 24; end++ {
			for answer := first; answer <= end; answer++ {
				got, err := searchFirst(first, end, 5, func(i int) (bool, error) {
					if i < first || i >= end {
						t.Fatalf("asked for %d outside of [%d, %d)", i, first, end)
					}
					return i >= answer, nil
				})
				if got != answer || err != nil {
					t.Errorf("[%d, %d): got %d, want %d", first, end, got, answer)
				}
			}
		}
	}
}

func TestLRUIsBounded(t *testing.T) {
	l := newLRU(100)
	b, other := &diskBase{}, &diskBase{}
	for i := range 50 {
		l.put(lruKey{b, 'x', i}, i, 10)
		l.get(lruKey{b, 'x', 0})
	}
	l.put(lruKey{other, 'x', 0}, 0, 10)
	if l.bytes != 100 || len(l.entries) != 10 {
		t.Errorf("it has %d bytes and %d entries", l.bytes, len(l.entries))
	}
	if _, ok := l.get(lruKey{b, 'x', 0}); !ok {
		t.Error("what is used all the time is gone")
	}
	l.put(lruKey{b, 'x', 99}, 0, 1000)
	if l.bytes > 100 {
		t.Errorf("it has %d bytes", l.bytes)
	}
	l.put(lruKey{other, 'x', 1}, 0, 10)
	l.drop(other)
	if _, ok := l.get(lruKey{other, 'x', 1}); ok || l.bytes > 100 || l.bytes < 0 {
		t.Errorf("dropped, but it is there; %d bytes", l.bytes)
	}
}
