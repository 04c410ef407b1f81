package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/metacache"
)

func TestDirMergesDirectoriesAndFiles(t *testing.T) {
	f := newFixture(t).commit(0, protocolLine, metadataLine(`"k"`),
		addPartition("p1", "b"), addPartition("p2", "b"), addPartition("p3", "a/x"),
		`{"add":{"path":"n","partitionValues":{"k":null},"size":1,"modificationTime":1,"dataChange":true}}`)
	s := at(t, f.open(), 0)
	if got := fmt.Sprint(names(t, s, "", "")); got != "[k=__HIVE_DEFAULT_PARTITION__ k=a%2Fx k=b]" {
		t.Errorf("root lists %s", got)
	}
	if got := fmt.Sprint(names(t, s, "k=b", "")); got != "[p1 p2]" {
		t.Errorf("k=b lists %s", got)
	}
	if got := fmt.Sprint(names(t, s, "k=b", "p1")); got != "[p2]" {
		t.Errorf("k=b lists %s after p1", got)
	}
	if got := names(t, s, "k=b", "p2"); got != nil {
		t.Errorf("k=b lists %s at the end", got)
	}
	for _, dir := range []string{"k=c", "k", "k=b/p1", "nowhere/k=b"} {
		for _, err := range s.Dir(context.Background(), dir, "") {
			if !errors.Is(err, ErrNotExist) {
				t.Errorf("%s exists: %v", dir, err)
			}
		}
		if _, err := s.Lookup(context.Background(), "", dir); !errors.Is(err, ErrNotExist) {
			t.Errorf("%s is found: %v", dir, err)
		}
	}
	if e, err := s.Lookup(context.Background(), "", "k=b"); err != nil || e.File != nil {
		t.Errorf("k=b is %+v, %v", e, err)
	}
}

func TestEmptyRootExists(t *testing.T) {
	s := at(t, newFixture(t).plain().open(), 0)
	if got := names(t, s, "", ""); got != nil {
		t.Errorf("an empty table lists %q", got)
	}
}

// collisions is a table with names that several files share, long ones among
// them.
func collisions(t *testing.T) *Snapshot {
	long := strings.Repeat("n", 246) + ".parquet"
	longer := strings.Repeat("n", 247) + ".parquet"
	return at(t, newFixture(t).plain(
		addNamed("r/1", "a.parquet"), addNamed("r/2", "a.parquet"), addNamed("r/3", "a.parquet"),
		addNamed("r/4", "b.parquet"), addNamed("r/5", "a"), addNamed("r/6", "a"),
		addNamed("r/7", long), addNamed("r/8", long), addNamed("r/9", longer), addNamed("r/10", longer),
		addNamed("r/11", "a~00000000.parquet"),
	).open(), 0)
}

func TestCollidingNamesAreAllListedAndFound(t *testing.T) {
	s := collisions(t)
	ctx := context.Background()
	listed := names(t, s, "", "")
	if len(listed) != 11 {
		t.Errorf("listed %q", listed)
	}
	seen := map[string]bool{}
	for _, name := range listed {
		e, err := s.Lookup(ctx, "", name)
		if err != nil || e.File == nil || e.File.Name != name || seen[e.File.Path] {
			t.Errorf("lookup of %q: %+v, %v", name, e, err)
			continue
		}
		seen[e.File.Path] = true
		byPath, ok, err := s.ByPath(ctx, e.File.Path)
		if err != nil || !ok || byPath.Name != name {
			t.Errorf("by path %q is %q, %v", e.File.Path, byPath.Name, err)
		}
		if byID, err := s.Table().FileByID(ctx, e.File.ID); err != nil || byID.Name != name {
			t.Errorf("by id %q is %q, %v", name, byID.Name, err)
		}
	}
	for _, name := range []string{"a", "a.parquet"} {
		if _, err := s.Lookup(ctx, "", name); !errors.Is(err, ErrAmbiguous) {
			t.Errorf("the bare name %q: %v", name, err)
		}
	}
	for _, name := range []string{"b.parquet", "a~00000000.parquet"} {
		if !slices.Contains(listed, name) {
			t.Errorf("%q is not shown under its own name", name)
		}
	}
	for _, name := range []string{"a~ffffffff.parquet", collisionName("b.parquet", "r/4"), "c", ""} {
		if e, err := s.Lookup(ctx, "", name); !errors.Is(err, ErrNotExist) {
			t.Errorf("%q is found: %+v, %v", name, e, err)
		}
	}
}

func TestListingResumesAfterEveryName(t *testing.T) {
	s := collisions(t)
	all := names(t, s, "", "")
	for i, name := range all {
		if got := names(t, s, "", name); !slices.Equal(got, all[i+1:]) {
			t.Errorf("after %q: %q, want %q", name, got, all[i+1:])
		}
	}
}

func TestListingOfRandomNamesMatchesLookup(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "b", "a.parquet", "a~1", "~", "k=1", "é", "a.parquet~", "A"}
	for range 30 {
		lines := []string{protocolLine, metadataLine("")}
		for i := range 12 {
			lines = append(lines, addNamed(fmt.Sprint("p", i), alphabet[rng.IntN(len(alphabet))]))
		}
		s := at(t, newFixture(t).commit(0, lines...).open(), 0)
		all := names(t, s, "", "")
		if len(all) != 12 {
			t.Fatalf("listed %q", all)
		}
		found := map[string]bool{}
		for i, name := range all {
			e, err := s.Lookup(context.Background(), "", name)
			if err != nil || e.File == nil || found[e.File.Path] {
				t.Fatalf("lookup of %q among %q: %v, %v", name, all, e, err)
			}
			found[e.File.Path] = true
			if got := names(t, s, "", name); !slices.Equal(got, all[i+1:]) {
				t.Fatalf("after %q: %q, want %q", name, got, all[i+1:])
			}
		}
	}
}

// forgetful opens indexes that drop the versions before almost every commit.
type forgetful struct{}

func (forgetful) Open(context.Context, string) (metacache.Index, error) {
	x := metacache.NewMemory()
	x.MaxRuns, x.FoldBytes = 1, 1
	return x, nil
}

func TestSnapshotOutlivesItsPlaceInTheIndex(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1)).commit(1, removeLine("a")).commit(2, addLine("b", 1))
	ctx := context.Background()
	for name, ask := range map[string]func(*Snapshot, File) error{
		"dir": func(s *Snapshot, _ File) error {
			if got := names(t, s, "", ""); len(got) != 1 {
				return fmt.Errorf("lists %q", got)
			}
			return nil
		},
		"totals": func(s *Snapshot, _ File) error {
			totals, err := s.Totals(ctx)
			if err == nil && totals.Files != 1 {
				err = fmt.Errorf("has %+v", totals)
			}
			return err
		},
		"lookup": func(s *Snapshot, _ File) error {
			_, err := s.Lookup(ctx, "", "a")
			return err
		},
		"id": func(s *Snapshot, file File) error {
			if got, err := s.Table().FileByID(ctx, file.ID); !errors.Is(err, ErrNotExist) {
				return fmt.Errorf("is %+v, %w", got, err)
			}
			again, ok, err := s.ByPath(ctx, "a")
			if err != nil || !ok || again.ID == file.ID {
				return fmt.Errorf("is %+v, %w", again, err)
			}
			got, err := s.Table().FileByID(ctx, again.ID)
			if err == nil && (got.Name != "a" || got.ID != again.ID) {
				err = fmt.Errorf("is %+v", got)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := openWith(t, f, forgetful{})
			first := at(t, table, 0)
			file, _, err := first.ByPath(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			at(t, table, 2)
			if _, err := table.life.index.Totals(ctx, 0); !errors.Is(err, metacache.ErrNotCovered) {
				t.Fatalf("the index still holds version 0: %v", err)
			}
			if err := ask(first, file); err != nil {
				t.Error(err)
			}
		})
	}
}
