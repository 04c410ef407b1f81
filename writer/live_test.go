package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

func TestOthersReadTheCommittedFileWhileItIsReplaced(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 2)
	k.run(t, "open h x.parquet trunc; write h B 0 half")
	if a, b := meaning(l, 2, "x.parquet"), meaning(l, 3, "x.parquet"); a != "staged" || b != "committed" {
		t.Fatalf("for the writer %q, for others %q", a, b)
	}
	for _, process := range []uint32{2, 3} {
		if n, err := l.Lookup(ctx, Caller{PID: process}, "", "x.parquet"); err != nil || !n.Private {
			t.Errorf("process %d may cache a contested name: %+v, %v", process, n, err)
		}
	}
	k.run(t, "write h B half; flush h")
	for _, process := range []uint32{2, 3} {
		n, err := l.Lookup(ctx, Caller{PID: process}, "", "x.parquet")
		if err != nil || n.File == nil || n.Private {
			t.Errorf("process %d does not see the new file: %+v, %v", process, n, err)
		}
	}
	k.run(t, "!sealed write h C; truncate h size; !sealed truncate h 0; expect h B; close h")
	if got := back.contents(t)["x.parquet"]; got != string(content("B")) {
		t.Errorf("table holds %q", got)
	}
}

func TestAbandonedReplacementLeavesTheCommittedFile(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 2)
	k.run(t, "open h x.parquet trunc; write h B 0 half; !incomplete flush h; close h")
	for _, process := range []uint32{2, 3} {
		if got := meaning(l, process, "x.parquet"); got != "committed" {
			t.Errorf("for process %d the name is %q", process, got)
		}
	}
	staging := l.Staging()
	if len(staging) != 1 || !staging[0].Scratch || staging[0].Size == 0 {
		t.Fatalf("staging is %+v", staging)
	}
	kept := staging[0].Name
	// The rest can still be written, and the whole renamed into place.
	k.run(t, fmt.Sprintf("open h %s; write h B half; flush h; close h; rename %s x.parquet", kept, kept))
	if got := back.contents(t)["x.parquet"]; got != string(content("B")) {
		t.Errorf("table holds %q", got)
	}
	checkClosed(t, l, back)
}

func TestWritingThroughASnapshotIsRefused(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	n, err := l.Lookup(ctx, Caller{PID: 2}, "", "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	// The kernel looks the name up in the snapshot, which Live does not see,
	// and opens the same inode again.
	if err := l.WantWrite(ctx, Caller{PID: 2}, *n.File); err != nil {
		t.Fatal(err)
	}
	if err := l.WantWrite(ctx, Caller{PID: 2}, *n.File); !errors.Is(err, ErrReadOnly) {
		t.Fatalf("second open: %v", err)
	}
	if got := meaning(l, 2, "x.parquet"); got != "committed" {
		t.Errorf("a later lookup finds %q", got)
	}
	put(t, l, "y.parquet", "B")
	newKernel(l, 1).run(t, "unlink y.parquet; syncdir")
	old := back.versions[len(back.versions)-2]
	f, _, _ := old.ByPath(ctx, "part-2.parquet")
	if err := l.WantWrite(ctx, Caller{PID: 2}, f); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a removed file: %v", err)
	}
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

func TestRenameBetweenPartitionsIsOneCommit(t *testing.T) {
	back := newFakeBack(t, "letter")
	l := back.open(t, Options{})
	newKernel(l, 1).run(t, "mkdir letter=a; mkdir letter=b")
	put(t, l, "letter=a/x.parquet", "A")
	before := back.commits()
	newKernel(l, 1).run(t, "rename letter=a/x.parquet letter=b/y.parquet; !noent stat letter=a/x.parquet")
	if got := back.contents(t); back.commits() != before+1 || len(got) != 1 || got["letter=b/y.parquet"] != string(content("A")) {
		t.Fatalf("%d commits, table holds %q", back.commits()-before, got)
	}
	var kinds []string
	for _, a := range back.log[len(back.log)-1] {
		kinds = append(kinds, a.Kind())
	}
	if got := strings.Join(kinds, " "); got != "remove add" {
		t.Errorf("the commit has %s", got)
	}
}

func TestRenameInADirectoryKeepsTheRows(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	newKernel(l, 1).run(t, "rename x.parquet y.parquet")
	actions := back.log[len(back.log)-1]
	add, ok := actions[0].(*action.Add)
	if len(actions) != 1 || !ok || add.DataChange || add.Path != "part-1.parquet" {
		t.Errorf("the rename committed %+v", actions)
	}
}

func TestWritingToWhatWasMovedOutLeavesOldVersionsAlone(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 1)
	k.run(t, "rename x.parquet x.bak; open h x.bak; write h B 0 half; truncate h half; truncate h 0; write h B; flush h; expect h B; close h")
	old, err := os.ReadFile(filepath.Join(back.root, "part-1.parquet"))
	if err != nil || string(old) != string(content("A")) {
		t.Fatalf("version 1 holds %q, %v", old, err)
	}
}

func TestBurstOfUnlinksIsOneCommit(t *testing.T) {
	back := newFakeBack(t, "letter")
	l := back.open(t, Options{})
	k := newKernel(l, 1)
	k.run(t, "mkdir letter=a")
	for i := range 5 {
		put(t, l, fmt.Sprintf("letter=a/%d.parquet", i), "A")
	}
	before := back.commits()
	for i := range 5 {
		k.run(t, fmt.Sprintf("unlink letter=a/%d.parquet; !noent stat letter=a/%d.parquet", i, i))
	}
	if got := listing(t, l, "letter=a"); got != "" {
		t.Errorf("still listed: %q", got)
	}
	k.run(t, "rmdir letter=a; !noent stat letter=a")
	if got := back.commits() - before; got != 1 || len(back.contents(t)) != 0 {
		t.Errorf("%d commits, table holds %q", got, back.contents(t))
	}
	if spec := back.specs[len(back.specs)-1]; spec.Operation != "DELETE" || spec.Metrics["numRemovedFiles"] != "5" {
		t.Errorf("committed as %+v", spec)
	}
}

func TestBurstOfUnlinksIsCommittedWhenItIsQuiet(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	committed := make(chan *TxnSpec, 1)
	back.commitErr = func(spec *TxnSpec) (error, bool) { committed <- spec; return nil, false }
	newKernel(l, 1).run(t, "unlink x.parquet")
	if spec := <-committed; spec.Operation != "DELETE" {
		t.Errorf("committed as %+v", spec)
	}
	if err := l.close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(back.contents(t)) != 0 {
		t.Errorf("table holds %q", back.contents(t))
	}
}

func TestUnlinksOfOthersAreACommitOfTheirOwn(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	put(t, l, "y.parquet", "B")
	newKernel(l, 7).run(t, "unlink x.parquet")
	newKernel(l, 8).run(t, "create h z.parquet; write h C; flush h; close h")
	n := len(back.specs)
	if a, b := back.specs[n-2], back.specs[n-1]; a.Operation != "DELETE" || b.Operation != "WRITE" || len(b.Actions) != 1 {
		t.Errorf("committed %+v, then %+v", a, b)
	}
}

func TestLostUnlinkComesBackAndIsReported(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	var reports []string
	l := back.open(t, Options{Report: func(op, name string, err error) {
		reports = append(reports, fmt.Sprintf("%s %s %v", op, name, errors.Is(err, ErrConflict)))
	}})
	for _, name := range []string{"compacted.parquet", "gone.parquet"} {
		put(t, l, name, "A")
	}
	k := newKernel(l, 1)
	// Another writer removed the file: what was wanted is done.
	gone, _, _ := back.versions[2].ByPath(ctx, "part-2.parquet")
	k.run(t, "unlink gone.parquet")
	back.foreign(t, &TxnSpec{Actions: []action.Action{gone.Add.ToRemove(1, true)}})
	before := back.commits()
	k.run(t, "syncdir")
	if len(reports) != 0 || back.commits() != before {
		t.Errorf("reports %q, %d commits", reports, back.commits()-before)
	}
	// Another writer moved the rows elsewhere: they must not stay by accident.
	file, _, _ := back.versions[3].ByPath(ctx, "part-1.parquet")
	k.run(t, "unlink compacted.parquet")
	moved := *file.Add
	moved.Path, moved.DataChange = "part-1.parquet.2", false
	if err := os.Link(filepath.Join(back.root, file.Add.Path), filepath.Join(back.root, moved.Path)); err != nil {
		t.Fatal(err)
	}
	back.foreign(t, &TxnSpec{Actions: []action.Action{file.Add.ToRemove(1, false), &moved}})
	k.run(t, "!conflict syncdir; stat compacted.parquet")
	if len(reports) != 1 || reports[0] != "unlink compacted.parquet true" {
		t.Errorf("reports are %q", reports)
	}
}

func TestAppendOnlyRefusesRemovalsAtOnce(t *testing.T) {
	for _, how := range []string{"option", "property"} {
		back := newFakeBack(t)
		o := Options{AppendOnly: how == "option"}
		if how == "property" {
			back.versions[0].meta.Configuration["delta.appendOnly"] = "true"
		}
		l := back.open(t, o)
		put(t, l, "x.parquet", "A")
		newKernel(l, 2).run(t, "!appendonly unlink x.parquet; !appendonly open h x.parquet; create h .tmp; write h B; flush h; close h;"+
			"!appendonly rename .tmp x.parquet; rename .tmp y.parquet; !appendonly rename x.parquet x.bak; stat x.parquet")
		if got := back.contents(t); len(got) != 2 || got["x.parquet"] != string(content("A")) {
			t.Errorf("%s: table holds %q", how, got)
		}
	}
}

func TestReadOnlyMountRefusesEverythingAndLeavesNoTrace(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{ReadOnly: true})
	newKernel(l, 1).run(t, "!readonly create h x.parquet; !readonly create h .tmp; !readonly mkdir .rp; !readonly unlink x; !readonly rename a b; !readonly rmdir a")
	checkClosed(t, l, back)
}

func TestNameRemovedByAnotherWriterResolvesForAWhile(t *testing.T) {
	ctx := context.Background()
	for _, grace := range []time.Duration{time.Hour, 0} {
		back := newFakeBack(t)
		l := back.open(t, Options{Grace: grace})
		put(t, l, "x.parquet", "A")
		put(t, l, "y.parquet", "B")
		newKernel(l, 1).run(t, "unlink y.parquet; syncdir")
		f, _, _ := back.versions[1].ByPath(ctx, "part-1.parquet")
		back.foreign(t, &TxnSpec{Actions: []action.Action{f.Add.ToRemove(1, true)}})
		if err := back.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		l.Refreshed(ctx, snapshot.Event{From: 3, To: 4})
		want := ""
		if grace > 0 {
			want = "committed"
		}
		if got := meaning(l, 1, "x.parquet"); got != want {
			t.Errorf("grace %v: the name is %q", grace, got)
		}
		if got := meaning(l, 1, "y.parquet"); got != "" {
			t.Errorf("grace %v: a name unlinked here is %q", grace, got)
		}
		if got := listing(t, l, ""); got != "" {
			t.Errorf("grace %v: listed %q", grace, got)
		}
		if grace > 0 {
			newKernel(l, 1).run(t, "unlink x.parquet; !noent stat x.parquet; create h x.parquet")
		}
	}
}

func TestLostReplacementIsBusyAndKept(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 2)
	k.run(t, "open h x.parquet trunc; write h B")
	f, _, _ := back.versions[1].ByPath(ctx, "part-1.parquet")
	back.foreign(t, &TxnSpec{Actions: []action.Action{f.Add.ToRemove(1, true)}})
	k.run(t, "!conflict flush h; !conflict flush h; close h")
	if got := back.contents(t); len(got) != 0 {
		t.Errorf("table holds %q", got)
	}
	rejected, err := l.Rejected(ctx)
	if err != nil || len(rejected) != 1 || rejected[0].Hint == "" {
		t.Errorf("rejected are %+v, %v", rejected, err)
	}
	left, err := filepath.Glob(filepath.Join(back.root, "part-*"))
	if err != nil || len(left) != 1 {
		t.Errorf("data files left: %v", left)
	}
	checkClosed(t, l, back)
}

func TestReplacementIsRebasedOverUnrelatedCommits(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 2)
	k.run(t, "open h x.parquet trunc; write h B")
	lost := false
	back.commitErr = func(spec *TxnSpec) (error, bool) {
		if lost {
			return nil, false
		}
		lost = true
		name := "other.parquet"
		if err := os.WriteFile(filepath.Join(back.root, "other"), content("C"), 0o644); err != nil {
			t.Fatal(err)
		}
		back.foreign(t, &TxnSpec{Actions: []action.Action{&action.Add{Path: "other", Tags: map[string]*string{snapshot.TagName: &name}}}})
		return fault.New(ErrConflict, "somebody was faster"), false
	}
	k.run(t, "flush h; close h")
	if got := back.contents(t); len(got) != 2 || got["x.parquet"] != string(content("B")) {
		t.Errorf("table holds %q", got)
	}
}

func TestCommitOfUnknownOutcomeTouchesNothing(t *testing.T) {
	for _, after := range []bool{false, true} {
		back := newFakeBack(t)
		l := back.open(t, Options{})
		back.commitErr = func(*TxnSpec) (error, bool) { return fault.New(ErrUnsure, "no answer"), after }
		k := newKernel(l, 1)
		k.run(t, "create h x.parquet; write h A")
		for range 2 {
			if err := k.handles["h"].s.Flush(context.Background()); !errors.Is(err, ErrUnsure) {
				t.Fatalf("flush: %v", err)
			}
		}
		k.run(t, "close h")
		if _, err := os.Stat(filepath.Join(back.root, "part-1.parquet")); err != nil {
			t.Errorf("the data file was removed: %v", err)
		}
		if err := l.close(context.Background()); err != nil {
			t.Fatal(err)
		}
		// The next mount finds out.
		back.commitErr = nil
		if err := back.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
		next := back.open(t, Options{})
		rejected, err := next.Rejected(context.Background())
		if err != nil || (len(rejected) == 0) != after {
			t.Errorf("committed %v: rejected are %+v, %v", after, rejected, err)
		}
		checkClosed(t, next, back)
	}
}

func TestFailedCommitCanBeRepeated(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	back.commitErr = func(*TxnSpec) (error, bool) { return errDisk, false }
	k := newKernel(l, 1)
	k.run(t, "create h x.parquet; write h A; !disk flush h")
	if left, _ := filepath.Glob(filepath.Join(back.root, "part-*")); len(left) != 0 {
		t.Errorf("published files left: %v", left)
	}
	back.commitErr = nil
	k.run(t, "flush h; flush h; close h")
	if got := back.contents(t); back.commits() != 1 || got["x.parquet"] != string(content("A")) {
		t.Errorf("%d commits, table holds %q", back.commits(), got)
	}
	checkClosed(t, l, back)
}

func TestCommitDoesNotStopWithItsCaller(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	k := newKernel(l, 1)
	k.run(t, "create h x.parquet; write h A")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := k.handles["h"].s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if back.commits() != 1 {
		t.Errorf("%d commits", back.commits())
	}
}

func TestCommitBlocksNobodyElse(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "a.parquet", "A")
	entered, release := make(chan bool), make(chan bool)
	back.commitErr = func(spec *TxnSpec) (error, bool) {
		if *spec.Actions[0].(*action.Add).Tags[snapshot.TagName] == "slow.parquet" {
			entered <- true
			<-release
		}
		return nil, false
	}
	slow := newKernel(l, 1)
	slow.run(t, "create h slow.parquet; write h B")
	done := make(chan error)
	go func() { done <- slow.handles["h"].s.Flush(context.Background()) }()
	<-entered
	newKernel(l, 2).run(t, "stat a.parquet; stat slow.parquet; create h fast.parquet; write h C; flush h; close h; read r slow.parquet; expect r B; close r")
	if got := listing(t, l, ""); got != "a.parquet fast.parquet" {
		t.Errorf("listing is %q", got)
	}
	release <- true
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := len(back.contents(t)); got != 3 {
		t.Errorf("table holds %d files", got)
	}
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

func TestFileIsNotCheckedAtEveryWrite(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 1)
	k.run(t, "open h x.parquet")
	before := back.judged
	b := content("B")
	for i := range len(b) - tailSize {
		if _, err := k.handles["h"].s.WriteAt(context.Background(), b[i:i+1], int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if back.judged != before {
		t.Errorf("checked %d times", back.judged-before)
	}
	k.run(t, "flush h; close h")
	if back.contents(t)["x.parquet"] != string(b) {
		t.Errorf("table holds %q", back.contents(t))
	}
}

func TestRefusedFileStartsAnewWhenTruncated(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	newKernel(l, 1).run(t, "create h x.parquet; !misfit write h MISFIT; !misfit write h A; !misfit sync h; truncate h 0; write h A; flush h; close h; stat x.parquet")
	if got := back.contents(t)["x.parquet"]; got != string(content("A")) {
		t.Errorf("table holds %q", back.contents(t))
	}
	if rejected, err := l.Rejected(context.Background()); err != nil || len(rejected) != 1 {
		t.Errorf("rejected are %+v, %v", rejected, err)
	}
}

func TestUnlinkedStagedFileLivesWithItsHandles(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	newKernel(l, 1).run(t, "create h x.parquet; write h A 0 half; unlink x.parquet; !noent stat x.parquet; write h A half; expect h A; flush h;"+
		"create g x.parquet; write g B; flush g; close g; close h")
	if got := back.contents(t); len(got) != 1 || got["x.parquet"] != string(content("B")) {
		t.Errorf("table holds %q", got)
	}
	checkClosed(t, l, back)
}

func TestRejectedFilesAreListedAndRemoved(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l := back.open(t, Options{})
	for range 3 {
		newKernel(l, 1).run(t, "create h x.parquet; !misfit write h MISFIT; close h")
	}
	files, err := l.Rejected(ctx)
	if err != nil || len(files) != 3 {
		t.Fatalf("rejected are %+v, %v", files, err)
	}
	for _, f := range files {
		if f.Wanted != "x.parquet" || f.Reason != "it does not fit" || f.Hint != "do not do that" || f.Size == 0 {
			t.Errorf("%+v", f)
		}
		if err := l.RemoveRejected(ctx, f.Name); err != nil {
			t.Errorf("removing %s: %v", f.Name, err)
		}
	}
	if err := l.RemoveRejected(ctx, "x.parquet"); !errors.Is(err, ErrNotExist) {
		t.Errorf("removing twice: %v", err)
	}
	if err := l.RemoveRejected(ctx, "../mounts"); !errors.Is(err, ErrNotExist) {
		t.Errorf("removing elsewhere: %v", err)
	}
	checkClosed(t, l, back)
}

func TestUnmountKeepsIncompleteFiles(t *testing.T) {
	back := newFakeBack(t)
	var reports []string
	l := back.open(t, Options{Report: func(op, name string, err error) { reports = append(reports, op+" "+name) }})
	newKernel(l, 1).run(t, "create a x.parquet; write a A 0 half; close a; create b empty.parquet; close b; create c .tmp; write c A; close c; create d _SUCCESS; write d TEXT; close d")
	if err := l.close(context.Background()); err != nil {
		t.Errorf("close says %v", err)
	}
	slices.Sort(reports)
	if got := strings.Join(reports, ", "); got != "unmount .tmp, unmount x.parquet" {
		t.Errorf("reported: %s", got)
	}
	files, err := l.Rejected(context.Background())
	if err != nil || len(files) != 2 || files[1].Wanted != "x.parquet" || files[1].Reason != "unmounted before it was complete" {
		t.Errorf("rejected are %+v, %v", files, err)
	}
}

func TestUnmountSaysWhatItCouldNotCommit(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	back.commitErr = func(*TxnSpec) (error, bool) { return errDisk, false }
	newKernel(l, 1).run(t, "create h x.parquet; write h A; !disk flush h; close h")
	if err := l.close(context.Background()); !errors.Is(err, ErrIncomplete) {
		t.Errorf("close says %v", err)
	}
	if files, err := l.Rejected(context.Background()); err != nil || len(files) != 1 {
		t.Errorf("rejected are %+v, %v", files, err)
	}
}

func TestHandleWhoseWriteFailedNeverCommits(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "old.parquet", "A")
	k := newKernel(l, 1)
	for _, name := range []string{"x.parquet", "old.parquet"} {
		k.run(t, fmt.Sprintf("create h %s trunc; write h B 0 half", name))
		s := k.handles["h"].s
		broken, err := os.Open(os.DevNull) // no write to it succeeds
		if err != nil {
			t.Fatal(err)
		}
		good := s.file
		s.file = broken
		first := k.step(strings.Fields("write h B half"))
		s.file = good
		broken.Close()
		if first == nil {
			t.Fatal("the write succeeded")
		}
		for _, step := range []string{"write h B half", "flush h", "sync h", "write h B"} {
			if err := k.step(strings.Fields(step)); !errors.Is(err, errors.Unwrap(first)) {
				t.Errorf("%s: %v, want %v", step, err, first)
			}
		}
		k.run(t, "close h")
		// Once it is closed, the name can be written anew.
		k.run(t, fmt.Sprintf("create h %s trunc; truncate h 0; write h C; flush h; close h", name))
	}
	if got := back.contents(t); len(got) != 2 || got["x.parquet"] != string(content("C")) || got["old.parquet"] != string(content("C")) {
		t.Errorf("table holds %q", got)
	}
	checkClosed(t, l, back)
}

func TestFailedPublishingIsReportedAndRepeated(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	back.publishErr = errDisk
	k := newKernel(l, 1)
	k.run(t, "create h x.parquet; write h A; !disk flush h")
	back.publishErr = nil
	k.run(t, "flush h; close h")
	if back.commits() != 1 {
		t.Errorf("%d commits", back.commits())
	}
	checkClosed(t, l, back)
}

func TestUnwritableTableFailsAtCreate(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	back.writableErr = fault.New(ErrReadOnly, "table feature nobody knows")
	newKernel(l, 1).run(t, "!readonly create h y.parquet; !readonly open h x.parquet; !readonly mkdir .rp; !readonly unlink x.parquet")
}

func TestFileIsCheckedAgainAfterASchemaChange(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	k := newKernel(l, 1)
	k.run(t, "create h x.parquet; write h A")
	judged := back.judged
	meta := *back.versions[0].meta
	meta.SchemaString = "another"
	back.versions[0].meta = &meta
	k.run(t, "flush h; close h")
	if back.judged != judged+1 || back.commits() != 1 {
		t.Errorf("checked %d times, %d commits", back.judged-judged, back.commits())
	}
}

func TestWriterTimeIsKeptInTheTags(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	newKernel(l, 1).run(t, "create h x.parquet; write h A; mtime h; flush h; close h; create g y.parquet; mtime g; write g B; flush g; close g")
	kept := back.log[1][0].(*action.Add).Tags[snapshot.TagModTime]
	if want := time.Unix(1e9, 0).UTC().Format(time.RFC3339Nano); kept == nil || *kept != want {
		t.Errorf("kept %v, want %s", kept, want)
	}
	if late := back.log[2][0].(*action.Add).Tags[snapshot.TagModTime]; late != nil {
		t.Errorf("a write after it leaves %s", *late)
	}
}

func TestMovedScratchDirectoryTakesItsFilesAlong(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	newKernel(l, 1).run(t, "mkdir _temporary; mkdir _temporary/0; mkdir _temporary/0/a; create h _temporary/0/a/x.parquet; write h A; flush h; close h;"+
		"rename _temporary/0/a _temporary/0/b; !noent stat _temporary/0/a; !noent stat _temporary/0/a/x.parquet;"+
		"!reserved rename _temporary/0 out; !reserved rename _temporary/0 _temporary/0/b/c; !notempty rmdir _temporary/0;"+
		"rename _temporary/0/b/x.parquet x.parquet")
	if got := back.contents(t); got["x.parquet"] != string(content("A")) {
		t.Errorf("table holds %q", got)
	}
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

func TestFileCommittedBetweenLookupAndOpenIsReplaced(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	first, second := newKernel(l, 1), newKernel(l, 2)
	first.run(t, "create h x.parquet; write h A")
	second.looked = func() {
		second.looked = nil
		first.run(t, "flush h; close h")
	}
	second.run(t, "open h x.parquet trunc; write h B; flush h; close h")
	if got := back.contents(t); back.commits() != 2 || len(got) != 1 || got["x.parquet"] != string(content("B")) {
		t.Errorf("%d commits, table holds %q", back.commits(), got)
	}
}
