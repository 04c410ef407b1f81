package integration

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// textTable makes a table partitioned by day: two days at version 1, another
// file at version 2, and none of the first file at version 3.
func textTable(t *testing.T) *fixture.Table {
	t.Helper()
	table, err := fixture.Create(filepath.Join(t.TempDir(), "days"), fixture.Spec{Partition: []string{"day"}})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	first, err := table.AddLine("day=2024-05-02/b.parquet", fixture.Rows(100, 20_000))
	check(err)
	second, err := table.AddLine("day=2024-05-01/a.parquet", []fixture.Row{{ID: -1, Name: `say "hi", or`}, {ID: 2, Name: ""}})
	check(err)
	check(table.Commit("WRITE", first, second))
	check(table.Add("day=2024-05-01/c.parquet", fixture.Rows(7, 2)))
	check(table.Remove("day=2024-05-02/b.parquet"))
	return table
}

const (
	textHead = "id,name,day\n-1,\"say \"\"hi\"\", or\",2024-05-01\n2,\"\",2024-05-01\n"
	textTail = "7,name-7,2024-05-01\n8,name-8,2024-05-01\n"
)

// textOfDays is the CSV of the version of a textTable.
func textOfDays(version int) string {
	var b strings.Builder
	b.WriteString(textHead)
	if version > 1 {
		b.WriteString(textTail)
	}
	if version < 3 {
		for _, r := range fixture.Rows(100, 20_000) {
			fmt.Fprintf(&b, "%d,%s,2024-05-02\n", r.ID, r.Name)
		}
	}
	return b.String()
}

func TestVersionsAsText(t *testing.T) {
	table := textTable(t)
	m := harness.Start(t, table.Dir)
	for v := 1; v <= 3; v++ {
		if got := harness.Must(t, "cat", m.Path(fmt.Sprintf("@v%d.csv", v))); got != textOfDays(v) {
			t.Errorf("@v%d.csv has %d bytes, want %d", v, len(got), len(textOfDays(v)))
		}
	}
	if got := harness.Must(t, "cat", m.Path("current.csv")); got != textOfDays(3) {
		t.Errorf("current.csv is %q", got)
	}
	future := time.Now().UTC().Format("@2006-01-02T15:04:05.999Z") + ".csv"
	if got := harness.Must(t, "cat", m.Path(future)); got != textOfDays(3) {
		t.Errorf("%s is %q", future, got)
	}
	want := `{"id":-1,"name":"say \"hi\", or","day":"2024-05-01"}` + "\n" + `{"id":2,"name":"","day":"2024-05-01"}` + "\n" +
		`{"id":7,"name":"name-7","day":"2024-05-01"}` + "\n" + `{"id":8,"name":"name-8","day":"2024-05-01"}` + "\n"
	for _, name := range []string{"@v3.jsonl", "current.jsonl"} {
		if got := harness.Must(t, "cat", m.Path(name)); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := harness.Must(t, "cat", m.Path("@v0.csv")); got != "id,name,day\n" {
		t.Errorf("the text of a version without files is %q", got)
	}
	if got := harness.Must(t, "cat", m.Path("@v0.jsonl")); got != "" {
		t.Errorf("the JSON of a version without files is %q", got)
	}
}

func TestTextHasNoSizeAndIsNotListed(t *testing.T) {
	m := harness.Start(t, textTable(t).Dir)
	for _, name := range []string{"@v3.csv", "current.jsonl"} {
		st, err := os.Stat(m.Path(name))
		if err != nil || st.Size() != 0 || !st.Mode().IsRegular() || st.Mode().Perm()&0o222 != 0 {
			t.Errorf("stat of %s: %v, %v", name, st, err)
		}
	}
	for _, name := range []string{"@v4.csv", "@v03.csv", "@v3.txt", "@v3.csv.gz", "@1999-01-01.csv", "latest.csv", "other.csv"} {
		if _, err := os.Stat(m.Path(name)); !os.IsNotExist(err) {
			t.Errorf("stat of %s: %v", name, err)
		}
	}
	names, err := os.ReadDir(m.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if strings.HasSuffix(e.Name(), ".csv") || strings.HasSuffix(e.Name(), ".jsonl") {
			t.Errorf("%s is listed", e.Name())
		}
	}
	if err := os.WriteFile(m.Path("@v3.csv"), []byte("x"), 0o644); harness.Errno(err) != syscall.EROFS {
		t.Errorf("writing to a text: %v", err)
	}
}

func TestToolsReadText(t *testing.T) {
	m := harness.Start(t, textTable(t).Dir)
	out := t.TempDir()
	for script, want := range map[string]string{
		`wc -l < "$1/@v1.csv"`:                              "20003\n",
		`wc -c "$1/@v3.csv" | cut -d" " -f1`:                fmt.Sprintln(len(textOfDays(3))),
		`head -n 1 "$1/@v1.csv"`:                            "id,name,day\n",
		`head -c 5 "$1/@v1.csv"`:                            "id,na",
		`tail -n 1 "$1/@v1.csv"`:                            "20099,name-20099,2024-05-02\n",
		`tail -c 3 "$1/@v1.csv"`:                            "02\n",
		`grep -c ,2024-05-01 "$1/@v2.csv"`:                  "4\n",
		`grep -m 1 name-1234 "$1/@v2.csv"`:                  "1234,name-1234,2024-05-02\n",
		`sort -t, -k1nr "$1/@v2.csv" | head -n 1`:           "20099,name-20099,2024-05-02\n",
		`cut -d, -f1 "$1/@v3.csv" | tail -n 1`:              "8\n",
		`diff "$1/@v1.csv" "$1/@v2.csv"`:                    "3a4,5\n> 7,name-7,2024-05-01\n> 8,name-8,2024-05-01\n",
		`diff "$1/@v2.csv" "$1/@v3.csv" | grep -c "^<"`:     "20000\n",
		`cmp "$1/@v3.csv" "$1/current.csv"`:                 "",
		`cp "$1/@v2.csv" "$2/a" && cmp "$1/@v2.csv" "$2/a"`: "",
		`(head -n 1 > /dev/null; head -n 1) < "$1/@v3.csv"`: "-1,\"say \"\"hi\"\", or\",2024-05-01\n",
		`dd if="$1/@v1.csv" bs=4k skip=2 count=1 status=none | cmp - <(tail -c +8193 "$1/@v1.csv" | head -c 4096)`:        "",
		`paste -d: "$1/@v3.csv" "$1/@v3.csv" "$1/@v3.csv" | tail -n 1`:                                                    strings.TrimSuffix(strings.Repeat("8,name-8,2024-05-01:", 3), ":") + "\n",
		`python3 -c 'import csv, sys; print(sum(1 for _ in csv.DictReader(open(sys.argv[1], newline=""))))' "$1/@v1.csv"`: "20002\n",
	} {
		if r := shell(t, script, m.Dir, out); strings.TrimSuffix(script, "diff") != "" && r.Out != want {
			t.Errorf("%s: exit status %d, %q, want %q", script, r.Code, r.Out, want)
		}
	}
}

func TestTextReadBackwardsAndByManyAtATime(t *testing.T) {
	m := harness.Start(t, textTable(t).Dir)
	want := []byte(textOfDays(2))
	f, err := os.Open(m.Path("@v2.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, off := range []int64{300_000, 0, 299_000, 100, 400_000, 399_999, 1} {
		b := make([]byte, 5000)
		if n, err := f.ReadAt(b, off); err != nil || !bytes.Equal(b[:n], want[off:off+5000]) {
			t.Errorf("at %d: %d bytes, %v", off, n, err)
		}
	}
	results := make(chan error)
	const readers = 10
	for range readers {
		go func() {
			b, err := os.ReadFile(m.Path("@v2.csv"))
			if err == nil && !bytes.Equal(b, want) {
				err = fmt.Errorf("%d bytes of %d", len(b), len(want))
			}
			results <- err
		}()
	}
	for range readers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestTextOfWhatCannotBeReadFails(t *testing.T) {
	table := textTable(t)
	// The first file of the text, and one in the middle of it.
	vacuumed := textTable(t)
	if err := os.Remove(filepath.Join(vacuumed.Dir, "day=2024-05-01/a.parquet")); err != nil {
		t.Fatal(err)
	}
	m := harness.Start(t, vacuumed.Dir)
	if _, err := os.Open(m.Path("@v2.csv")); harness.Errno(err) != syscall.EIO {
		t.Errorf("opening a text whose first file is gone: %v", err)
	}
	damaged := filepath.Join(table.Dir, "day=2024-05-02/b.parquet")
	data, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[4:200]) // the header of the first page
	if err := os.WriteFile(damaged, data, 0o644); err != nil {
		t.Fatal(err)
	}
	m = harness.Start(t, table.Dir)
	f, err := os.Open(m.Path("@v2.csv"))
	if err == nil {
		defer f.Close()
		_, err = io.Copy(io.Discard, f)
	}
	if harness.Errno(err) != syscall.EIO {
		t.Errorf("reading a text of a damaged file: %v", err)
	}
	failures := m.Failures()
	if len(failures) == 0 || !strings.Contains(failures[len(failures)-1].Reason, "b.parquet") {
		t.Errorf("errors.jsonl does not name the file: %v", failures)
	}
}

func TestEngineThatIsKilledFailsTheReadAndTheNextOneWorks(t *testing.T) {
	m := harness.Start(t, textTable(t).Dir)
	f, err := os.Open(m.Path("@v2.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	children := strings.Fields(harness.Must(t, "sh", "-c", fmt.Sprintf("cat /proc/%d/task/*/children", m.PID())))
	if len(children) != 1 {
		t.Fatalf("children of the mount: %v", children)
	}
	harness.Must(t, "kill", "-SEGV", children[0])
	// What was read already may still come, but never an end that looks right.
	if _, err := io.Copy(io.Discard, f); harness.Errno(err) != syscall.EIO {
		t.Errorf("reading on: %v", err)
	}
	if got := harness.Must(t, "cat", m.Path("@v2.csv")); got != textOfDays(2) {
		t.Errorf("afterwards the text has %d bytes", len(got))
	}
}

func TestNothingOfTheEngineOutlivesAKilledMount(t *testing.T) {
	spill := t.TempDir()
	m := harness.StartWith(t, textTable(t).Dir, harness.Options{Flags: []string{"--no-disk-cache"}, Env: []string{"TMPDIR=" + spill}})
	harness.Must(t, "cat", m.Path("@v2.csv"))
	child := strings.TrimSpace(harness.Must(t, "sh", "-c", fmt.Sprintf("cat /proc/%d/task/*/children", m.PID())))
	m.Kill()
	harness.Eventually(t, 10*time.Second, func() string {
		if _, err := os.Stat("/proc/" + child); err == nil {
			return "process " + child
		}
		return ""
	})
	m = harness.StartWith(t, textTable(t).Dir, harness.Options{Flags: []string{"--no-disk-cache"}, Env: []string{"TMPDIR=" + spill}})
	harness.Must(t, "cat", m.Path("@v2.csv"))
	m.Unmount()
	left, err := filepath.Glob(filepath.Join(spill, "deltafs-sql-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCatPrintsRows(t *testing.T) {
	table := textTable(t).Dir
	for args, want := range map[string]string{
		"cat T@v1":                                   textOfDays(1),
		"cat T":                                      textOfDays(3),
		"cat T --version 3 --format csv":             textOfDays(3),
		"cat T --columns day,ID --limit 1":           "day,id\n2024-05-01,-1\n",
		"cat T --columns day --limit 2":              "day\n2024-05-01\n2024-05-01\n",
		"cat T@v3 --format jsonl --limit 0":          "",
		"cat T@v3 --format jsonl --columns name,day": "{\"name\":\"say \\\"hi\\\", or\",\"day\":\"2024-05-01\"}\n{\"name\":\"\",\"day\":\"2024-05-01\"}\n{\"name\":\"name-7\",\"day\":\"2024-05-01\"}\n{\"name\":\"name-8\",\"day\":\"2024-05-01\"}\n",
		"cat T@v2 --format table --limit 4":          "id  name          day\n-1  say \"hi\", or  2024-05-01\n 2                2024-05-01\n 7  name-7        2024-05-01\n 8  name-8        2024-05-01\n",
		"cat T@v0":                                   "id,name,day\n",
		"cat T@v0 --format table":                    "id  name  day\n",
	} {
		r := harness.Deltafs(t, strings.Fields(strings.ReplaceAll(args, "T", table))...)
		if !r.OK() || r.Out != want {
			t.Errorf("%s: exit status %d\n%q\nwant\n%q", args, r.Code, r.Out, want)
		}
	}
	wantClearLine(t, harness.Deltafs(t, "cat", table, "--columns", "id,price"), exitUsage, "price", "id, name, day")
	wantClearLine(t, harness.Deltafs(t, "cat", table, "--format", "xml"), exitUsage, "xml")
	wantClearLine(t, harness.Deltafs(t, "cat", table, "--limit", "-1"), exitUsage, "--limit")
	wantClearLine(t, harness.Deltafs(t, "cat", table+"@v9"), exitNotFound, "@v9")
	if r := shell(t, `set -o pipefail; "$1" cat "$2@v1" | head -n 1`, harness.Binary(), table); !r.OK() || r.Out != "id,name,day\n" {
		t.Errorf("cat into head: exit status %d, %q", r.Code, r.Out)
	}
}

// A directory may be called like a version of another one.
func TestDirectoryNamedLikeAVersionWins(t *testing.T) {
	table := textTable(t).Dir
	other, err := fixture.Create(table+"@v1", fixture.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Add("a.parquet", fixture.Rows(1, 1)); err != nil {
		t.Fatal(err)
	}
	if r := harness.Deltafs(t, "cat", other.Dir); r.Out != "id,name\n1,name-1\n" {
		t.Errorf("%q", r.Out)
	}
}
