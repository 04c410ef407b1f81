package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// tool writes a source file to a name in the mount.
type tool struct {
	name string
	// script gets the source as $1 and the target as $2.
	script string
	// newOnly: the tool does not replace an existing file.
	newOnly bool
	// renames: the tool writes a scratch name first, so that what is refused
	// is the rename; the scratch file is the tool's to keep or remove.
	renames bool
	// unlinks: the tool removes an existing target before it writes.
	unlinks bool
}

// tools are the ways in which people copy one file to another place.
func tools() []tool {
	return []tool{
		{name: "cp", script: `cp "$1" "$2"`},
		{name: "cp -p", script: `cp -p "$1" "$2"`},
		{name: "cp -a", unlinks: true, script: `cp -a "$1" "$2"`},
		{name: "mv from another file system", unlinks: true, script: `mv "$1" "$2"`},
		{name: "install", unlinks: true, script: `install -m 644 "$1" "$2"`},
		{name: "rsync -a", renames: true, script: `rsync -a --checksum "$1" "$2"`},
		{name: "rsync --inplace", script: `rsync -a --checksum --inplace "$1" "$2"`},
		{name: "rsync --whole-file --inplace", script: `rsync -a --checksum --whole-file --inplace "$1" "$2"`},
		{name: "rsync --delay-updates", renames: true, script: `rsync -a --checksum --delay-updates "$1" "$2"`},
		{name: "cat >", script: `cat "$1" > "$2"`},
		{name: "cat >> new", script: `cat "$1" >> "$2"`, newOnly: true},
		{name: "dd", script: `dd if="$1" of="$2" bs=512 status=none`},
		{name: "dd conv=fsync", script: `dd if="$1" of="$2" bs=4k conv=fsync status=none`},
		{name: "tee", script: `tee "$2" < "$1" > /dev/null`},
		{name: "curl", script: `curl -sSf -o "$2" "file://$1"`},
		{name: "curl -R", script: `curl -sSf -R -o "$2" "file://$1"`},
		{name: "tar", unlinks: true, script: `
			d=$(mktemp -d) && cp "$1" "$d/$(basename "$2")" &&
			tar cf "$d/a.tar" -C "$d" "$(basename "$2")" &&
			tar xf "$d/a.tar" -C "$(dirname "$2")"; r=$?; rm -r "$d"; exit $r`},
		{name: "python open", script: `python3 -c '
import sys
with open(sys.argv[1], "rb") as i, open(sys.argv[2], "wb") as o: o.write(i.read())' "$1" "$2"`},
		{name: "python shutil.copy", script: `python3 -c 'import shutil, sys; shutil.copy(*sys.argv[1:])' "$1" "$2"`},
		{name: "python shutil.copy2", script: `python3 -c 'import shutil, sys; shutil.copy2(*sys.argv[1:])' "$1" "$2"`},
		{name: "python os.replace", renames: true, script: `python3 -c '
import os, sys
temporary = sys.argv[2] + ".tmp"
with open(sys.argv[1], "rb") as i, open(temporary, "wb") as o:
    o.write(i.read())
    o.flush()
    os.fsync(o.fileno())
os.replace(temporary, sys.argv[2])
d = os.open(os.path.dirname(sys.argv[2]), os.O_RDONLY)
os.fsync(d)' "$1" "$2"`},
		{name: "link and unlink", renames: true, script: `
			cp "$1" "$2.tmp" && ln "$2.tmp" "$2" && rm "$2.tmp"`, newOnly: true},
	}
}

// elsewhere copies a file to another file system, where mv has to copy too.
func elsewhere(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "deltafs-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	out := filepath.Join(dir, filepath.Base(path))
	harness.Must(t, "cp", "-p", path, out)
	return out
}

func TestToolAppendsInOneCommit(t *testing.T) {
	for _, c := range tools() {
		t.Run(c.name, func(t *testing.T) {
			l := start(t)
			source := l.source("x.parquet", 1, 100)
			wantOK(t, shell(t, c.script, elsewhere(t, source), l.Current("x.parquet")))
			l.wantLatest(1)
			l.wantListed("x.parquet")
			l.wantSame(l.Current("x.parquet"), source)
			l.wantSame(l.Path("@v1", "x.parquet"), source)
			l.wantNames(l.Path("@v0"))
			l.wantRows(fixture.Rows(1, 100))
			l.finish()
		})
	}
}

func TestToolReplacesInOneCommit(t *testing.T) {
	for _, c := range tools() {
		if c.newOnly {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			l := start(t)
			first := l.source("first.parquet", 1, 100)
			harness.Must(t, "cp", first, l.Current("x.parquet"))
			source := l.source("x.parquet", 501, 90)
			wantOK(t, shell(t, c.script, elsewhere(t, source), l.Current("x.parquet")))
			l.wantLatest(2)
			l.wantListed("x.parquet")
			l.wantSame(l.Current("x.parquet"), source)
			l.wantSame(l.Path("@v2", "x.parquet"), source)
			l.wantSame(l.Path("@v1", "x.parquet"), first)
			l.wantRows(fixture.Rows(501, 90))
			l.finish()
		})
	}
}

func TestToolReportsRefusedFile(t *testing.T) {
	for _, c := range tools() {
		t.Run(c.name, func(t *testing.T) {
			l := start(t)
			source := l.wrongSource("x.parquet")
			wantFailed(t, shell(t, c.script, elsewhere(t, source), l.Current("x.parquet")))
			l.wantLatest(0)
			l.wantListed()
			l.wantFailure("x.parquet", "id")
			if !c.renames {
				l.wantRejected(source)
			}
		})
	}
}

func TestToolReportsRefusedReplacementAndKeepsTheOldFile(t *testing.T) {
	for _, c := range tools() {
		if c.newOnly {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			l := start(t)
			first := l.source("first.parquet", 1, 3)
			harness.Must(t, "cp", first, l.Current("x.parquet"))
			source := l.wrongSource("x.parquet")
			wantFailed(t, shell(t, c.script, elsewhere(t, source), l.Current("x.parquet")))
			l.wantSame(l.Path("@v1", "x.parquet"), first)
			if !c.renames {
				l.wantRejected(source)
			}
			if c.unlinks {
				return // the old file is gone at the tool's own wish
			}
			l.wantLatest(1)
			l.wantListed("x.parquet")
			l.wantRows(fixture.Rows(1, 3))
			// Another process reads the committed file under that name.
			if got := harness.Must(t, "cmp", first, l.Current("x.parquet")); got != "" {
				t.Fatal(got)
			}
		})
	}
}

func TestCopyKeepsModificationTime(t *testing.T) {
	for _, script := range []string{`cp -p "$1" "$2"`, `rsync -a "$1" "$2"`} {
		t.Run(script, func(t *testing.T) {
			l := start(t)
			source := l.source("x.parquet", 1, 3)
			harness.Must(t, "touch", "-d", "2021-02-03T04:05:06Z", source)
			wantOK(t, shell(t, script, source, l.Current("x.parquet")))
			st, err := os.Stat(l.Path("@v1", "x.parquet"))
			if err != nil {
				t.Fatal(err)
			}
			if got := st.ModTime().UTC().Format("2006-01-02T15:04:05"); got != "2021-02-03T04:05:06" {
				t.Fatalf("the file shows %s", got)
			}
			l.wantLatest(1)
		})
	}
}

func TestSecondCopyOfUnchangedFileCommitsNothing(t *testing.T) {
	for _, script := range []string{
		`cp "$1" "$2"`,
		`cp -pu "$1" "$2"`,
		`rsync -a "$1" "$2"`,
		`rsync -a --inplace "$1" "$2"`,
		`cat "$1" > "$2"`,
		`dd if="$1" of="$2" conv=notrunc status=none`,
	} {
		t.Run(script, func(t *testing.T) {
			l := start(t)
			source := l.source("x.parquet", 1, 100)
			for range 3 {
				wantOK(t, shell(t, script, source, l.Current("x.parquet")))
			}
			l.wantLatest(1)
			l.wantListed("x.parquet")
			l.wantRows(fixture.Rows(1, 100))
			l.finish()
		})
	}
}

func TestRsyncOfDirectoryTwiceCommitsEachFileOnce(t *testing.T) {
	l := startByDay(t)
	l.source("src/day=mon/a.parquet", 1, 2)
	l.source("src/day=mon/b.parquet", 11, 2)
	l.source("src/day=tue/a.parquet", 21, 2)
	for range 2 {
		harness.Must(t, "rsync", "-a", filepath.Join(l.work, "src")+"/", l.Current()+"/")
		l.wantLatest(3)
	}
	l.wantNames(l.Current("day=mon"), "a.parquet", "b.parquet")
	l.wantRows(fixture.Rows(1, 2), fixture.Rows(11, 2), fixture.Rows(21, 2))
	l.finish()
}

func TestCopyOfHiveDirectoriesCommitsEachFileWithItsValues(t *testing.T) {
	for _, script := range []string{`cp -r "$1"/* "$2/"`, `cp -a "$1"/. "$2/"`, `tar cf - -C "$1" . | tar xf - -C "$2"`} {
		t.Run(script, func(t *testing.T) {
			l := startByDay(t)
			l.source("src/day=mon/a.parquet", 1, 2)
			l.source("src/day=tue/a.parquet", 21, 2)
			wantOK(t, shell(t, script, filepath.Join(l.work, "src"), l.Current()))
			l.wantLatest(2)
			l.wantListed("day=mon", "day=tue")
			l.wantRows(fixture.Rows(1, 2), fixture.Rows(21, 2))
			files, err := fixture.Replay(l.table, -1)
			if err != nil {
				t.Fatal(err)
			}
			days := map[string]bool{}
			for _, f := range files {
				if day := f.PartitionValues["day"]; day != nil {
					days[*day] = true
				}
			}
			if len(files) != 2 || !days["mon"] || !days["tue"] {
				t.Fatalf("live files: %+v", files)
			}
			l.finish()
		})
	}
}

func TestCopyOfOtherDirectoryIsRefusedWithTheWayOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		make   func(testing.TB, ...string) *live
		wayOut string
	}{
		{"unpartitioned table", start, "drop the files"},
		{"partitioned table", startByDay, "day="},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := c.make(t)
			l.source("results/a.parquet", 1, 2)
			r := harness.Run(t, "cp", "-r", filepath.Join(l.work, "results"), l.Current())
			wantFailed(t, r)
			l.wantLatest(0)
			l.wantListed()
			l.wantFailure("results", c.wayOut)
		})
	}
}

func TestFileAtRootOfPartitionedTableIsRefusedWithTheWayOut(t *testing.T) {
	l := startByDay(t)
	source := filepath.Join(l.work, "x.parquet")
	if err := fixture.WriteParquet(source, []fixture.DayRow{{Row: fixture.Row{ID: 1, Name: "a"}, Day: "mon"}}); err != nil {
		t.Fatal(err)
	}
	wantFailed(t, harness.Run(t, "cp", source, l.Current("x.parquet")))
	l.wantLatest(0)
	l.wantFailure("x.parquet", "day=")
	l.wantRejected(source)
}

func TestCopyFromSnapshotToItselfIsTheSameFile(t *testing.T) {
	l := start(t)
	harness.Must(t, "cp", l.source("x.parquet", 1, 3), l.Current("x.parquet"))
	r := harness.Run(t, "cp", l.Path("@v1", "x.parquet"), l.Current("x.parquet"))
	wantFailed(t, r)
	l.wantLatest(1)
	l.wantRows(fixture.Rows(1, 3))
}

func TestOldVersionOfFileCopiedBackIsReplaced(t *testing.T) {
	l := start(t)
	first := l.source("x.parquet", 1, 3)
	harness.Must(t, "cp", first, l.Current("x.parquet"))
	harness.Must(t, "cp", l.source("x2.parquet", 11, 3), l.Current("x.parquet"))
	harness.Must(t, "cp", l.Path("@v1", "x.parquet"), l.Current("x.parquet"))
	l.wantLatest(3)
	l.wantRows(fixture.Rows(1, 3))
	l.finish()
}

func TestSnapshotCopiesOutAsCleanHiveExport(t *testing.T) {
	l := startByDay(t)
	a := l.source("a.parquet", 1, 2)
	harness.Must(t, "mkdir", l.Current("day=mon"))
	harness.Must(t, "cp", a, l.Current("day=mon", "a.parquet"))
	out := filepath.Join(l.work, "out")
	harness.Must(t, "cp", "-r", l.Path("@v1"), out)
	if got := filesBelow(t, out); len(got) != 1 || got[0] != filepath.Join(out, "day=mon", "a.parquet") {
		t.Fatalf("exported %q", got)
	}
	l.wantSame(filepath.Join(out, "day=mon", "a.parquet"), a)
}

func TestRemovalOfManyFilesIsOneCommit(t *testing.T) {
	l := start(t)
	for _, name := range []string{"a.parquet", "b.parquet", "c.parquet"} {
		harness.Must(t, "cp", l.source(name, 1, 1), l.Current(name))
	}
	l.wantLatest(3)
	wantOK(t, shell(t, `rm "$1"/a.parquet "$1"/b.parquet && ls "$1" && sync "$1"`, l.Current()))
	l.wantLatest(4)
	l.wantListed("c.parquet")
	l.wantRows(fixture.Rows(1, 1))
	l.finish()
}

func TestRemovalOfPartitionIsOneCommit(t *testing.T) {
	l := startByDay(t)
	harness.Must(t, "mkdir", l.Current("day=mon"), l.Current("day=tue"))
	harness.Must(t, "cp", l.source("a.parquet", 1, 2), l.Current("day=mon"))
	harness.Must(t, "cp", l.source("b.parquet", 11, 2), l.Current("day=mon"))
	harness.Must(t, "cp", l.source("c.parquet", 21, 2), l.Current("day=tue"))
	l.wantLatest(3)
	harness.Must(t, "rm", "-r", l.Current("day=mon"))
	l.wantLatest(4)
	l.wantListed("day=tue")
	l.wantRows(fixture.Rows(21, 2))
	l.wantNames(l.Path("@v3", "day=mon"), "a.parquet", "b.parquet")
	l.finish()
}

func TestUnmountCommitsPendingRemovals(t *testing.T) {
	l := start(t)
	harness.Must(t, "cp", l.source("a.parquet", 1, 1), l.Current("a.parquet"))
	harness.Must(t, "rm", l.Current("a.parquet"))
	l.finish()
	l.wantRows()
	files, err := fixture.Replay(l.table, -1)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 0 {
		t.Fatalf("live after unmount: %+v", files)
	}
}

func TestWritesToSnapshotAreRefused(t *testing.T) {
	l := start(t)
	source := l.source("x.parquet", 1, 3)
	harness.Must(t, "cp", source, l.Current("x.parquet"))
	snapshot := l.Path("@v1")
	for _, script := range []string{
		`cp "$1" "$2/y.parquet"`,
		`cat "$1" > "$2/x.parquet"`,
		`cat "$1" >> "$2/x.parquet"`,
		`rm -f "$2/x.parquet"`,
		`mv "$2/x.parquet" "$2/y.parquet"`,
		`mkdir "$2/d"`,
		`truncate -s 0 "$2/x.parquet"`,
		`ln -s x "$2/l"`,
	} {
		r := shell(t, script, source, snapshot)
		wantFailed(t, r)
		if want := "Read-only file system"; !strings.Contains(r.Out, want) {
			t.Errorf("%s: %q, want %q", script, r.Out, want)
		}
	}
	l.wantLatest(1)
	l.wantSame(filepath.Join(snapshot, "x.parquet"), source)
}

func TestReadOnlyMountRefusesEveryChange(t *testing.T) {
	l := start(t, "--read-only")
	r := harness.Run(t, "cp", l.source("x.parquet", 1, 3), l.Current("x.parquet"))
	wantFailed(t, r)
	if !strings.Contains(r.Out, "Read-only file system") {
		t.Errorf("cp said %q", r.Out)
	}
	l.wantLatest(0)
}

func TestAppendOnlyMountRefusesRemovals(t *testing.T) {
	l := start(t, "--append-only")
	x := l.source("x.parquet", 1, 3)
	harness.Must(t, "cp", x, l.Current("x.parquet"))
	for _, script := range []string{`rm -f "$2"`, `cp "$1" "$2"`, `cat "$1" > "$2"`} {
		wantFailed(t, shell(t, script, l.source("y.parquet", 11, 3), l.Current("x.parquet")))
	}
	l.wantLatest(1)
	l.wantSame(l.Current("x.parquet"), x)
}
