package writer

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// meanwhile starts what another process does, and returns when it has ended or
// waits for the lock of the name. join waits for its end.
func meanwhile(l *Live, process uint32, name string, steps ...string) (join func()) {
	done := make(chan struct{})
	k := &kernel{l: l, process: process, handles: map[string]*openFile{}}
	go func() {
		defer close(done)
		for _, step := range steps {
			_ = k.step(strings.Fields(step)) // what comes of it shows in the table
		}
	}()
	waits := func() bool {
		l.keys.mu.Lock()
		defer l.keys.mu.Unlock()
		lock := l.keys.held[key{"", name}]
		return lock != nil && lock.users > 1
	}
	for !waits() {
		select {
		case <-done:
			return func() {}
		default:
			runtime.Gosched()
		}
	}
	return func() { <-done }
}

// interleaving is a table in which somebody comes in between, once.
type interleaving struct {
	back *fakeBack
	l    *Live
	join func()
}

func newInterleaving(t *testing.T) *interleaving {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	newKernel(l, 1) // so that threads are processes
	return &interleaving{back, l, func() { t.Error("nobody came in between") }}
}

// atCommit lets steps of process 2 come before the next commit is in the log.
func (i *interleaving) atCommit(name string, steps ...string) {
	var done atomic.Bool
	i.back.commitErr = func(*TxnSpec) (error, bool) {
		if done.CompareAndSwap(false, true) {
			i.join = meanwhile(i.l, 2, name, steps...)
		}
		return nil, false
	}
}

// atPublishing lets them come before a data file is published.
func (i *interleaving) atPublishing(name string, steps ...string) {
	var done atomic.Bool
	i.back.at = func(point string) {
		if point == "before publishing" && done.CompareAndSwap(false, true) {
			i.join = meanwhile(i.l, 2, name, steps...)
		}
	}
}

// atLookup lets them come between the lookup of a name and the use of what was
// found.
func (i *interleaving) atLookup(name string, steps ...string) {
	var done atomic.Bool
	i.back.found = func(found string) {
		if found == name && done.CompareAndSwap(false, true) {
			i.join = meanwhile(i.l, 2, name, steps...)
		}
	}
}

// want checks that the table holds these files, each name once.
func (i *interleaving) want(t *testing.T, want map[string]string) {
	t.Helper()
	i.join()
	if err := i.l.SyncDir(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	got := i.back.contents(t)
	for name, letter := range want {
		if got[name] != string(content(letter)) {
			t.Errorf("%s holds %q, want %s", name, got[name], letter)
		}
	}
	if len(got) != len(want) {
		t.Errorf("table holds %q", got)
	}
	checkClosed(t, i.l, i.back)
}

var copyB = []string{"create g x.parquet", "write g B", "flush g", "close g"}

func TestNameTakenWhileItWasLookedUpIsNotMadeAgain(t *testing.T) {
	i := newInterleaving(t)
	i.atLookup("x.parquet", copyB...)
	if _, err := i.l.Create(context.Background(), Caller{PID: 1}, "", "x.parquet"); err != nil {
		t.Fatal(err)
	}
	i.join()
	k := newKernel(i.l, 1)
	k.run(t, "open h x.parquet; write h A; flush h; close h")
	i.want(t, map[string]string{"x.parquet": "A"})
}

func TestNameIsNotMadeWhileAFileIsMovedToIt(t *testing.T) {
	i := newInterleaving(t)
	k := newKernel(i.l, 1)
	k.run(t, "create h .t; write h A; flush h; close h")
	i.atCommit("x.parquet", copyB...)
	k.run(t, "rename .t x.parquet")
	i.want(t, map[string]string{"x.parquet": "A"})
}

func TestRefusedFileDoesNotTakeANameAgainThatAnotherHas(t *testing.T) {
	i := newInterleaving(t)
	k := newKernel(i.l, 1)
	k.run(t, "create h x.parquet; !misfit write h MISFIT")
	i.atLookup("x.parquet", "create g x.parquet", "write g B")
	k.run(t, "truncate h 0")
	i.join()
	k.run(t, "write h A; flush h; close h; stat x.parquet")
	if n, err := i.l.Lookup(context.Background(), Caller{PID: 3}, "", "x.parquet"); err != nil || n.File == nil {
		t.Errorf("the name means %+v, %v", n, err)
	}
	i.want(t, map[string]string{"x.parquet": "A"})
}

func TestUnlinkDuringARenameOfTheFileHidesNothing(t *testing.T) {
	i := newInterleaving(t)
	put(t, i.l, "x.parquet", "A")
	i.atCommit("x.parquet", "unlink x.parquet")
	newKernel(i.l, 1).run(t, "rename x.parquet y.parquet")
	i.join()
	if got := meaning(i.l, 3, "y.parquet"); got != "committed" {
		t.Errorf("the new name is %q", got)
	}
	put(t, i.l, "y.parquet", "C")
	i.want(t, map[string]string{"y.parquet": "C"})
}

func TestUnlinksInTheCommitOfAFileAreNotOvertaken(t *testing.T) {
	i := newInterleaving(t)
	put(t, i.l, "x.parquet", "A")
	k := newKernel(i.l, 1)
	k.run(t, "unlink x.parquet")
	i.back.commitErr = func(spec *TxnSpec) (error, bool) {
		i.join = func() {}
		if len(spec.removed()) == 1 && i.l.burst.flushing.TryLock() {
			i.l.burst.flushing.Unlock()
			t.Error("who wants everything unlinked does not wait for this commit")
		}
		return nil, false
	}
	put(t, i.l, "y.parquet", "B")
	i.want(t, map[string]string{"y.parquet": "B"})
}

func TestRenameOntoAFileThatCouldNotBeUnlinkedReplacesIt(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	put(t, l, "y.parquet", "B")
	newKernel(l, 2).run(t, "unlink y.parquet")
	back.commitErr = func(spec *TxnSpec) (error, bool) {
		if spec.Operation == "DELETE" {
			return errDisk, false
		}
		return nil, false
	}
	newKernel(l, 1).run(t, "rename x.parquet y.parquet")
	if got := back.contents(t); len(got) != 1 || got["y.parquet"] != string(content("A")) {
		t.Errorf("table holds %q", got)
	}
	checkClosed(t, l, back)
}

func TestNameUnlinkedWhileItWasLookedUpIsFree(t *testing.T) {
	i := newInterleaving(t)
	put(t, i.l, "x.parquet", "B")
	k := newKernel(i.l, 1)
	k.run(t, "create h .t; write h A; flush h; close h")
	newKernel(i.l, 2).run(t, "unlink x.parquet")
	i.atLookup("x.parquet", "syncdir")
	k.run(t, "rename .t x.parquet")
	i.want(t, map[string]string{"x.parquet": "A"})
	if spec := i.back.specs[len(i.back.specs)-1]; len(spec.Actions) != 1 {
		t.Errorf("the rename committed %+v", spec.Actions)
	}
}

func TestFileThatIsBeingCommittedIsNotDroppedWithItsOldName(t *testing.T) {
	for _, how := range []string{"rename .t x.parquet", "link h x.parquet"} {
		i := newInterleaving(t)
		k := newKernel(i.l, 1)
		k.run(t, "create h .t; write h A; create g .u; write g B; flush g; close g")
		i.atPublishing(".t", "rename .u .t")
		k.run(t, how+"; close h")
		i.join()
		if got := meaning(i.l, 3, ".u"); got != "" {
			t.Errorf("%s: the newcomer is still %q under its old name", how, got)
		}
		newKernel(i.l, 3).run(t, "read r .t; expect r B; close r; unlink .t")
		i.want(t, map[string]string{"x.parquet": "A"})
	}
}

func TestFileMovedOutOfTheTableTakesThePlaceOfAScratchFile(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 1)
	k.run(t, "create h .t; write h B; close h; rename x.parquet .t; read r .t; expect r A; close r")
	if got := l.Staging(); len(got) != 1 {
		t.Errorf("staging is %+v", got)
	}
	k.run(t, "unlink .t")
	checkClosed(t, l, back)
}

// A replacement by the same bytes commits nothing, which must not be taken for
// success when the file that has them is gone.
func TestReplacementOfAnUnlinkedFileByTheSameBytesIsLost(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 2)
	k.run(t, "open h x.parquet trunc; write h A")
	newKernel(l, 3).run(t, "unlink x.parquet")
	k.run(t, "!conflict flush h; close h")
	rejected, err := l.Rejected(context.Background())
	if err != nil || len(rejected) != 1 {
		t.Errorf("rejected are %+v, %v", rejected, err)
	}
	checkClosed(t, l, back)
}
