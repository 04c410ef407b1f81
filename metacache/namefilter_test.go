package metacache

import (
	"fmt"
	"hash/maphash"
	"slices"
	"testing"
)

func TestNameFilterMissesNoName(t *testing.T) {
	seed := maphash.MakeSeed()
	for _, n := range []int{0, 1, 3, 1000, 50_000} {
		var hashes [][]uint32
		for i := range n {
			if i%chunkFiles == 0 {
				hashes = append(hashes, nil)
			}
			last := len(hashes) - 1
			hashes[last] = append(hashes[last], hashPath(seed, fmt.Sprint("there", i)))
		}
		f := newNameFilter(hashes, n)
		wrong := 0
		for i := range n {
			if !f.mayHave(hashPath(seed, fmt.Sprint("there", i))) {
				t.Fatalf("of %d names number %d is missed", n, i)
			}
			if f.mayHave(hashPath(seed, fmt.Sprint("elsewhere", i))) {
				wrong++
			}
		}
		if n == 0 && f.mayHave(7) || n >= 1000 && wrong > n/100 {
			t.Errorf("of %d names %d seem to be there", n, wrong)
		}
	}
}

func TestAddingAFileOrdersNothing(t *testing.T) {
	const files = 2000
	x := NewMemory()
	defer x.Close()
	file := func(name string) File { return File{Key: Key{Dir: "d=1", Name: name, Path: "d=1/" + name}} }
	check(t, x.Load(t.Context(), 0, nil, func(yield func(File, error) bool) {
		for i := range files {
			if !yield(file(fmt.Sprintf("f%04d", (i*7)%files)), nil) {
				return
			}
		}
	}))
	base := x.runs[0].base.base.(*heapBase)
	// One in four hundred names seems to be there, and puts the directory in order.
	names := slices.DeleteFunc([]string{"e", "f0500.5", "g"}, func(name string) bool {
		return base.names.mayHave(hashPath(base.paths.seed, name))
	})
	for i, name := range names {
		v := int64(i)
		if found, err := x.Lookup(t.Context(), v, "d=1", name); err != nil || len(found) > 0 {
			t.Fatalf("%s is there before it was added: %v, %v", name, found, err)
		}
		check(t, x.Apply(t.Context(), v+1, nil, nil, []File{file(name)}))
		if found, err := x.Lookup(t.Context(), v+1, "d=1", name); err != nil || len(found) != 1 || found[0].Path != "d=1/"+name {
			t.Fatalf("%s is not there: %v, %v", name, found, err)
		}
		for sub, err := range x.Subdirs(t.Context(), v+1, "", "") {
			if check(t, err); sub != "d=1" {
				t.Errorf("there is a directory %s", sub)
			}
		}
	}
	if base.dirs[0].sorted.Load() {
		t.Error("the directory was put in order for a name that is not in it")
	}
	last := int64(len(names))
	check(t, x.Apply(t.Context(), last+1, nil, []Gone{{Path: "d=1/f0001"}}, nil))
	for v := range last + 2 {
		var want, got []string
		for i := range files {
			if v <= last || i != 1 {
				want = append(want, fmt.Sprintf("f%04d", i))
			}
		}
		want = append(want, names[:min(v, last)]...)
		slices.Sort(want)
		for f, err := range x.Dir(t.Context(), v, "d=1", "") {
			check(t, err)
			got = append(got, f.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("version %d lists %d files, want %d", v, len(got), len(want))
		}
	}
}
