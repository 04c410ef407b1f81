package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

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

// The kernel looks a name up once more after ESTALE, not twice.
func TestNameReplacedByAnotherWriterIsOpenedAtTheSecondLookup(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l, other := back.open(t, Options{}), back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	caller := Caller{PID: 2}
	n, err := l.Lookup(ctx, caller, "", "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.WantWrite(ctx, caller, *n.File); err != nil {
		t.Fatal(err)
	}
	other.refresh(ctx)
	newKernel(other, 3).run(t, "open h x.parquet trunc; write h B; flush h; close h")
	l.Refreshed(ctx, snapshot.Event{})
	n, err = l.Lookup(ctx, caller, "", "x.parquet")
	if err != nil || n.Staged == nil || !n.Private {
		t.Fatalf("the name means %+v, %v", n, err)
	}
	if size := n.Staged.Attr().Size; size != int64(len(content("B"))) {
		t.Errorf("%d bytes, not those of the file that is there now", size)
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
	f, _, _ := old.ByPath(ctx, back.object(2))
	if err := l.WantWrite(ctx, Caller{PID: 2}, f); err != nil {
		t.Errorf("a removed file: %v", err) // its name may be written to
	}
	if err := l.WantWrite(ctx, Caller{PID: 2}, f); !errors.Is(err, ErrReadOnly) {
		t.Errorf("second open of a removed file: %v", err)
	}
}

func TestFileReplacedByAnotherWriterCanBeWrittenAtOnce(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l := back.open(t, Options{Grace: time.Hour})
	put(t, l, "x.parquet", "A")
	n, err := l.Lookup(ctx, Caller{PID: 2}, "", "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	put(t, back.open(t, Options{}), "x.parquet", "B")
	l.Refreshed(ctx, snapshot.Event{From: 1, To: 2})
	// The kernel opens what it looked up before.
	if err := l.WantWrite(ctx, Caller{PID: 2}, *n.File); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Lookup(ctx, Caller{PID: 2}, "", "x.parquet"); err != nil || n.Staged == nil {
		t.Fatalf("the writer's lookup: %+v, %v", n, err)
	}
	if got := meaning(l, 3, "x.parquet"); got != "committed" {
		t.Errorf("others find %q", got)
	}
}

func TestNameRemovedByAnotherWriterIsFreeForAWriter(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l := back.open(t, Options{Grace: time.Hour})
	put(t, l, "x.parquet", "A")
	newKernel(l, 1).run(t, "stat x.parquet")
	newKernel(back.open(t, Options{}), 1).run(t, "unlink x.parquet; syncdir")
	l.Refreshed(ctx, snapshot.Event{From: 1, To: 2})
	n, err := l.Lookup(ctx, Caller{PID: 2}, "", "x.parquet")
	if err != nil || n.File == nil {
		t.Fatalf("a reader finds %+v, %v", n, err)
	}
	if err := l.WantWrite(ctx, Caller{PID: 2}, *n.File); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the kernel asks twice
		if _, err := l.Lookup(ctx, Caller{PID: 2}, "", "x.parquet"); !errors.Is(err, ErrNotExist) {
			t.Errorf("the writer's lookup: %v", err)
		}
	}
	if _, err := l.Create(ctx, Caller{PID: 2}, "", "x.parquet"); err != nil {
		t.Errorf("create: %v", err)
	}
}

func TestLostReplacementIsBusyAndKept(t *testing.T) {
	ctx := context.Background()
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 2)
	k.run(t, "open h x.parquet trunc; write h B")
	f, _, _ := back.versions[1].ByPath(ctx, back.object(1))
	back.foreign(t, &TxnSpec{Actions: []action.Action{back.adds[f.ID].ToRemove(1, true)}})
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

func TestReaderThatLookedUpBeforeTheCommitReadsTheFile(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	first, second := newKernel(l, 1), newKernel(l, 2)
	first.run(t, "create h x.parquet; write h A")
	second.looked = func() { first.run(t, "flush h; close h") }
	second.run(t, "read r x.parquet; expect r A; close r")
	checkClosed(t, l, back)
}

// pyarrow unlinks the name it failed to write.
func TestCleaningUpAfterARefusedReplacementLeavesTheCommittedFile(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	before := len(back.contents(t))
	newKernel(l, 2).run(t, "open h x.parquet trunc; !misfit write h MISFIT; close h; unlink x.parquet")
	if err := l.SyncDir(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	if got := back.contents(t); len(got) != before || got["x.parquet"] != string(content("A")) {
		t.Errorf("table holds %q", got)
	}
	// The next unlink means the committed file, and so does anybody else's.
	newKernel(l, 2).run(t, "unlink x.parquet")
	put(t, l, "y.parquet", "A")
	newKernel(l, 2).run(t, "open h y.parquet trunc; !misfit write h MISFIT; close h")
	newKernel(l, 3).run(t, "unlink y.parquet")
	if err := l.SyncDir(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	if got := back.contents(t); len(got) != 0 {
		t.Errorf("table holds %q", got)
	}
}

// The kernel tells of the end of a handle some time after close(2): the same
// process may have looked the name up again by then, and must not write what
// it means for that name into a file that was given up.
func TestReplacementGivenUpBetweenLookupAndOpenIsNotWritten(t *testing.T) {
	for what, first := range map[string]string{
		"unchanged": "open a x.parquet",
		"partly":    "open a x.parquet trunc; write a B 0 half; !incomplete flush a",
	} {
		t.Run(what, func(t *testing.T) {
			back := newFakeBack(t)
			l := back.open(t, Options{})
			put(t, l, "x.parquet", "A")
			k := newKernel(l, 2)
			k.run(t, first)
			k.looked = func() {
				k.looked = nil
				k.run(t, "close a")
			}
			k.run(t, "open b x.parquet trunc; write b C; flush b; close b")
			if got := back.contents(t)["x.parquet"]; got != string(content("C")) {
				t.Errorf("table holds %q", got)
			}
		})
	}
}
