package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// Exit codes of deltafs, as the README documents them.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitUnsupported = 4
	exitMountpoint  = 5
	exitPermission  = 6
)

// wantClearLine checks the exit code and that one line says what is wrong.
func wantClearLine(t *testing.T, r harness.Result, code int, words ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("exit status %d, want %d", r.Code, code)
	}
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	if len(lines) != 1 {
		t.Errorf("%d lines, want one clear line", len(lines))
	}
	for _, w := range words {
		if !strings.Contains(r.Out, w) {
			t.Errorf("does not say %q", w)
		}
	}
	if t.Failed() {
		t.Logf("it said:\n%s", r.Out)
	}
}

func TestMountRefusesBadArguments(t *testing.T) {
	table := newTable(t)
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	empty := t.TempDir()
	for _, c := range []struct {
		name   string
		source string
		dir    string
		code   int
		words  []string
	}{
		{"no mount point", table, missing, exitMountpoint, []string{missing}},
		{"mount point is a file", table, plain, exitMountpoint, []string{plain, "directory"}},
		{"mount point holds files", table, full, exitMountpoint, []string{full, "empty"}},
		{"mount point inside the table", table, inside(t, table), exitMountpoint, []string{"inside"}},
		{"no source", missing, empty, exitNotFound, []string{missing}},
		{"source is a file", plain, empty, exitNotFound, []string{plain}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, daemon := range []bool{false, true} {
				args := []string{"mount", c.source, c.dir}
				if daemon {
					args = append(args, "--daemon")
				}
				wantClearLine(t, harness.Deltafs(t, args...), c.code, c.words...)
				if harness.Mounted(c.dir) {
					t.Fatal("mounted all the same")
				}
			}
		})
	}
}

// inside makes a directory in a table.
func inside(t *testing.T, table string) string {
	t.Helper()
	dir := filepath.Join(table, "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newTable(t testing.TB) string {
	t.Helper()
	table := filepath.Join(t.TempDir(), "table")
	tb, err := fixture.Create(table, fixture.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tb.Add("a.parquet", fixture.Rows(1, 3)); err != nil {
		t.Fatal(err)
	}
	if err := tb.Add("b.parquet", fixture.Rows(4, 3)); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestCommandsRefuseWhatIsNoTable(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{"history", "detail", "files"} {
		t.Run(command, func(t *testing.T) {
			wantClearLine(t, harness.Deltafs(t, command, dir), exitNotFound, dir)
		})
	}
}

func TestUnknownFlagIsAUsageErrorBeforeAndAfterTheArguments(t *testing.T) {
	table, dir := newTable(t), harness.MountPoint(t)
	for _, args := range [][]string{
		{"mount", "--read-and-write", table, dir},
		{"mount", table, dir, "--read-and-write"},
	} {
		r := harness.Deltafs(t, args...)
		if r.Code != exitUsage || !strings.Contains(r.Out, "read-and-write") {
			t.Errorf("%v: exit status %d\n%s", args, r.Code, r.Out)
		}
		if harness.Mounted(dir) {
			t.Fatal("mounted all the same")
		}
	}
}

func TestFlagsAfterTheArgumentsCount(t *testing.T) {
	table, dir := newTable(t), harness.MountPoint(t)
	if r := harness.Deltafs(t, "mount", table, dir, "--daemon", "--read-only"); !r.OK() {
		t.Fatalf("exit status %d\n%s", r.Code, r.Out)
	}
	t.Cleanup(func() {
		if harness.Mounted(dir) {
			harness.Deltafs(t, "umount", dir)
		}
	})
	err := os.WriteFile(filepath.Join(dir, "current", "x.parquet"), []byte("x"), 0o644)
	if harness.Errno(err) != syscall.EROFS {
		t.Fatalf("writing gave %v, want EROFS", err)
	}
	if r := harness.Deltafs(t, "umount", dir); !r.OK() {
		t.Fatalf("exit status %d\n%s", r.Code, r.Out)
	}
}

func TestSecondMountOnTheSameDirectoryIsRefused(t *testing.T) {
	l := start(t)
	wantClearLine(t, harness.Deltafs(t, "mount", newTable(t), l.Dir), exitMountpoint, l.Dir, "umount")
}

func TestDeadMountIsNamedWithTheWayOut(t *testing.T) {
	l := start(t)
	l.KillKeepMount()
	wantClearLine(t, harness.Deltafs(t, "mount", newTable(t), l.Dir), exitMountpoint, l.Dir, "umount")
	if r := harness.Deltafs(t, "umount", l.Dir); !r.OK() {
		if r := harness.Deltafs(t, "umount", "--lazy", l.Dir); !r.OK() {
			t.Fatalf("umount of a dead mount: exit status %d\n%s", r.Code, r.Out)
		}
	}
	if harness.Mounted(l.Dir) {
		t.Fatal("still mounted")
	}
}

func TestUmountOfWhatIsNotMountedSaysSo(t *testing.T) {
	dir := t.TempDir()
	wantClearLine(t, harness.Deltafs(t, "umount", dir), exitMountpoint, dir)
}

func logFile(table string, v int64) string {
	return filepath.Join(table, "_delta_log", fmt.Sprintf("%020d.json", v))
}

func TestTruncatedCommitIsRefusedAndOlderVersionsStay(t *testing.T) {
	table := newTable(t)
	data, err := os.ReadFile(logFile(table, 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logFile(table, 2), data[:len(data)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	l := startAt(t, table)
	l.wantNames(l.Path("@v1"), "a.parquet")
	for _, dir := range []string{"@v2", "current"} {
		if _, err := os.ReadDir(l.Path(dir)); harness.Errno(err) != syscall.EIO {
			t.Errorf("%s: %v, want EIO", dir, err)
		}
	}
	l.wantFailure("00000000000000000002.json")
	if err := os.WriteFile(l.Current("x.parquet"), fixture.Parquet(fixture.Rows(9, 1)), 0o644); err == nil {
		t.Error("a table whose newest version is unreadable took a write")
	}
	if got, _ := fixture.Versions(table); len(got) != 3 {
		t.Errorf("versions in the log: %v", got)
	}
}

func TestMissingCommitIsRefusedAndOlderVersionsStay(t *testing.T) {
	table := newTable(t)
	if err := os.Remove(logFile(table, 1)); err != nil {
		t.Fatal(err)
	}
	l := startAt(t, table, "--list-versions", "all")
	l.wantNames(l.Path("@v0"))
	if _, err := os.ReadDir(l.Path("@v1")); harness.Errno(err) != syscall.ENOENT {
		t.Errorf("@v1: %v, want ENOENT", err)
	}
	if _, err := os.ReadDir(l.Current()); err == nil {
		t.Error("current/ is readable although version 1 is missing")
	}
	r := harness.Deltafs(t, "files", table)
	wantClearLine(t, r, exitFailure, "1")
}

// dropCase is a way of writing bytes that never make a Parquet file.
type dropCase struct {
	name   string
	script string
	reason string
}

func TestIncompleteFilesAreRefusedAndKept(t *testing.T) {
	for _, c := range []dropCase{
		{"text named parquet", `seq 1 1000 > "$3/text" && cp "$3/text" "$2"`, "Parquet"},
		{"half a file", `head -c 500 "$1" > "$2"`, "Parquet"},
		{"file without its end", `head -c -1 "$1" > "$2"`, "Parquet"},
		{"file and garbage", `{ cat "$1"; echo garbage; } > "$3/g" && cp "$3/g" "$2"`, "Parquet"},
		{"two files joined by cat", `cat "$1" "$1" > "$2"`, ""},
		{"preallocated file", `fallocate -l 100000 "$2"`, ""},
		{"truncated to a size", `python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
os.ftruncate(fd, 5000)
os.close(fd)' "$2"`, ""},
		{"hole inside", `python3 -c '
import os, sys
data = open(sys.argv[1], "rb").read()
fd = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
os.pwrite(fd, data[-300:], len(data) - 300)
os.pwrite(fd, data[:100], 0)
os.close(fd)' "$1" "$2"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := start(t)
			source := l.source("s.parquet", 1, 100)
			r := shell(t, c.script, source, l.Current("x.parquet"), l.work)
			if c.name != "preallocated file" {
				// Whether fallocate is told of the empty content is the
				// business of the one who fills it later.
				wantFailed(t, r)
			}
			l.wantLatest(0)
			l.wantListed()
			if c.reason != "" {
				l.wantFailure("x.parquet", c.reason)
			}
			if len(filesBelow(t, filepath.Join(l.table, ".deltafs"))) == 0 {
				t.Error("the bytes are gone")
			}
			l.Unmount()
			if len(filesBelow(t, filepath.Join(l.table, ".deltafs"))) == 0 {
				t.Error("the bytes are gone after the unmount")
			}
		})
	}
}

func TestFilesJoinedByAppendingAreRefusedAndTheCommittedOneStays(t *testing.T) {
	l := start(t)
	a, b := l.source("a.parquet", 1, 100), l.source("b.parquet", 501, 100)
	harness.Must(t, "cp", a, l.Current("x.parquet"))
	wantFailed(t, shell(t, `cat "$1" >> "$2"`, b, l.Current("x.parquet")))
	l.wantLatest(1)
	l.wantSame(l.Path("@v1", "x.parquet"), a)
	l.wantRows(fixture.Rows(1, 100))
	l.wantFailure("x.parquet")
	if harness.Must(t, "cmp", a, l.Current("x.parquet")) != "" {
		t.Error("current/x.parquet is not the committed file")
	}
}

func TestFileWrittenOutOfOrderCommitsOnceWhenComplete(t *testing.T) {
	for _, c := range []dropCase{
		{name: "last block first", script: `python3 -c '
import os, sys
data = open(sys.argv[1], "rb").read()
fd = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
blocks = list(range(0, len(data), 512))
for at in reversed(blocks):
    os.pwrite(fd, data[at:at + 512], at)
os.close(fd)' "$1" "$2"`},
		{name: "preallocated, then written", script: `python3 -c '
import os, sys
data = open(sys.argv[1], "rb").read()
fd = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
os.ftruncate(fd, len(data))
os.pwrite(fd, data[600:], 600)
os.pwrite(fd, data[:600], 0)
os.close(fd)' "$1" "$2"`},
		{name: "dd with seek", script: `
			dd if="$1" of="$2" bs=100 skip=1 seek=1 conv=notrunc status=none
			dd if="$1" of="$2" bs=100 count=1 conv=notrunc status=none`},
		{name: "first half, then rsync --append", script: `
			{ head -c 700 "$1" > "$2"; } 2>/dev/null
			rsync --append "$1" "$2"`},
		{name: "grown by >>", script: `
			{ head -c 700 "$1" > "$2"; } 2>/dev/null
			tail -c +701 "$1" >> "$2"`},
		{name: "curl -C -", script: `
			{ head -c 700 "$1" > "$2"; } 2>/dev/null
			curl -sSf -C - -o "$2" "file://$1"`},
		{name: "memory map", script: `python3 -c '
import mmap, os, sys
data = open(sys.argv[1], "rb").read()
fd = os.open(sys.argv[2], os.O_CREAT | os.O_RDWR)
os.ftruncate(fd, len(data))
try:
    m = mmap.mmap(fd, len(data))
except OSError:
    os.pwrite(fd, data, 0)
else:
    m[:] = data
    m.close()
os.close(fd)' "$1" "$2"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := start(t)
			source := l.source("s.parquet", 1, 100)
			wantOK(t, shell(t, c.script, source, l.Current("x.parquet")))
			l.wantLatest(1)
			l.wantListed("x.parquet")
			l.wantSame(l.Current("x.parquet"), source)
			l.wantRows(fixture.Rows(1, 100))
			l.finish()
		})
	}
}

func TestEmptyFileIsNotYetAFile(t *testing.T) {
	l := start(t)
	harness.Must(t, "touch", l.Current("x.parquet"))
	l.wantLatest(0)
	l.wantListed()
	source := l.source("s.parquet", 1, 3)
	harness.Must(t, "cp", source, l.Current("x.parquet"))
	l.wantLatest(1)
	l.wantSame(l.Current("x.parquet"), source)
	l.finish()
}

func TestFullDiskIsReportedAndCommitsNothing(t *testing.T) {
	needRoot(t)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	table := filepath.Join(disk, "table")
	if _, err := fixture.Create(table, fixture.Spec{}); err != nil {
		t.Fatal(err)
	}
	l := startAt(t, table)
	big := l.source("big.parquet", 1, 100_000)
	if st, err := os.Stat(big); err != nil || st.Size() < 1<<20 {
		t.Fatalf("the file is not bigger than the disk: %v", err)
	}
	for _, script := range []string{`cp "$1" "$2"`, `dd if="$1" of="$2" bs=64k status=none`, `rsync "$1" "$2"`} {
		r := shell(t, script, big, l.Current("big.parquet"))
		wantFailed(t, r)
		if !strings.Contains(r.Out, "No space left on device") {
			t.Errorf("%s said %q", script, r.Out)
		}
		l.wantLatest(0)
		l.wantListed()
		harness.Run(t, "rm", "-f", l.Current("big.parquet"))
		wantOK(t, shell(t, `rm -rf "$1"/*`, filepath.Join(table, ".deltafs", "rejected")))
	}
	small := l.source("small.parquet", 1, 10)
	harness.Must(t, "cp", small, l.Current("small.parquet"))
	l.wantLatest(1)
	l.wantRows(fixture.Rows(1, 10))
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can set this up")
	}
}

// addLine is an add action of a path as it stands.
func addLine(t *testing.T, path string, size int64) string {
	t.Helper()
	line, err := json.Marshal(map[string]any{"add": map[string]any{
		"path": path, "partitionValues": map[string]string{}, "size": size,
		"modificationTime": 1700000000000, "dataChange": true,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestLogPathsThatLeaveTheTableServeNoByte(t *testing.T) {
	root := t.TempDir()
	table := filepath.Join(root, "table")
	tb, err := fixture.Create(table, fixture.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(root, "secret.parquet")
	if err := fixture.WriteParquet(secret, fixture.Rows(1, 3)); err != nil {
		t.Fatal(err)
	}
	for _, link := range []struct{ target, name string }{{secret, "link.parquet"}, {root, "dir"}} {
		if err := os.Symlink(link.target, filepath.Join(table, link.name)); err != nil {
			t.Fatal(err)
		}
	}
	want := fixture.Parquet(fixture.Rows(1, 3))
	size := int64(len(want))
	for _, c := range []struct{ name, path string }{
		{"dot dot", "../secret.parquet"},
		{"encoded dot dot", "%2e%2e/secret.parquet"},
		{"deep dot dot", "a/b/../../../secret.parquet"},
		{"absolute", secret},
		{"file URL", "file://" + secret},
		{"file URL with one slash", "file:" + secret},
		{"symbolic link", "link.parquet"},
		{"through a linked directory", "dir/secret.parquet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := tb.Commit("WRITE", addLine(t, c.path, size)); err != nil {
				t.Fatal(err)
			}
			l := startAt(t, table)
			read := 0
			for _, dir := range []string{l.Current(), l.Path("latest") + "/"} {
				for _, path := range filesBelow(t, dir) {
					data, err := os.ReadFile(path)
					read++
					if len(data) > 0 || bytes.Equal(data, want) {
						t.Errorf("%s served %d bytes from outside the table", path, len(data))
					}
					if e := harness.Errno(err); e != syscall.EACCES && e != syscall.EIO {
						t.Errorf("%s: %v, want EACCES", path, err)
					}
				}
			}
			if read != 2 {
				t.Errorf("%d files are listed in current/ and latest/, want one each", read)
			}
			l.wantFailure(filepath.Base(c.path))
			l.Unmount()
			if err := tb.Remove(c.path); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestDeltaLogInCurrentIsRefusedWithTheWayOut(t *testing.T) {
	l := start(t)
	for _, script := range []string{
		`mkdir "$1/_delta_log"`,
		`echo '{}' > "$1/_delta_log"`,
		`mkdir "$1/d.tmp" && mv "$1/d.tmp" "$1/_delta_log"`,
	} {
		wantFailed(t, shell(t, script, l.Current()))
	}
	if _, err := os.Stat(l.Current("_delta_log")); harness.Errno(err) != syscall.EPERM {
		t.Errorf("stat: %v, want EPERM", err)
	}
	l.wantFailure("_delta_log", "table's own path")
	l.wantLatest(0)
}
