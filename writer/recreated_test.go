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
