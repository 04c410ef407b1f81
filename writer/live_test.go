package writer

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// put commits a file as cp does.
func put(t *testing.T, l *Live, path, letter string) {
	t.Helper()
	newKernel(l, 1).run(t, fmt.Sprintf("create put %s; write put %s; flush put; close put", path, letter))
}

func TestUncommittedNamesResolveAndAreNotListed(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "a.parquet", "A")
	k := newKernel(l, 2)
	k.run(t, "create h b.parquet; write h A 0 half; create g .scratch; mkdir _temporary; mkdir _temporary/0; create i _temporary/0/c.parquet; write i A; flush i")
	if got := listing(t, l, ""); got != "a.parquet" {
		t.Errorf("listing is %q", got)
	}
	for name, want := range map[string]string{"b.parquet": "staged", ".scratch": "staged", "_temporary": "dir", "_temporary/0/c.parquet": "staged"} {
		if got := meaning(l, 9, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	// Inside scratch directories programs list their own files.
	if got := listing(t, l, "_temporary") + "/" + listing(t, l, "_temporary/0"); got != "0/c.parquet" {
		t.Errorf("listing of scratch is %q", got)
	}
	k.run(t, "rename _temporary/0/c.parquet c.parquet; rmdir _temporary/0; rmdir _temporary; !noent stat _temporary")
	if got := listing(t, l, ""); got != "a.parquet c.parquet" {
		t.Errorf("listing is %q", got)
	}
}

// TestListingSeesWhatIsCommittedMeanwhile changes files while a listing is under
// way, before it comes to them.
func TestListingSeesWhatIsCommittedMeanwhile(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	for _, name := range []string{"a", "b", "c", "d"} {
		put(t, l, name+".parquet", "A")
	}
	next, stop := iter.Pull2(l.List(context.Background(), "", ""))
	defer stop()
	if e, err, _ := next(); err != nil || e.Name != "a.parquet" {
		t.Fatalf("the first entry is %q, %v", e.Name, err)
	}
	k := newKernel(l, 1)
	k.run(t, "unlink b.parquet")
	if err := l.SyncDir(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	k.run(t, "!noent stat b.parquet") // the tree shows the version
	put(t, l, "c.parquet", "B")       // and does not show this one
	var rest []string
	for e, err, ok := next(); ok; e, err, ok = next() {
		if err != nil {
			t.Fatal(err)
		}
		rest = append(rest, e.Name)
	}
	if got := strings.Join(rest, " "); got != "c.parquet d.parquet" {
		t.Errorf("then come %q", got)
	}
}

// TestLookupSeesAReplacementCommittedMeanwhile replaces a file between the
// lookup of its name in the version shown and the use of what was found.
func TestLookupSeesAReplacementCommittedMeanwhile(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "a.parquet", "A")
	if _, err := l.Lookup(t.Context(), Caller{PID: 9}, "", "a.parquet"); err != nil {
		t.Fatal(err)
	}
	replaced := false
	back.found = func(string) {
		if !replaced {
			replaced = true
			put(t, l, "a.parquet", "B")
		}
	}
	if _, err := l.Lookup(t.Context(), Caller{PID: 9}, "", "a.parquet"); err != nil || !replaced {
		t.Errorf("the name means nothing while it is replaced: %v", err)
	}
}

func TestDirectoriesArePartitions(t *testing.T) {
	back := newFakeBack(t, "letter", "day")
	l := back.open(t, Options{})
	k := newKernel(l, 1)
	k.run(t, "!notpartition mkdir out; !notpartition mkdir day=1; mkdir letter=a; !exist mkdir letter=a; !exist mkdir LETTER=a;"+
		"!notpartition mkdir letter=a/out; mkdir letter=a/day=1; !notpartition mkdir letter=a/day=1/x=2; mkdir letter=; stat letter=__HIVE_DEFAULT_PARTITION__")
	if got := listing(t, l, ""); got != "letter= letter=a" {
		t.Errorf("made directories are listed as %q", got)
	}
	k.run(t, "create h letter=a/day=1/x.parquet; write h A; flush h; close h")
	if got := back.contents(t)["letter=a/day=1/x.parquet"]; got != string(content("A")) {
		t.Fatalf("table holds %q", back.contents(t))
	}
	k.run(t, "stat LETTER=a/DAY=1/x.parquet; mkdir letter=/day=%31; create h letter=/day=%31/y.parquet; write h B; flush h; close h")
	add := back.log[2][0].(*action.Add)
	if v := add.PartitionValues; len(v) != 2 || v["letter"] != nil || v["day"] == nil || *v["day"] != "1" {
		t.Errorf("partition values are %v", v)
	}
	k.run(t, "stat letter=__HIVE_DEFAULT_PARTITION__/day=1/y.parquet")
	err := k.step([]string{"mkdir", "letter=a/2024"})
	if !strings.Contains(fault.Hint(err), "day=<value>") {
		t.Errorf("the refusal says %v", err)
	}
}

func TestFileOutsideItsPartitionIsRefused(t *testing.T) {
	back := newFakeBack(t, "letter")
	l := back.open(t, Options{})
	k := newKernel(l, 1)
	k.run(t, "create h x.parquet; !misfit write h A; close h; create h .x.tmp; write h A; flush h; close h; !misfit rename .x.tmp x.parquet")
	rejected, err := l.Rejected(context.Background())
	if err != nil || len(rejected) != 2 || !strings.Contains(rejected[0].Hint, "letter=<value>") {
		t.Fatalf("rejected are %+v, %v", rejected, err)
	}
	if back.commits() != 0 {
		t.Errorf("%d commits", back.commits())
	}
	// The scratch file is still there and goes where it belongs.
	k.run(t, "mkdir letter=a; rename .x.tmp letter=a/x.parquet")
	if got := back.contents(t); len(got) != 1 || got["letter=a/x.parquet"] != string(content("A")) {
		t.Errorf("table holds %q", got)
	}
}

func TestReadOnlyMountRefusesEverythingAndLeavesNoTrace(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{ReadOnly: true})
	newKernel(l, 1).run(t, "!readonly create h x.parquet; !readonly create h .tmp; !readonly mkdir .rp; !readonly unlink x; !readonly rename a b; !readonly rmdir a")
	checkClosed(t, l, back)
}

func TestManyFilesAreWrittenAtOnce(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	l.callers.lookup = func(tid uint32) uint32 { return tid }
	var wg sync.WaitGroup
	for p := range uint32(8) {
		wg.Go(func() {
			for i := range 10 {
				name := fmt.Sprintf("%d-%d.parquet", p, i)
				if err := copyIn(l, Caller{PID: p + 1}, "", name, content("A")); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if i%3 == 0 {
					if err := l.Unlink(context.Background(), Caller{PID: p + 1}, "", name); err != nil {
						t.Errorf("unlink %s: %v", name, err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := l.SyncDir(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	if got := len(back.contents(t)); got != 8*6 {
		t.Errorf("table holds %d files, want %d", got, 8*6)
	}
	checkClosed(t, l, back)
}

func TestTableMadeAnewHidesNothing(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l := back.open(t, Options{Grace: time.Hour})
	put(t, l, "x.parquet", "A")
	newKernel(l, 1).run(t, "mkdir .rp; unlink x.parquet; create h y.parquet; write h B 0 half")
	fresh := newFakeBack(t)
	back.versions, back.log, back.shown = fresh.versions, fresh.log, 0
	l.Refreshed(ctx, snapshot.Event{From: 1, To: 0, Recreated: true})
	newKernel(l, 1).run(t, "!noent stat x.parquet; stat y.parquet; create g x.parquet; write g C; flush g; close g; stat x.parquet")
	if l.Version() != 1 {
		t.Errorf("version is %d", l.Version())
	}
}
