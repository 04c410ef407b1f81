package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// rejectedNames are the names that the rejected files were dropped under.
func rejectedNames(t *testing.T, l *Live) string {
	t.Helper()
	files, err := l.Rejected(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, f.Wanted)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// stagedFiles counts the files in the staging areas of a table.
func stagedFiles(t *testing.T, root string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, areaDir, mountsDir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range found {
		if isSlot(filepath.Base(name)) {
			n++
		}
	}
	return n
}

func TestOldestOfManyUnfinishedFilesAreRejected(t *testing.T) {
	back := newFakeBack(t)
	var reports []string
	l := back.open(t, Options{Report: func(op, name string, err error) {
		if !errors.Is(err, ErrIncomplete) {
			t.Errorf("reported %v", err)
		}
		reports = append(reports, op+" "+name)
	}})
	l.unfinished.stop() // the test sweeps itself
	k := newKernel(l, 1)
	for _, name := range []string{"c", "a", "d", "b"} {
		k.run(t, "create h "+name+".parquet; write h A 0 half; !incomplete flush h; close h")
	}
	l.unfinished.stopped, l.unfinished.most = false, 2
	l.unfinished.sweep()
	l.unfinished.sweep() // changes nothing
	if got := strings.Join(reports, ", "); got != "reject c.parquet, reject a.parquet" {
		t.Errorf("reported: %s", got)
	}
	if got := rejectedNames(t, l); got != "a.parquet c.parquet" {
		t.Errorf("rejected are %s", got)
	}
	k.run(t, "!noent stat a.parquet; !noent stat c.parquet; append h b.parquet; write h A half; flush h; close h")
	if got := back.contents(t); len(got) != 1 || got["b.parquet"] == "" {
		t.Errorf("the table has %v", got)
	}
	k.run(t, "unlink d.parquet")
	if n := stagedFiles(t, back.root); n != 0 || rejectedNames(t, l) != "a.parquet c.parquet" {
		t.Errorf("%d files are staged, rejected are %s", n, rejectedNames(t, l))
	}
	for _, name := range []string{"a", "c"} {
		bytes, err := os.ReadFile(filepath.Join(back.root, areaDir, rejectedDir, name+".parquet"))
		if whole := content("A"); err != nil || string(bytes) != string(whole[:len(whole)/2]) {
			t.Errorf("%s: kept are %q, %v", name, bytes, err)
		}
	}
}

func TestOldUnfinishedFilesAreRejected(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	k := newKernel(l, 1)
	k.run(t, "create h old.parquet; write h B; flush h; close h")
	back.commitErr = func(*TxnSpec) (error, bool) { return errDisk, false }
	k.run(t, "create h whole.parquet; write h A; !disk flush h; close h")
	k.run(t, "create h half.parquet; write h A 0 half; close h; create h empty.parquet; close h")
	k.run(t, "open h old.parquet trunc; write h A 0 half; close h")
	k.run(t, "create h x.parquet.tmp; write h A; close h; create open opened.parquet; write open A 0 half")
	l.unfinished.sweep()
	if got := rejectedNames(t, l); got != "" {
		t.Errorf("rejected before their time: %s", got)
	}
	l.unfinished.ttl = 0
	l.unfinished.sweep()
	got := strings.Fields(rejectedNames(t, l))
	if len(got) != 3 || !strings.HasPrefix(got[0], ".old.parquet.") || got[1] != "half.parquet" || got[2] != "whole.parquet" {
		t.Errorf("rejected are %s", got)
	}
	k.run(t, "!noent stat half.parquet; !noent stat whole.parquet; !noent stat empty.parquet; stat old.parquet")
	k.run(t, "stat x.parquet.tmp")
	back.commitErr = nil
	k.run(t, "write open A half; flush open; close open; create h half.parquet; write h C; flush h; close h")
	if got := back.contents(t); len(got) != 3 || got["opened.parquet"] == "" || got["half.parquet"] == "" {
		t.Errorf("the table has %v", got)
	}
}

func TestClosingUnfinishedFilesBoundsThem(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	l.unfinished.most = 3
	k := newKernel(l, 1)
	for _, name := range strings.Fields("a b c d e f g") {
		k.run(t, "create h "+name+".parquet; write h A 0 half; !incomplete flush h; close h")
	}
	for deadline := time.Now().Add(10 * time.Second); rejectedNames(t, l) != "a.parquet b.parquet c.parquet d.parquet"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("rejected are %s", rejectedNames(t, l))
		}
	}
	if n := stagedFiles(t, back.root); n != 3 {
		t.Errorf("%d files are staged", n)
	}
}
