package fsnode

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// oddTable is partitioned by a string and has names that a URI must escape. Its
// newest version is 2.
func oddTable(t *testing.T, path string) *testTable {
	t.Helper()
	tab := makeTable(t, path, "p")
	for _, value := range []string{"1", "2"} {
		at := map[string]string{"p": value}
		tab.commit(tab.add("ab/part 100% a:b é.parquet", []byte("prefixed "+value), at),
			tab.add("p="+value+"/plain.parquet", []byte("plain "+value), at))
	}
	return tab
}

// asTable opens a directory as a Delta table and returns its only version.
func asTable(t *testing.T, dir string) *snapshot.Snapshot {
	t.Helper()
	st, err := store.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	table, err := snapshot.Open(t.Context(), st, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	spans, err := table.Versions(t.Context())
	if err != nil || len(spans) != 1 || spans[0].First != spans[0].Last {
		t.Fatalf("versions %v, %v", spans, err)
	}
	s, err := table.At(t.Context(), spans[0].First)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshotIsADeltaTableOfItsVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	oddTable(t, dir)
	m := mount(t, dir)
	for v, want := range map[int64][]string{
		0: nil,
		1: {"p=1/part 100% a:b é.parquet", "p=1/plain.parquet"},
	} {
		root := m.join(versionName(v))
		s := asTable(t, root)
		if s.Version() != v {
			t.Errorf("@v%d is version %d", v, s.Version())
		}
		var found []string
		for f, err := range s.Files(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			shown := filepath.Join(root, f.Dir, f.Name)
			found = append(found, filepath.Join(f.Dir, f.Name))
			if st := lstatOf(t, shown); st.Size != f.Size {
				t.Errorf("%s: size %d, stat says %d", f.Path, f.Size, st.Size)
			}
			r, err := s.Table().Open(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, f.Size)
			if _, err := r.ReadAt(got, 0); err != nil || string(got) != string(m.read(versionName(v), f.Dir, f.Name)) {
				t.Errorf("%s reads %q, %v", f.Path, got, err)
			}
			r.Close()
		}
		if !slices.Equal(found, want) {
			t.Errorf("@v%d has %q", v, found)
		}
		at, ok, err := s.Table().CommitTime(t.Context(), v)
		if when := epoch.Add(time.Duration(v) * time.Hour); err != nil || !ok || !at.Equal(when) {
			t.Errorf("@v%d was committed at %v, %v", v, at, err)
		}
	}
}

func TestLogOfASnapshotIsHiddenAndReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	log := filepath.Join("@v1", logDir)
	if got := m.names("@v1"); slices.Contains(got, logDir) {
		t.Errorf("@v1 lists %v", got)
	}
	if got := m.names(log); !slices.Equal(got, []string{
		"00000000000000000001.checkpoint.parquet", "00000000000000000001.json", "_last_checkpoint",
	}) {
		t.Errorf("the log lists %v", got)
	}
	for _, name := range m.names(log) {
		st := lstatOf(t, m.join(log, name))
		if got := m.read(log, name); int64(len(got)) != st.Size || st.Size == 0 {
			t.Errorf("%s has %d bytes, stat says %d", name, len(got), st.Size)
		}
		if st.Mtim.Sec != epoch.Add(time.Hour).Unix() {
			t.Errorf("%s: mtime %v", name, st.Mtim)
		}
	}
	commit := m.join(log, "00000000000000000001.json")
	for what, err := range map[string]error{
		"create":   write(m.join(log, "00000000000000000002.json"), []byte("x")),
		"write":    write(commit, []byte("x")),
		"append":   func() error { _, err := os.OpenFile(commit, os.O_WRONLY|os.O_APPEND, 0); return err }(),
		"mkdir":    os.Mkdir(m.join(log, "d"), 0o755),
		"unlink":   unix.Unlink(commit),
		"rename":   os.Rename(commit, m.join(log, "x")),
		"truncate": os.Truncate(commit, 0),
		"mkdir it": os.Mkdir(m.join("@v1", logDir, "_commits"), 0o755),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, missing := range []string{log + "/00000000000000000000.json", log + "/00000000000000000002.json", "@v1/p=1/" + logDir} {
		if _, err := os.Lstat(m.join(missing)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", missing, err)
		}
	}
	if _, err := os.Lstat(m.join("current", logDir)); !errors.Is(err, syscall.EPERM) {
		t.Errorf("in current/: %v", err)
	}
}

func TestLogOfARefusedVersionSaysWhy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	tab.commit(map[string]any{"protocol": map[string]any{"minReaderVersion": 3, "minWriterVersion": 7,
		"readerFeatures": []string{"timeTravelByMoon"}, "writerFeatures": []string{"timeTravelByMoon"}}})
	m := mount(t, dir)
	if _, err := os.ReadDir(m.join("@v3", logDir)); !errors.Is(err, syscall.ENOTSUP) {
		t.Errorf("got %v", err)
	}
	if got := string(m.read(".delta/errors.jsonl")); !strings.Contains(got, "timeTravelByMoon") {
		t.Errorf("errors.jsonl: %s", got)
	}
}
