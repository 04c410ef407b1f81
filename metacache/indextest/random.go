package indextest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/deltafs/deltafs/metacache"
)

// Directories at several depths, whose names hold bytes that sort before,
// between and after the slash and the digits.
var dirs = []string{
	"", "a=1", "a=1/b=x", "a=1/b=x/c=1", "a=1/b=x-", "a=1/b=x!y", "a=1/b=x.z/c=2", "a=1-2/b=x", "a=1 3/b=", "a=1.5/b=x",
	"a=1%2F/b=x", "a=10/b=x", "a=2/b=ä", "a=2/b=\U0001F600", "a", "a=", "b/c/d/e/f", "b!/c",
}

var visible = []string{"part.parquet", "part", "part-1", "part.1", "x", "0", "ä.parquet", "part.parquet~"}

// randomFile invents a file out of few names, so that names collide, paths
// are used again and deletion vectors change.
func randomFile(r *rand.Rand) metacache.File {
	dir, name := dirs[r.IntN(len(dirs))], visible[r.IntN(len(visible))]
	path := fmt.Sprintf("p%d-%s", r.IntN(3), name)
	switch {
	case r.IntN(6) == 0: // as with column mapping, and a name from elsewhere
		path, name = fmt.Sprintf("%c%c/p", 'a'+r.IntN(2), 'a'+r.IntN(3)), visible[r.IntN(len(visible))]
	case dir != "":
		path = dir + "/" + path
	}
	f := metacache.File{
		Key:  metacache.Key{Dir: dir, Name: name, Path: path},
		Size: r.Int64N(1000), ModTime: r.Int64N(1 << 41), Origin: r.Uint64(),
	}
	if r.IntN(4) == 0 {
		f.DV = fmt.Sprintf("udv%d@1", r.IntN(3))
	}
	if r.IntN(3) == 0 {
		f.Raw = "%70" + path[1:]
	}
	return f
}

// randomCommit removes and adds some files: new ones, live ones under another
// deletion vector or with other statistics, and ones removed before.
func randomCommit(r *rand.Rand, live map[string]metacache.File) commit {
	var c commit
	paths := slices.Sorted(maps.Keys(live))
	used := map[string]bool{}
	for range r.IntN(6) {
		if len(paths) == 0 {
			break
		}
		f := live[paths[r.IntN(len(paths))]]
		switch {
		case used[f.Path]:
		case r.IntN(3) == 0: // a new deletion vector for the same file
			c.gone = append(c.gone, metacache.Gone{Path: f.Path, DV: f.DV})
			f.DV += "+"
			c.added = append(c.added, f)
		case r.IntN(8) == 0: // removes what is not live with this vector
			c.gone = append(c.gone, metacache.Gone{Path: f.Path, DV: f.DV + "?"})
		default:
			c.gone = append(c.gone, metacache.Gone{Path: f.Path, DV: f.DV})
		}
		used[f.Path] = true
	}
	for range r.IntN(8) {
		if f := randomFile(r); !used[f.Path] {
			c.added = append(c.added, f)
			used[f.Path] = true
		}
	}
	return c
}

// randomHistory starts with some files, now and then removes all.
func randomHistory(r *rand.Rand, versions int) *history {
	h := newHistory()
	for v := range versions {
		c := commit{}
		if v > 0 {
			c = randomCommit(r, h.versions[v-1])
		}
		if v == 0 {
			for range 40 {
				c.added = append(c.added, randomFile(r))
			}
		}
		if v > 0 && r.IntN(12) == 0 {
			c = commit{}
			for _, f := range h.sorted(int64(v - 1)) {
				c.gone = append(c.gone, metacache.Gone{Path: f.Path, DV: f.DV})
			}
		}
		h.add(c)
	}
	return h
}

// RandomHistory compares an index with a model after each of many loads and
// applies in any order. The index may drop versions.
func RandomHistory(t *testing.T, open func(*testing.T) metacache.Index) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			const versions = 24
			h := randomHistory(r, versions)
			x := open(t)
			for range 40 {
				v := r.Int64N(versions)
				covered := covers(x.Coverage(), v)
				base := covers(x.Coverage(), v-1)
				if r.IntN(6) == 0 {
					if err := h.loadAll(t.Context(), x, v, r); err != nil {
						t.Fatal(err)
					}
				} else {
					err := h.apply(t.Context(), x, v)
					if wantErr := !covered && !base; wantErr != isNotCovered(err) || !wantErr && err != nil {
						t.Fatalf("Apply(%d) on %v: %v", v, x.Coverage(), err)
					} else if wantErr {
						continue
					}
				}
				if !covers(x.Coverage(), v) {
					t.Fatalf("version %d is not covered after it was given: %v", v, x.Coverage())
				}
				fresh := v
				if covered {
					fresh = -1
				}
				h.forget(x.Coverage(), fresh)
				h.check(t, x, v)
				h.checkCoverage(t, x, r)
				h.checkIDs(t, x)
			}
		})
	}
}

// checkCoverage checks the form of the coverage, that reads agree with it, and
// one covered version.
func (h *history) checkCoverage(t *testing.T, x metacache.Index, r *rand.Rand) {
	t.Helper()
	spans := x.Coverage()
	for i, s := range spans {
		if s.First > s.Last || i > 0 && s.First <= spans[i-1].Last+1 {
			t.Fatalf("coverage %v is not disjoint, ascending and merged", spans)
		}
	}
	s := spans[r.IntN(len(spans))]
	h.check(t, x, s.First+r.Int64N(s.Last-s.First+1))
	for v := range int64(len(h.versions)) {
		if _, err := x.Totals(t.Context(), v); covers(spans, v) != (err == nil) {
			t.Fatalf("Totals(%d): %v with coverage %v", v, err, spans)
		}
	}
}

func covers(spans []metacache.Span, v int64) bool {
	return slices.ContainsFunc(spans, func(s metacache.Span) bool { return s.First <= v && v <= s.Last })
}
