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
	"github.com/deltafs/deltafs/snapshot"
)

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
	gone, _, _ := back.versions[2].ByPath(ctx, back.object(2))
	k.run(t, "unlink gone.parquet")
	back.foreign(t, &TxnSpec{Actions: []action.Action{back.adds[gone.ID].ToRemove(1, true)}})
	before := back.commits()
	k.run(t, "syncdir")
	if len(reports) != 0 || back.commits() != before {
		t.Errorf("reports %q, %d commits", reports, back.commits()-before)
	}
	// Another writer moved the rows elsewhere: they must not stay by accident.
	file, _, _ := back.versions[3].ByPath(ctx, back.object(1))
	k.run(t, "unlink compacted.parquet")
	moved := *back.adds[file.ID]
	moved.Path, moved.DataChange = "part-1.parquet.2", false
	if err := os.Link(filepath.Join(back.root, file.Path), filepath.Join(back.root, moved.Path)); err != nil {
		t.Fatal(err)
	}
	back.foreign(t, &TxnSpec{Actions: []action.Action{back.adds[file.ID].ToRemove(1, false), &moved}})
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

func TestNameRemovedByAnotherWriterResolvesForAWhile(t *testing.T) {
	ctx := context.Background()
	for _, grace := range []time.Duration{time.Hour, 0} {
		back := newFakeBack(t)
		l := back.open(t, Options{Grace: grace})
		put(t, l, "x.parquet", "A")
		put(t, l, "y.parquet", "B")
		newKernel(l, 1).run(t, "unlink y.parquet; syncdir")
		f, _, _ := back.versions[1].ByPath(ctx, back.object(1))
		back.foreign(t, &TxnSpec{Actions: []action.Action{back.adds[f.ID].ToRemove(1, true)}})
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
