package writer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
)

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
	if len(actions) != 1 || !ok || add.DataChange || add.Path != back.object(1) {
		t.Errorf("the rename committed %+v", actions)
	}
}

func TestWritingToWhatWasMovedOutLeavesOldVersionsAlone(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	k := newKernel(l, 1)
	k.run(t, "rename x.parquet x.bak; open h x.bak; write h B 0 half; truncate h half; truncate h 0; write h B; flush h; expect h B; close h")
	old, err := os.ReadFile(filepath.Join(back.root, back.object(1)))
	if err != nil || string(old) != string(content("A")) {
		t.Fatalf("version 1 holds %q, %v", old, err)
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

func TestSecondNameOfAReplacementReplacesNothing(t *testing.T) {
	const linked = "open h x.parquet trunc; write h B 0 half; link h .t; "
	for script, want := range map[string]map[string]string{
		// Its bytes become another file, and x is what it was.
		linked + "write h B half; rename .t y.parquet; close h": {"x.parquet": "A", "y.parquet": "B"},
		linked + "write h B half; link h y.parquet; close h":    {"x.parquet": "A", "y.parquet": "B"},
		// Somebody else takes the second name, which is scratch.
		linked + "create g .u; write g C; rename .u .t; flush g; close g; !incomplete flush h; close h": {"x.parquet": "A"},
	} {
		back := newFakeBack(t)
		l := back.open(t, Options{})
		put(t, l, "x.parquet", "A")
		k := newKernel(l, 2)
		k.run(t, script)
		if got := meaning(l, 2, "x.parquet"); got != "committed" {
			t.Errorf("%s: the name is %q", script, got)
		}
		got := back.contents(t)
		for name, letter := range want {
			if got[name] != string(content(letter)) {
				t.Errorf("%s: %s holds %q, want %s", script, name, got[name], letter)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: table holds %q", script, got)
		}
	}
}
