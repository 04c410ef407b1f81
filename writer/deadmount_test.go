package writer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// leaveDead makes what a dead mount leaves: staged files and notes.
func leaveDead(t *testing.T, dir, notes string, staged map[slot]string) {
	t.Helper()
	mount := filepath.Join(dir, areaDir, mountsDir, "dead")
	if err := os.MkdirAll(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{lockFile: "", notesFile: notes}
	for name, text := range staged {
		files[string(name)] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(mount, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// slotOf is the slot that a committed file had.
func slotOf(t *testing.T, path string, base int64) slot {
	t.Helper()
	id, _, ok := dataID([]byte(path))
	if !ok {
		t.Fatalf("%s is no data file of ours", path)
	}
	return slot(fmt.Sprintf("s%d-%s", base, id))
}

// A power failure may take the notes or a part of them: the name of a staged
// file alone finds its commit, and its bytes are kept if there is none.
func TestInterruptedCommitIsFoundInTheLogWithAndWithoutNotes(t *testing.T) {
	ctx := context.Background()
	for name, cut := range map[string]func(string) string{
		"noted":     func(s string) string { return s },
		"lost":      func(string) string { return "" },
		"truncated": func(s string) string { return s[:len(s)/2] },
		"zeroed":    func(s string) string { return strings.Repeat("\x00", len(s)) },
		"garbage in front": func(s string) string {
			return "{\"slot\":3}\n{\n\n" + s
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, dir := openLiveTable(t, Options{})
			var paths []string
			for _, name := range []string{"kept.parquet", "gone.parquet"} {
				if err := copyIn(w.Live(), Caller{PID: 1}, "", name, tableFile(t, int64(len(paths)))); err != nil {
					t.Fatal(err)
				}
				n, err := w.Live().Lookup(ctx, Caller{}, "", name)
				if err != nil {
					t.Fatal(err)
				}
				paths = append(paths, n.File.Path)
			}
			newKernel(w.Live(), 1).run(t, "unlink gone.parquet; syncdir") // it is in the log no more, but was
			kept, gone, lost := slotOf(t, paths[0], 0), slotOf(t, paths[1], 1), newSlot(0)
			published := dataFile("", lost.id(), ".zstd")
			if err := os.WriteFile(filepath.Join(dir, published), []byte("lost bytes"), 0o644); err != nil {
				t.Fatal(err)
			}
			notes := ""
			for s, name := range map[slot]string{kept: "kept.parquet", gone: "gone.parquet", lost: "lost.parquet"} {
				notes += fmt.Sprintf("{\"slot\":%q,\"dir\":\"\",\"name\":%q}\n", s, name)
			}
			leaveDead(t, dir, cut(notes), map[slot]string{kept: "kept bytes", gone: "gone bytes", lost: "lost bytes"})
			next, err := Open(ctx, openTable(t, dir), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer next.Close(ctx)
			rejected, err := next.Live().Rejected(ctx)
			if err != nil || len(rejected) != 1 {
				t.Fatalf("rejected are %+v, %v", rejected, err)
			}
			if data, err := os.ReadFile(rejected[0].Path); err != nil || string(data) != "lost bytes" {
				t.Errorf("kept are %q, %v", data, err)
			}
			if (name == "noted" || name == "garbage in front") && rejected[0].Wanted != "lost.parquet" {
				t.Errorf("kept under %q", rejected[0].Wanted)
			}
			for _, path := range paths {
				if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
					t.Errorf("a committed data file: %v", err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, published)); err == nil {
				t.Error("the data file that was not committed is still there")
			}
		})
	}
}

// Notes lie about in the table for everybody to write.
func TestNotesCannotHaveAnotherFileDeleted(t *testing.T) {
	ctx := context.Background()
	w, _, dir := openLiveTable(t, Options{})
	if err := copyIn(w.Live(), Caller{PID: 1}, "", "x.parquet", tableFile(t, 1)); err != nil {
		t.Fatal(err)
	}
	n, err := w.Live().Lookup(ctx, Caller{}, "", "x.parquet")
	if err != nil {
		t.Fatal(err)
	}
	lost := newSlot(0)
	for _, object := range []string{n.File.Path, "_delta_log/" + lost.id() + ".parquet", areaDir + "/" + dataFile("", lost.id(), "")} {
		notes := fmt.Sprintf("{\"slot\":%q,\"name\":\"y.parquet\",\"object\":%q}\n", lost, object)
		leaveDead(t, dir, notes, map[slot]string{lost: "bytes"})
		for _, victim := range []string{"_delta_log/" + lost.id() + ".parquet", areaDir + "/" + dataFile("", lost.id(), "")} {
			if err := os.WriteFile(filepath.Join(dir, victim), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		next, err := Open(ctx, openTable(t, dir), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, object)); err != nil {
			t.Errorf("%s: %v", object, err)
		}
		next.Close(ctx)
	}
}

// When commits were cleaned up meanwhile, what the newest version holds was
// committed, and of the rest nobody can tell.
func TestInterruptedCommitWithoutItsCommitFile(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	live, unknown := newSlot(1), newSlot(1)
	localTable(t, dir, firstVersion(), actions{testAdd("a.parquet")}, actions{testAdd(dataFile("", live.id(), ""))},
		actions{testAdd("b.parquet")})
	table := openTable(t, dir)
	if _, err := table.At(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "_delta_log", "00000000000000000002.json")); err != nil {
		t.Fatal(err)
	}
	for _, s := range []slot{live, unknown} {
		if err := os.WriteFile(filepath.Join(dir, dataFile("", s.id(), "")), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	leaveDead(t, dir, "", map[slot]string{live: "live bytes", unknown: "unknown bytes"})
	w, err := Open(ctx, table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(ctx)
	rejected, err := w.Live().Rejected(ctx)
	if err != nil || len(rejected) != 1 || !strings.Contains(rejected[0].Reason, "no longer tells") {
		t.Fatalf("rejected are %+v, %v", rejected, err)
	}
	if data, err := os.ReadFile(rejected[0].Path); err != nil || string(data) != "unknown bytes" {
		t.Errorf("kept are %q, %v", data, err)
	}
	for _, s := range []slot{live, unknown} {
		if _, err := os.Stat(filepath.Join(dir, dataFile("", s.id(), ""))); err != nil {
			t.Errorf("a data file that may be committed: %v", err)
		}
	}
}

func TestSearchTextFindsIDsAcrossItsPieces(t *testing.T) {
	one, other := uuid.NewString(), uuid.NewString()
	for _, at := range []int{0, 1, 64<<10 - 50, 64<<10 - 47, 64<<10 - 1, 64 << 10, 200_000} {
		for _, after := range []int{0, 1, 100_000} {
			text := strings.Repeat("p", at) + dataFile("", one, "") + strings.Repeat("part-00000-", after/11)
			found := map[string]bool{}
			if err := searchText(strings.NewReader(text), map[string]bool{one: true, other: true}, found); err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || !found[one] {
				t.Errorf("at %d, %d after it: found %v", at, after, found)
			}
		}
	}
}

func TestNotesAreRewrittenWhenTheyOutgrowWhatIsNeeded(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	n := newNotes(dir)
	defer n.close()
	kept := newSlot(7)
	if err := n.put(kept, stagedMeta{Dir: "k=1", Name: "kept.parquet"}); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		s := newSlot(8)
		if err := n.put(s, stagedMeta{Name: strings.Repeat("x", 200)}); err != nil {
			t.Fatal(err)
		}
		n.drop(s)
	}
	info, err := dir.Stat(notesFile)
	if err != nil || info.Size() > notesSlack+1000 {
		t.Errorf("the notes have %d bytes, %v", info.Size(), err)
	}
	last := newSlot(9)
	if err := n.put(last, stagedMeta{Name: "last.parquet", Object: "o"}); err != nil {
		t.Fatal(err)
	}
	got := readNotes(dir, map[slot]bool{kept: true, last: true})
	if len(got) != 2 || got[kept] != (stagedMeta{Dir: "k=1", Name: "kept.parquet"}) || got[last] != (stagedMeta{Name: "last.parquet", Object: "o"}) {
		t.Errorf("read %+v", got)
	}
}
