package fsnode

import (
	"bytes"
	"errors"
	"net/url"
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
		tab.commit(tab.addEncoded("ab/part 100% a:b é "+value+".parquet", rowFile(3, "prefixed "+value), at),
			tab.add("p="+value+"/plain.parquet", rowFile(4, "plain "+value), at))
	}
	return tab
}

// addEncoded is add for a path that has to be encoded in the log.
func (tab *testTable) addEncoded(path string, data []byte, values map[string]string) map[string]any {
	action := tab.add(path, data, values)
	action["add"].(map[string]any)["path"] = (&url.URL{Path: path}).EscapedPath()
	return action
}

func shownAsTable(o *Options) { o.View = snapshot.ViewTable }

// checkFiles compares the files of a version of a table with what a mount shows
// under their names, and returns the names.
func checkFiles(t *testing.T, s *snapshot.Snapshot, root string, name func(snapshot.File) string) (found []string) {
	t.Helper()
	for f, err := range s.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, name(f))
		shown, err := os.ReadFile(filepath.Join(root, name(f)))
		if err != nil || int64(len(shown)) != f.Size {
			t.Errorf("%s: the mount shows %d bytes, the table says %d; %v", f.Path, len(shown), f.Size, err)
		}
		r, err := s.Table().Open(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, f.Size)
		if _, err := r.ReadAt(got, 0); err != nil || !bytes.Equal(got, shown) {
			t.Errorf("%s reads other bytes, %v", f.Path, err)
		}
		r.Close()
	}
	return found
}

// asTable opens a directory as a Delta table and returns its newest version.
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
	s, err := table.At(t.Context(), table.Latest())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshotIsADeltaTableOfItsVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	oddTable(t, dir)
	m := mount(t, dir, shownAsTable)
	for v, want := range map[int64][]string{
		0: nil,
		1: {"p=1/part 100% a:b é 1.parquet", "p=1/plain.parquet"},
	} {
		root := m.join(versionName(v))
		s := asTable(t, root)
		spans, err := s.Table().Versions(t.Context())
		if err != nil || len(spans) != 1 || spans[0].First != v || spans[0].Last != v {
			t.Errorf("@v%d has the versions %v, %v", v, spans, err)
		}
		if found := checkFiles(t, s, root, func(f snapshot.File) string { return filepath.Join(f.Dir, f.Name) }); !slices.Equal(found, want) {
			t.Errorf("@v%d has %q", v, found)
		}
		at, ok, err := s.Table().CommitTime(t.Context(), v)
		if when := epoch.Add(time.Duration(v) * time.Hour); err != nil || !ok || !at.Equal(when) {
			t.Errorf("@v%d was committed at %v, %v", v, at, err)
		}
	}
}

// Where files are shown as they lie in storage, the log is the table's own.
func TestLogOfARawSnapshotIsTheTablesCutAtTheVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := oddTable(t, dir)
	checkpoint(t, dir) // of version 2
	tab.commit()
	dv := "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"
	for _, name := range []string{"ab/" + dv, "zz/" + dv, "cd/orphan.parquet", logDir + "/00000000000000000001.crc", logDir + "/_sidecars/x.parquet"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	m := mount(t, dir)
	commits := []string{"00000000000000000000.json", "00000000000000000001.json"}
	if got := m.names("@v1", logDir); !slices.Equal(got, []string{commits[0], "00000000000000000001.crc", commits[1], "_sidecars"}) {
		t.Errorf("the log of @v1: %v", got)
	}
	if got := m.names("@v2", logDir); !slices.Contains(got, "00000000000000000002.checkpoint.parquet") || slices.Contains(got, nameHint) {
		t.Errorf("the log of @v2: %v", got)
	}
	for i, name := range commits {
		raw, err := os.ReadFile(filepath.Join(dir, logDir, name))
		if err != nil || !bytes.Equal(raw, m.read("@v1", logDir, name)) {
			t.Errorf("%s is not the table's, %v", name, err)
		}
		if st := lstatOf(t, m.join("@v1", logDir, name)); st.Mtim.Sec != epoch.Add(time.Duration(i)*time.Hour).Unix() {
			t.Errorf("%s: mtime %v", name, st.Mtim)
		}
	}
	s := asTable(t, m.join("@v1"))
	stored := func(f snapshot.File) string { return snapshot.CanonicalPath(f.Path, "/") }
	if got := checkFiles(t, s, m.join("@v1"), stored); s.Version() != 1 || !slices.Equal(got, []string{"ab/part 100% a:b é 1.parquet", "p=1/plain.parquet"}) {
		t.Errorf("@v1 is version %d with %q", s.Version(), got)
	}
	if got := string(m.read("@v1/ab", dv)); got != "x" {
		t.Errorf("a deletion vector reads %q", got)
	}
	one, two := lstatOf(t, m.join("@v1/ab/part 100% a:b é 1.parquet")), lstatOf(t, m.join("@v1/p=1/part 100% a:b é 1.parquet"))
	if one.Ino != two.Ino {
		t.Error("a file has another inode by its path in storage")
	}
	for _, missing := range []string{
		logDir + "/00000000000000000002.json", logDir + "/00000000000000000002.checkpoint.parquet", logDir + "/" + nameHint,
		logDir + "/x", logDir + "/_sidecars/y", "ab/part 100% a:b é 2.parquet", "ab/x", "cd/orphan.parquet", "cd", "zz/" + dv, "ef", "p=2",
	} {
		if _, err := os.Lstat(m.join("@v1", missing)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", missing, err)
		}
	}
	if got := m.names("@v1"); !slices.Equal(got, []string{"p=1"}) {
		t.Errorf("@v1 lists %v", got)
	}
	for what, err := range map[string]error{
		"create": write(m.join("@v1/ab/x.parquet"), []byte("x")),
		"log":    write(m.join("@v1", logDir, "00000000000000000002.json"), []byte("x")),
		"write":  write(m.join("@v1", logDir, commits[0]), []byte("x")),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestLogOfASnapshotIsHiddenAndReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir, shownAsTable)
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
