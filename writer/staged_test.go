package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/fault"
)

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
		var cause *os.PathError
		if !errors.As(first, &cause) || fault.Hint(first) == "" {
			t.Fatalf("the write says %v", first)
		}
		for _, step := range []string{"write h B half", "flush h", "sync h", "write h B"} {
			if err := k.step(strings.Fields(step)); !errors.Is(err, first) {
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
