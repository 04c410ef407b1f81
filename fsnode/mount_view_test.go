package fsnode

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/deltafs/deltafs/snapshot"
)

func showTable(o *Options) { o.View = snapshot.ViewTable }

// viewTable has a file that is served as it is, and from version 2 on, when the
// table gets another column, with that one; and one that is damaged.
func viewTable(t *testing.T) (path string, data []byte) {
	t.Helper()
	tab := makeTable(t, t.TempDir()+"/t")
	data = rowFile(1000, "a")
	broken := bytes.Clone(data)
	copy(broken[len(broken)-8:], "\xff\xff\xff\x7fPAR1")
	tab.commit(tab.add("a.parquet", data, nil), tab.add("broken.parquet", broken, nil)) // 1
	more := strings.Replace(rowSchema, `"fields":[`, `"fields":[{"name":"more","type":"string","nullable":true,"metadata":{}},`, 1)
	for _, schema := range []string{more, rowSchema} { // 2 and 3
		tab.commit(map[string]any{"metaData": map[string]any{
			"id": "view", "format": map[string]any{"provider": "parquet", "options": map[string]any{}},
			"schemaString": schema, "partitionColumns": []string{}, "configuration": map[string]any{},
		}})
	}
	return tab.path, data
}

func TestFilesAreShownAsTheTableHasThem(t *testing.T) {
	path, data := viewTable(t)
	m := mount(t, path, showTable)
	one, two, three := m.join("@v1", "a.parquet"), m.join("@v2", "a.parquet"), m.join("@v3", "a.parquet")
	if st := lstatOf(t, one); st.Size != int64(len(data)) || lstatOf(t, three) != st {
		t.Errorf("%d bytes and %d of a file that is served as it is", st.Size, lstatOf(t, three).Size)
	}
	if !bytes.Equal(m.read("@v1", "a.parquet"), data) {
		t.Error("a file that is served as it is has other bytes")
	}
	st := lstatOf(t, two)
	shown := m.read("@v2", "a.parquet")
	if int64(len(shown)) != st.Size || st.Ino == lstatOf(t, one).Ino {
		t.Errorf("read %d bytes of %d, inode %x", len(shown), st.Size, st.Ino)
	}
	if bytes.Equal(shown, data) || !bytes.Contains(shown, []byte("more")) {
		t.Error("the new column is missing")
	}
	for _, at := range []int{0, 3, len(data) / 2, len(shown) - 70_000, len(shown) - 9} {
		part := make([]byte, min(64<<10, len(shown)-max(at, 0)))
		f, err := os.Open(two)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(part, int64(max(at, 0))); err != nil || !bytes.Equal(part, shown[max(at, 0):max(at, 0)+len(part)]) {
			t.Errorf("from %d: %v", at, err)
		}
		f.Close()
	}
	raw := mount(t, path)
	if !bytes.Equal(raw.read("@v2", "a.parquet"), data) {
		t.Error("shown raw, a file has other bytes than in storage")
	}
}

func TestAListingReadsNoFooters(t *testing.T) {
	path, _ := viewTable(t)
	m := mount(t, path, showTable)
	inc := m.fs.table("").present()
	s, err := inc.snap.At(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	sized := func(name string) bool {
		e, err := s.Lookup(t.Context(), "", name)
		if err != nil {
			t.Fatal(err)
		}
		_, ok := inc.snap.KnownSize(*e.File)
		return ok
	}
	if got := strings.Join(m.names("@v2"), " "); got != "a.parquet broken.parquet" || sized("a.parquet") {
		t.Errorf("listed %s, sized %t", got, sized("a.parquet"))
	}
	lstatOf(t, m.join("@v2", "a.parquet"))
	if !sized("a.parquet") {
		t.Error("not sized after stat")
	}
}

func TestInodesOfAListingAreThoseOfStat(t *testing.T) {
	path, _ := viewTable(t)
	m := mount(t, path, showTable)
	for _, dir := range []string{"@v1", "@v2", "current"} {
		out, err := run(t, "ls", "-i1", m.join(dir))
		if err != nil {
			t.Fatal(out, err)
		}
		listed, err := run(t, "find", m.join(dir), "-type", "f", "-printf", "%i %f\n")
		if err != nil {
			t.Fatal(listed, err)
		}
		for line := range strings.Lines(out) {
			if !strings.Contains(listed, strings.TrimSpace(line)) {
				t.Errorf("%s lists %q, stat says %q", dir, line, listed)
			}
		}
	}
}

func TestADamagedFileIsListedAndDoesNotOpen(t *testing.T) {
	path, data := viewTable(t)
	m := mount(t, path, showTable)
	for range 2 {
		if st := lstatOf(t, m.join("@v1", "broken.parquet")); st.Size != int64(len(data)) {
			t.Errorf("it has %d bytes", st.Size)
		}
		if _, err := os.Open(m.join("@v1", "broken.parquet")); !errors.Is(err, syscall.EIO) {
			t.Errorf("opened: %v", err)
		}
	}
	if got := string(m.read(".delta", "errors.jsonl")); !strings.Contains(got, "broken.parquet") {
		t.Errorf("the errors are %s", got)
	}
	// Once it is repaired, its size is that of what is served.
	more := rowFile(1001, "b")
	if err := os.WriteFile(path+"/broken.parquet", more, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := m.read("@v1", "broken.parquet"); !bytes.Equal(got, more) {
		t.Errorf("read %d bytes", len(got))
	}
	if st := lstatOf(t, m.join("@v1", "broken.parquet")); st.Size != int64(len(more)) {
		t.Errorf("it has %d bytes after the repair", st.Size)
	}
}

func TestWritingWhatIsShownCommitsNothing(t *testing.T) {
	tab := makeTable(t, t.TempDir()+"/t", "p")
	data := rowFile(1000, "a")
	tab.commit(tab.add("a.parquet", data, map[string]string{"p": "1"}))
	m := mount(t, tab.path, showTable, func(o *Options) { o.FillPartitions = true })
	shown := m.read("current", "p=1", "a.parquet")
	if bytes.Equal(shown, data) {
		t.Fatal("the file has no partition column")
	}
	for what, bytes := range map[string][]byte{"shown": shown, "in storage": data} {
		if err := write(m.join("current", "p=1", "a.parquet"), bytes); err != nil || m.latest() != "@v1" {
			t.Errorf("written as it is %s: %v, %s", what, err, m.latest())
		}
	}
	if err := os.Rename(m.join("current", "p=1", "a.parquet"), m.join("current", "p=1", "b.parquet")); err != nil || m.latest() != "@v2" {
		t.Errorf("renamed: %v, %s", err, m.latest())
	}
	if got := m.read("current", "p=1", "b.parquet"); !bytes.Equal(got, shown) {
		t.Error("renamed, it is another file")
	}
}
