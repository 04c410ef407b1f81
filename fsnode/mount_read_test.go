package fsnode

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// threeVersions makes a table whose version 2 shares one file with version 1
// and has replaced another.
func threeVersions(t *testing.T, path string) *testTable {
	t.Helper()
	tab := makeTable(t, path, "p")
	one := map[string]string{"p": "1"}
	tab.commit(
		tab.add("p=1/a.parquet", []byte("file a"), one),
		tab.add("p=1/b.parquet", []byte("file b, first"), one))
	tab.commit(tab.remove("p=1/b.parquet"), tab.add("p=2/c.parquet", bytes.Repeat([]byte("c"), 3<<20), map[string]string{"p": "2"}))
	return tab
}

func TestTreeOfATable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	want := []string{".delta", ".stage", "@2024-05-01T10-00-00.000Z", "@2024-05-01T11-00-00.000Z", "@2024-05-01T12-00-00.000Z",
		"@v0", "@v1", "@v2", "current", "latest"}
	if got := m.names(); !slices.Equal(got, want) {
		t.Errorf("root: %v", got)
	}
	for link, want := range map[string]string{
		"latest": "@v2", "@2024-05-01T11-00-00.000Z": "@v1", "@2024-05-01T10:59:59Z": "@v0",
		"@2024-05-01 13:30:00": "@v2", "@20240501110000000": "@v1", "@2024-05-02": "@v2",
	} {
		if got, err := os.Readlink(m.join(link)); got != want {
			t.Errorf("%s -> %q, %v", link, got, err)
		}
	}
	for _, dir := range []string{"latest", "@v2", "current", "@2024-05-01T12-00-00.000Z"} {
		if got := m.names(dir); !slices.Equal(got, []string{"p=1", "p=2"}) {
			t.Errorf("%s: %v", dir, got)
		}
	}
	if got := m.names("@v1", "p=1"); !slices.Equal(got, []string{"a.parquet", "b.parquet"}) {
		t.Errorf("@v1/p=1: %v", got)
	}
	if got := string(m.read("@v1", "p=1", "b.parquet")); got != "file b, first" {
		t.Errorf("removed file reads %q", got)
	}
	for _, missing := range []string{"@v3", "@v007", "@v-1", "@V1", "@2024-05-01", "@2999-01-01", "x", "@v1/p=2", "@v2/p=1/b.parquet", "@v1/p=1/_delta_log"} {
		if _, err := os.Lstat(m.join(missing)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", missing, err)
		}
	}
}

func TestListedVersionsAreLimited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	for limit, want := range map[ListVersions][]string{ListNone: nil, 2: {"@v1", "@v2"}, ListAll: {"@v0", "@v1", "@v2"}} {
		m := mount(t, dir, func(o *Options) { o.ListVersions = &limit; o.ReadOnly = true })
		var got []string
		for _, n := range m.names() {
			if strings.HasPrefix(n, "@v") {
				got = append(got, n)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v", limit, got)
		}
		if got := m.names("@v0"); len(got) != 0 {
			t.Errorf("an unlisted version does not resolve: %v", got)
		}
		m.close()
	}
}

func TestOneDataFileIsOneInode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	v1, v2 := lstatOf(t, m.join("@v1/p=1/a.parquet")), lstatOf(t, m.join("@v2/p=1/a.parquet"))
	live := lstatOf(t, m.join("current/p=1/a.parquet"))
	if v1.Ino != v2.Ino || v1.Ino != live.Ino {
		t.Errorf("inodes %d, %d, %d", v1.Ino, v2.Ino, live.Ino)
	}
	if v1.Nlink != 2 || v1.Size != 6 || v1.Mtim.Sec != epoch.Add(time.Hour).Unix() {
		t.Errorf("nlink %d, size %d, mtime %v", v1.Nlink, v1.Size, v1.Mtim)
	}
	if b := lstatOf(t, m.join("@v1/p=1/b.parquet")); b.Ino == v1.Ino {
		t.Error("two files have one inode")
	}
	for version, want := range map[string]time.Time{"@v0": epoch, "@v1": epoch.Add(time.Hour)} {
		if st := lstatOf(t, m.join(version)); st.Mtim.Sec != want.Unix() || st.Mode&0o777 != 0o755 {
			t.Errorf("%s: mtime %v, mode %o", version, st.Mtim, st.Mode)
		}
	}
	if a, b := lstatOf(t, m.join("@v1/p=1")), lstatOf(t, m.join("@v2/p=1")); a.Ino == b.Ino {
		t.Error("directories of two versions have one inode")
	}
}

func TestSnapshotsRefuseEveryChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	in := func(name string) string { return m.join("@v1", "p=1", name) }
	for what, err := range map[string]error{
		"create":   write(in("new.parquet"), []byte("x")),
		"write":    write(in("a.parquet"), []byte("x")),
		"append":   func() error { _, err := os.OpenFile(in("b.parquet"), os.O_WRONLY|os.O_APPEND, 0); return err }(),
		"mkdir":    os.Mkdir(in("d"), 0o755),
		"mkfifo":   unix.Mkfifo(in("f"), 0o644),
		"unlink":   unix.Unlink(in("a.parquet")),
		"rmdir":    unix.Rmdir(m.join("@v1", "p=1")),
		"rename":   os.Rename(in("a.parquet"), in("z.parquet")),
		"move out": os.Rename(in("a.parquet"), m.join("current", "z.parquet")),
		"move in":  os.Rename(m.join("current/p=1/a.parquet"), in("z.parquet")),
		"link":     os.Link(in("a.parquet"), in("z.parquet")),
		"symlink":  os.Symlink("a", in("z")),
		"mknod":    unix.Mknod(in("z"), unix.S_IFREG|0o644, 0),
		"chmod":    os.Chmod(m.join("@v1"), 0o777),
		"truncate": os.Truncate(in("b.parquet"), 0),
		"access":   unix.Access(m.join("@v1"), unix.W_OK),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := string(m.read("@v1/p=1/a.parquet")); got != "file a" {
		t.Errorf("changed to %q", got)
	}
	if got := m.latest(); got != "@v2" {
		t.Errorf("latest is %s", got)
	}
}

// The inode is the same in current/, where setting attributes succeeds and
// changes nothing.
func TestAttributesOfAFileInASnapshotAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	old, live := m.join("@v2/p=1/a.parquet"), m.join("current/p=1/a.parquet")
	for what, err := range map[string]error{
		"chmod":    os.Chmod(old, 0o600),
		"chown":    os.Chown(old, 1, 1),
		"utimes":   os.Chtimes(old, epoch, epoch),
		"truncate": os.Truncate(old, 0),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(os.Chmod(live, 0o600), os.Chtimes(live, epoch, epoch)); err != nil {
		t.Errorf("in current/: %v", err)
	}
}

func TestTextsHaveTheirExactSize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	for _, where := range []string{".delta", "current/.delta", "@v1/.delta"} {
		names := m.names(where)
		if len(names) < 6 {
			t.Errorf("%s: %v", where, names)
		}
		for _, name := range names {
			if name == textStatus {
				continue // tells the time of the last failure and such
			}
			st := lstatOf(t, m.join(where, name))
			if got := m.read(where, name); int64(len(got)) != st.Size {
				t.Errorf("%s/%s has %d bytes, stat says %d", where, name, len(got), st.Size)
			}
		}
	}
	for _, hidden := range []string{"@v1", "current"} {
		if slices.Contains(m.names(hidden), ".delta") {
			t.Errorf(".delta is listed in %s", hidden)
		}
	}
	if got := string(m.read(".delta/status.json")); !strings.Contains(got, `"version": 2`) {
		t.Errorf("status: %s", got)
	}
}

func TestHistoryGrowsAndEndsAtItsVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	m := mount(t, dir)
	versions := func(where string) (out []string) {
		for line := range strings.Lines(string(m.read(where, ".delta/history.jsonl"))) {
			v, _, _ := strings.Cut(strings.TrimPrefix(line, `{"version":`), ",")
			out = append(out, v)
		}
		return out
	}
	check := func(where string, want ...string) {
		t.Helper()
		if got := versions(where); !slices.Equal(got, want) {
			t.Errorf("history of %q: %v, want %v", where, got, want)
		}
	}
	check("@v1", "1", "0")
	check("", "2", "1", "0")
	tab.commit()
	tab.commit()
	eventually(t, "the new version", func() bool { return m.latest() == "@v4" })
	check("", "4", "3", "2", "1", "0")
	check("current", "4", "3", "2", "1", "0")
	check("@v3", "3", "2", "1", "0")
	check("@v2", "2", "1", "0")
	check("@v0", "0")
}

func TestRefusedVersionIsShownAndSaysWhy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	tab.commit(map[string]any{"protocol": map[string]any{"minReaderVersion": 3, "minWriterVersion": 7,
		"readerFeatures": []string{"timeTravelByMoon"}, "writerFeatures": []string{"timeTravelByMoon"}}})
	m := mount(t, dir)
	if st := lstatOf(t, m.join("@v3")); st.Mtim.Sec != epoch.Add(3*time.Hour).Unix() {
		t.Errorf("mtime %v", st.Mtim)
	}
	if got := m.latest(); got != "@v3" {
		t.Errorf("latest is %s", got)
	}
	for _, path := range []string{"@v3", "current"} {
		if _, err := os.ReadDir(m.join(path)); !errors.Is(err, syscall.ENOTSUP) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Lstat(m.join("@v3/p=1")); !errors.Is(err, syscall.ENOTSUP) {
		t.Errorf("a name in it: %v", err)
	}
	if got := string(m.read(".delta/errors.jsonl")); !strings.Contains(got, "timeTravelByMoon") {
		t.Errorf("errors.jsonl: %s", got)
	}
	if got := string(m.read("@v3/.delta/protocol.json")); !strings.Contains(got, "timeTravelByMoon") {
		t.Errorf("protocol.json: %s", got)
	}
	if got := string(m.read("@v2/p=1/a.parquet")); got != "file a" {
		t.Errorf("the version before reads %q", got)
	}
}

func TestLargeAndSmallFilesReadWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	large := bytes.Repeat([]byte("c"), 3<<20)
	a, err := os.Open(m.join("@v2/p=2/c.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := os.Open(m.join("current/p=2/c.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m.fs.files.mu.Lock()
	if len(m.fs.files.byID) != 1 {
		t.Errorf("%d files are open", len(m.fs.files.byID))
	}
	for _, of := range m.fs.files.byID {
		if of.refs != 2 {
			t.Errorf("%d handles share the file", of.refs)
		}
		impossible := m.fs.files.back == nil || m.fs.files.told.Load()
		if passes := of.backing > 0; passes == impossible {
			t.Errorf("passthrough %v, impossible %v", passes, impossible)
		}
	}
	m.fs.files.mu.Unlock()
	sameBytes(t, a, large)
	sameBytes(t, b, large)
	sameBytes(t, io.NewSectionReader(b, 1<<20, 4096), large[:4096])
	sameBytes(t, bytes.NewReader(m.read("@v1/p=1/b.parquet")), []byte("file b, first"))
	a.Close()
	b.Close()
	eventually(t, "the release of the handles", func() bool {
		m.fs.files.mu.Lock()
		defer m.fs.files.mu.Unlock()
		return len(m.fs.files.byID) == 0
	})
}

func TestRefusedBackingFileIsReadThroughTheServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := makeTable(t, dir)
	files := map[string][]byte{}
	for _, name := range []string{"a.parquet", "b.parquet"} {
		files[name] = bytes.Repeat([]byte(name), passthroughFrom/len(name)+1)
		tab.commit(tab.add(name, files[name], nil))
	}
	m := mount(t, dir)
	var calls atomic.Int32
	m.fs.files.back = func(*fuse.BackingMap) (int32, syscall.Errno) {
		calls.Add(1)
		return 0, syscall.ELOOP // as for a file on a file system that is stacked itself
	}
	for range 2 {
		for name, want := range files {
			f, err := os.Open(m.join("@v2", name))
			if err != nil {
				t.Fatal(err)
			}
			sameBytes(t, f, want)
			f.Close()
			// RELEASE comes after close, and an open file is shared until then.
			eventually(t, "closed", func() bool {
				m.fs.files.mu.Lock()
				defer m.fs.files.mu.Unlock()
				return len(m.fs.files.byID) == 0
			})
		}
	}
	if n := calls.Load(); n != 4 {
		t.Errorf("after a refused file the kernel was asked for %d of 4", n)
	}
}

func TestFileThatStorageLostIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	if err := os.Remove(filepath.Join(dir, "p=1/b.parquet")); err != nil {
		t.Fatal(err)
	}
	m := mount(t, dir)
	if got := m.names("@v1", "p=1"); !slices.Equal(got, []string{"a.parquet", "b.parquet"}) {
		t.Errorf("listed: %v", got)
	}
	if _, err := os.Open(m.join("@v1/p=1/b.parquet")); !errors.Is(err, syscall.EIO) {
		t.Errorf("open: %v", err)
	}
	if got := string(m.read(".delta/errors.jsonl")); !strings.Contains(got, "b.parquet") {
		t.Errorf("errors.jsonl: %s", got)
	}
}

func TestListingKeepsNothingOfDataFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := makeTable(t, dir)
	var adds []map[string]any
	for i := range 3000 {
		adds = append(adds, map[string]any{"add": map[string]any{"path": "f" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String(),
			"partitionValues": map[string]string{}, "size": 1, "modificationTime": 0, "dataChange": true}})
	}
	tab.commit(adds...)
	m := mount(t, dir)
	entries, err := os.ReadDir(m.join("@v1"))
	if err != nil || len(entries) != 3000 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, e := range entries {
		if _, err := e.Info(); err != nil {
			t.Fatal(err)
		}
	}
	if n := m.fs.nodes.count(); n > 10 {
		t.Errorf("%d nodes are kept", n)
	}
}

func TestCommitOfAnotherWriterAppears(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	tab := threeVersions(t, dir)
	m := mount(t, dir)
	m.names("current", "p=1")
	if _, err := os.Stat(m.join("current/p=1/a.parquet")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(m.join("@v3")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	tab.commit(tab.remove("p=1/a.parquet"), tab.add("p=1/d.parquet", []byte("file d"), map[string]string{"p": "1"}))
	eventually(t, "the new version", func() bool { return m.latest() == "@v3" })
	if got := m.names("current", "p=1"); !slices.Equal(got, []string{"d.parquet"}) {
		t.Errorf("current: %v", got)
	}
	if got := string(m.read("@v3/p=1/d.parquet")); got != "file d" {
		t.Errorf("@v3 reads %q", got)
	}
	eventually(t, "the end of the removed name", func() bool {
		_, err := os.Stat(m.join("current/p=1/a.parquet"))
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestTableMadeAgainShowsOnlyTheNewOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	old, err := os.Open(m.join("@v1"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	before := lstatOf(t, m.join("@v1/p=1/a.parquet"))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	tab := makeTable(t, dir, "p")
	tab.commit(tab.add("p=1/a.parquet", []byte("another file a"), map[string]string{"p": "1"}))
	eventually(t, "the new table", func() bool {
		target, err := os.Readlink(m.join(nameLatest))
		return err == nil && target == "@v1"
	})
	eventually(t, "its file", func() bool {
		b, err := os.ReadFile(m.join("@v1/p=1/a.parquet"))
		return err == nil && string(b) == "another file a"
	})
	if after := lstatOf(t, m.join("@v1/p=1/a.parquet")); after.Ino == before.Ino || after.Size != 14 {
		t.Errorf("inode %d after %d, size %d", after.Ino, before.Ino, after.Size)
	}
	if _, err := os.Lstat(m.join("@v2")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a version of the old table: %v", err)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(old.Fd()), "p=1", &st, 0); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("the old directory: %v", err)
	}
}

func TestStatfsTellsTheTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	var st unix.Statfs_t
	if err := unix.Statfs(m.path, &st); err != nil {
		t.Fatal(err)
	}
	used := (st.Blocks - st.Bfree) * uint64(st.Frsize)
	if files := st.Files - st.Ffree; files != 2 || used < 3<<20 || used > 4<<20 || st.Bfree == 0 {
		t.Errorf("%d files, %d bytes, %d blocks free", files, used, st.Bfree)
	}
}

func TestNothingIsLookedUpAfterAListingOfASnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	threeVersions(t, dir)
	m := mount(t, dir)
	for _, name := range m.names("@v1", "p=1") {
		if lstatOf(t, m.join("@v1", "p=1", name)).Size == 0 {
			t.Errorf("%s is empty", name)
		}
		m.read("@v1", "p=1", name)
	}
	m.fs.nodes.mu.Lock()
	defer m.fs.nodes.mu.Unlock()
	for _, in := range m.fs.nodes.byID {
		if d, ok := in.node.(*snapshotDir); ok && d.path == "p=1" && d.lookups.Load() > 0 {
			t.Errorf("%d names were looked up", d.lookups.Load())
		}
	}
}
