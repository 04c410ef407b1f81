package metacache

import (
	"fmt"
	"iter"
	"slices"
	"testing"
)

// blocksUnpacked is how many blocks of files were read from disk, as long as
// the cache has room for all of them.
func blocksUnpacked(c *Cache) int {
	c.lru.mu.Lock()
	defer c.lru.mu.Unlock()
	n := 0
	for key := range c.lru.entries {
		if key.kind == filesKind {
			n++
		}
	}
	return n
}

func TestCommitsReadFewBlocksFromDisk(t *testing.T) {
	const dirs, perDir, commits = 40, 2000, 20
	c := testCache(t)
	c.lru = newLRU(1 << 40)
	file := func(dir int, name string) File {
		d := fmt.Sprintf("d=%02d", dir)
		return File{Key: Key{Dir: d, Name: name, Path: d + "/" + name}}
	}
	old := func(dir, i int) File { return file(dir, fmt.Sprintf("f%05d", 10*i)) }
	open := func() *cachedIndex {
		x, err := c.Open(t.Context(), "/tables/t")
		check(t, err)
		return x.(*cachedIndex)
	}
	x := open()
	check(t, x.Load(t.Context(), 0, nil, func(yield func(File, error) bool) {
		for i := range dirs * perDir {
			if !yield(old(i%dirs, i/dirs), nil) {
				return
			}
		}
	}))
	x.Settle()
	check(t, x.Close())

	want := map[int][]string{}
	for dir := range dirs {
		for i := range perDir {
			want[dir] = append(want[dir], old(dir, i).Name)
		}
	}
	x = open()
	for v := range commits {
		var added []File
		for dir := range dirs {
			f := file(dir, fmt.Sprintf("f%05d", (v*7919+dir*31)%(10*perDir)/10*10+5))
			added = append(added, f)
			want[dir] = append(want[dir], f.Name)
		}
		gone := old(v%dirs, v*perDir/commits)
		want[v%dirs] = slices.DeleteFunc(want[v%dirs], func(name string) bool { return name == gone.Name })
		check(t, x.Apply(t.Context(), int64(v)+1, nil, []Gone{{Path: gone.Path}}, added))
	}
	x.Settle()
	if n := blocksUnpacked(c); n > commits {
		t.Errorf("%d commits with one remove each read %d blocks of files", commits, n)
	}
	check(t, x.Close())

	before := blocksUnpacked(c)
	x = open()
	defer x.Close()
	for dir, names := range want {
		slices.Sort(names)
		names = slices.Compact(names)
		middle := len(names) / 2
		for after, want := range map[string][]string{"": names, names[middle]: names[middle+1:]} {
			got := namesOf(t, x.Dir(t.Context(), commits, fmt.Sprintf("d=%02d", dir), after))
			if !slices.Equal(got, want) {
				t.Errorf("directory %d has %d files after %q, want %d", dir, len(got), after, len(want))
			}
		}
	}
	if before == blocksUnpacked(c) {
		t.Error("no block was read for a listing from disk: they are not counted")
	}
}

func namesOf(t *testing.T, files iter.Seq2[File, error]) (names []string) {
	t.Helper()
	for f, err := range files {
		check(t, err)
		names = append(names, f.Name)
	}
	return names
}
