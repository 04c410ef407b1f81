package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

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
		if _, err := os.Stat(filepath.Join(back.root, back.object(1))); err != nil {
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
