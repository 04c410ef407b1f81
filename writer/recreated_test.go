package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/deltafs/deltafs/snapshot"
)

// recreate removes everything in dir and makes a new table there.
func recreate(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	localTable(t, dir, actions{testProtocol(1, 2), testMetadata()})
}

func TestStagedFileDoesNotGetIntoATableMadeAgain(t *testing.T) {
	ctx := context.Background()
	data := tableFile(t, 1, 2, 3)
	for _, when := range []string{"while it is written", "when it is complete", "under a temporary name"} {
		t.Run(when, func(t *testing.T) {
			w, table, dir := openLiveTable(t, Options{})
			l := w.Live()
			first, name := data, "x.parquet"
			switch when {
			case "while it is written":
				first = data[:10]
			case "under a temporary name":
				name = ".x.tmp"
			}
			s, err := l.Create(ctx, Caller{PID: 1}, "", name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.WriteAt(ctx, first, 0); err != nil {
				t.Fatal(err)
			}
			recreate(t, dir)
			if name != "x.parquet" {
				s.CloseHandle(true)
				err = l.Rename(ctx, Caller{PID: 1}, "", name, "", "x.parquet", false)
			} else {
				_, err = s.WriteAt(ctx, data[len(first):], int64(len(first)))
				err = errors.Join(err, s.Flush(ctx))
			}
			if !errors.Is(err, ErrConflict) {
				t.Errorf("got %v, want ErrConflict", err)
			}
			if got := logVersions(t, dir); got != 1 {
				t.Errorf("the new table has %d commits, want 1", got)
			}
			if _, err := table.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
			l.Refreshed(ctx, snapshot.Event{Recreated: true})
			if err := copyIn(l, Caller{PID: 2}, "", "y.parquet", data); err != nil {
				t.Errorf("the new table cannot be written: %v", err)
			}
			if got := logVersions(t, dir); got != 2 {
				t.Errorf("the new table has %d commits, want 2", got)
			}
		})
	}
}

// logVersions is the number of commit files.
func logVersions(t *testing.T, dir string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "_delta_log", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// Somebody else's look at the log may have consumed the news that the table was
// made again, and the new one may have as many versions.
func TestCommitDecidedOnAnotherTableIsAConflict(t *testing.T) {
	l := newFakeLog(t, actions{testProtocol(1, 2), testMetadata()})
	c := newCommitter(l, Options{})
	spec := func(path string) *TxnSpec {
		return &TxnSpec{Operation: "WRITE", Incarnation: 0, Actions: actions{testAdd(path)}}
	}
	if _, err := c.commit(t.Context(), spec("a.parquet")); err != nil {
		t.Fatal(err)
	}
	l.life++
	if _, err := c.commit(t.Context(), spec("b.parquet")); !errors.Is(err, ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	if got := len(l.commits()); got != 2 {
		t.Errorf("the log has %d commits, want 2", got)
	}
}

// The file is published when its commit fails because the table was made
// again: a second attempt would add a file that is gone.
func TestPublishedFileIsNotCommittedToATableMadeAgain(t *testing.T) {
	back := newFakeBack(t)
	l := back.open(t, Options{})
	put(t, l, "x.parquet", "A")
	attempts := 0
	back.commitErr = func(*TxnSpec) (error, bool) {
		attempts++
		back.mu.Lock()
		defer back.mu.Unlock()
		last := back.versions[len(back.versions)-1]
		again := &fakeView{back: back, version: last.version + 1, meta: last.meta, life: last.life + 1}
		back.versions, back.log = append(back.versions, again), append(back.log, nil)
		return ErrConflict, false
	}
	newKernel(l, 2).run(t, "create h y.parquet; write h B; !conflict flush h; close h")
	if attempts != 1 {
		t.Errorf("%d attempts, want 1", attempts)
	}
}
