package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// hostile is a table whose log was written to do harm.
type hostile struct {
	t   *testing.T
	dir string
}

func newHostile(t *testing.T, lake, name string, lines ...string) *hostile {
	t.Helper()
	h := &hostile{t, filepath.Join(lake, name)}
	table, err := fixture.Create(h.dir, fixture.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	line, err := table.AddLine("good.parquet", fixture.Rows(0, 3))
	if err == nil {
		err = table.Commit("WRITE", append([]string{line}, lines...)...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hostile) path(elem ...string) string {
	return filepath.Join(append([]string{h.dir}, elem...)...)
}

func (h *hostile) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// addPath is an add action of a file with one row of nothing.
func addPath(path string, size int64, members ...string) string {
	p, _ := json.Marshal(path)
	more := ""
	for _, m := range members {
		more += "," + m
	}
	return fmt.Sprintf(`{"add":{"path":%s,"partitionValues":{},"size":%d,"modificationTime":1,"dataChange":true%s}}`, p, size, more)
}

const secret = "SECRET BYTES THAT LIE OUTSIDE EVERY TABLE"

// readTree reads every file below dir. A name that does not answer in time
// fails the test through the watchdog of the test binary.
func readTree(t *testing.T, dir string, visit func(path string, data []byte, err error)) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		data, err := os.ReadFile(path)
		visit(path, data, err)
		return nil
	})
}

// hostilePaths leave the table, name what is no file, or are no names.
func hostilePaths(lake string) []string {
	return []string{
		"../secret", "..%2fsecret", "%2e%2e/secret", "%2E%2E%2Fsecret", "a/../../secret", "./../secret", "x/../../../../../../etc/passwd",
		lake + "/secret", "file://" + lake + "/secret", "file:" + lake + "/secret", "file:///etc/passwd", "FILE:///etc/passwd",
		"s3://bucket/k", "http://host/x", "/", "//etc/passwd", ".", "..", "a%00b", "new\nline", "new%0Aline",
		strings.Repeat("x", 10_000), strings.Repeat("d/", 3000) + "x", "_delta_log/00000000000000000000.json", "a/../_delta_log/_last_checkpoint",
		"%", "%zz", "%ff%fe", `..\secret`, "\u202egpj.parquet", "-rf", "$(id)", "~root/x",
		"link-out", "dir-out/passwd", "dir-out/../secret", "dangling", "loop", "fifo", "device", "socket", "directory",
	}
}

func TestHostileLogsServeNoByteFromOutsideAndHoldNobodyUp(t *testing.T) {
	needRoot(t)
	lake := t.TempDir()
	if err := os.WriteFile(filepath.Join(lake, "secret"), []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range hostilePaths(lake) {
		lines = append(lines, addPath(p, int64(len(secret))))
	}
	h := newHostile(t, lake, "paths", lines...)
	h.must(os.Symlink("../secret", h.path("link-out")))
	h.must(os.Symlink("/etc", h.path("dir-out")))
	h.must(os.Symlink("nowhere", h.path("dangling")))
	h.must(os.Symlink("loop", h.path("loop")))
	h.must(os.Mkdir(h.path("directory"), 0o755))
	h.must(syscall.Mkfifo(h.path("fifo"), 0o644))
	h.must(unix.Mknod(h.path("device"), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5)))) // /dev/zero
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.path("socket")})
	h.must(err)
	defer socket.Close()

	m := harness.Start(t, lake)
	good, files := 0, 0
	want, err := os.ReadFile(h.path("good.parquet"))
	h.must(err)
	passwd, err := os.ReadFile("/etc/passwd")
	h.must(err)
	readTree(t, m.Path("paths", "@v1"), func(path string, data []byte, err error) {
		files++
		if bytes.Contains(data, []byte("SECRET")) || bytes.Equal(data, passwd) {
			t.Errorf("%s serves what lies outside the table", path)
		}
		if bytes.Equal(data, want) {
			good++
		} else if err == nil {
			t.Errorf("%s reads as %q", path, data[:min(len(data), 50)])
		}
	})
	if good != 1 || files < 30 {
		t.Errorf("%d files, %d of them the good one", files, good)
	}
	failures := m.Failures("paths")
	if len(failures) != files-good {
		t.Errorf("%d files do not read, %d reasons are given", files-good, len(failures))
	}
	for _, f := range failures {
		if f.Reason == "" || strings.Contains(f.Reason, "panic") {
			t.Errorf("%s: the reason is %q", f.Name, f.Reason)
		}
	}
	wantNoPanic(t, m)
}

func wantNoPanic(t *testing.T, m *harness.Mount) {
	t.Helper()
	if log := m.Log(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
		t.Errorf("the mount panicked:\n%s", log)
	}
}

// TestWhatIsNoCommitFileNeitherHangsNorHides puts things that are no files
// where the next commit would be, and where the log is looked into.
func TestWhatIsNoCommitFileNeitherHangsNorHides(t *testing.T) {
	needRoot(t)
	lake := t.TempDir()
	next := filepath.Join("_delta_log", "00000000000000000002.json")
	for name, plant := range map[string]func(h *hostile){
		"fifo":           func(h *hostile) { h.must(syscall.Mkfifo(h.path(next), 0o644)) },
		"directory":      func(h *hostile) { h.must(os.Mkdir(h.path(next), 0o755)) },
		"device":         func(h *hostile) { h.must(unix.Mknod(h.path(next), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5)))) },
		"link-to-passwd": func(h *hostile) { h.must(os.Symlink("/etc/passwd", h.path(next))) },
		"link-to-zeros":  func(h *hostile) { h.must(os.Symlink("/dev/zero", h.path(next))) },
		"dangling":       func(h *hostile) { h.must(os.Symlink("nowhere", h.path(next))) },
		"checkpoint-fifo": func(h *hostile) {
			h.must(syscall.Mkfifo(h.path("_delta_log", "00000000000000000001.checkpoint.parquet"), 0o644))
		},
		"last-checkpoint": func(h *hostile) { h.must(os.Symlink("/dev/zero", h.path("_delta_log", "_last_checkpoint"))) },
		"names": func(h *hostile) {
			for _, n := range []string{"2.json", "000000000000000000002.json", "0000000000000000000a.json", "-0000000000000000001.json",
				"18446744073709551616.json", "99999999999999999999.json", "09223372036854775807.json", "00000000000000000002.json.tmp"} {
				h.must(os.WriteFile(h.path("_delta_log", n), []byte(addPath("../secret", 1)+"\n"), 0o644))
			}
		},
	} {
		plant(newHostile(t, lake, name))
	}
	m := harness.Start(t, lake)
	tables, err := os.ReadDir(m.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for _, dir := range []string{"@v1", "current"} {
			entries, err := os.ReadDir(m.Path(table.Name(), dir))
			if err != nil || len(entries) != 1 || entries[0].Name() != "good.parquet" {
				t.Errorf("%s/%s holds %v, %v", table.Name(), dir, entries, err)
			}
		}
		if to, err := os.Readlink(m.Path(table.Name(), "latest")); to != "@v1" {
			t.Errorf("%s: latest is %q, %v", table.Name(), to, err)
		}
	}
	if len(tables) != 9 {
		t.Errorf("%d tables are shown", len(tables))
	}
	wantNoPanic(t, m)
}

// TestBrokenVersionsHarmOnlyThemselvesAndSayWhy has version 2 in ruins, each
// table in its own way.
func TestBrokenVersionsHarmOnlyThemselvesAndSayWhy(t *testing.T) {
	lake := t.TempDir()
	deep := func(open, close string, n int) string { return strings.Repeat(open, n) + strings.Repeat(close, n) }
	metadata := func(schema string) string {
		s, _ := json.Marshal(schema)
		return fmt.Sprintf(`{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":%s,`+
			`"partitionColumns":[],"configuration":{},"createdTime":1}}`, s)
	}
	features := func(reader, writer string) string {
		return fmt.Sprintf(`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":%s,"writerFeatures":%s}}`, reader, writer)
	}
	broken := map[string]string{
		"garbage": "\x00\xff\x16 nonsense", "zeros": strings.Repeat("\x00", 1<<20), "array": "[1,2]", "null": "null", "truncated": `{"add":{"path":"a`,
		"two-actions": strings.TrimSuffix(addPath("a", 1), "}") + `,"remove":{"path":"b","dataChange":true}}`,
		"size-minus":  addPath("a", -1), "size-too-big": strings.Replace(addPath("a", 1), `"size":1`, `"size":9223372036854775808`, 1),
		"size-text": strings.Replace(addPath("a", 1), `"size":1`, `"size":"1"`, 1), "size-none": strings.Replace(addPath("a", 1), `"size":1,`, "", 1),
		"no-path": addPath("", 1), "not-utf8": strings.Replace(addPath("a", 1), `"a"`, "\"\xff\xfe\"", 1), "half-surrogate": strings.Replace(addPath("a", 1), `"a"`, `"\ud800"`, 1),
		"deep-line": `{"commitInfo":` + deep("[", "]", 1_000_000) + `}`, "deep-unknown": `{"zorp":` + deep(`{"a":`, "}", 100_000) + `}`,
		"deep-schema": metadata(deep(`{"type":"array","containsNull":true,"elementType":`, "}", 100_000)), "schema-array": metadata("[]"),
		"schema-long": metadata(`"long"`), "schema-type": metadata(`{"type":"struct","fields":[{"name":"a","type":"quux","nullable":true,"metadata":{}}]}`),
		"schema-twice": metadata(`{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}},{"name":"A","type":"long","nullable":true,"metadata":{}}]}`),
		"protocol-99":  `{"protocol":{"minReaderVersion":99,"minWriterVersion":99}}`, "protocol-minus": `{"protocol":{"minReaderVersion":-1,"minWriterVersion":-1}}`,
		"feature-unknown": features(`["zorp\nx"]`, `["zorp\nx"]`), "feature-number": features("[1]", "[1]"), "feature-text": features(`"deletionVectors"`, `"x"`),
	}
	for name, line := range broken {
		h := newHostile(t, lake, name)
		h.must(os.WriteFile(h.path("_delta_log", "00000000000000000002.json"), []byte(line+"\n"), 0o644))
	}
	m := harness.Start(t, lake)
	for name := range broken {
		if entries, err := os.ReadDir(m.Path(name, "@v1")); err != nil || len(entries) != 1 {
			t.Errorf("%s: version 1 holds %v, %v", name, entries, err)
		}
		if entries, err := os.ReadDir(m.Path(name, "current")); err == nil {
			t.Errorf("%s: current/ holds %v", name, entries)
			continue
		}
		failures := m.Failures(name)
		if len(failures) != 1 || failures[0].Reason == "" || len(failures[0].Reason) > 2000 {
			t.Errorf("%s: the reasons are %.300v", name, failures)
		}
		var status struct {
			Readable struct {
				OK     bool   `json:"ok"`
				Reason string `json:"reason"`
			} `json:"readable"`
		}
		data, err := os.ReadFile(m.Path(name, ".delta", "status.json"))
		if err == nil {
			err = json.Unmarshal(data, &status)
		}
		if err != nil || status.Readable.OK || status.Readable.Reason == "" {
			t.Errorf("%s: the status is %+v, %v", name, status, err)
		}
	}
	wantNoPanic(t, m)
}

func TestCurrentFollowsWhenAMissingCommitIsFilledIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	h := newHostile(t, filepath.Dir(dir), "table")
	for _, name := range []string{"late.parquet", "last.parquet"} {
		data, err := os.ReadFile(h.path("good.parquet"))
		h.must(err)
		h.must(os.WriteFile(h.path(name), data, 0o644))
	}
	commit := func(v int64, text string) { h.must(os.WriteFile(logFile(dir, v), []byte(text), 0o644)) }
	m := harness.Start(t, dir)
	list := func() string {
		entries, err := os.ReadDir(m.Current())
		names := fmt.Sprint(err)
		for _, e := range entries {
			names += " " + e.Name()
		}
		return names
	}
	if got := list(); got != "<nil> good.parquet" {
		t.Fatal(got)
	}
	// Some engines create a commit file empty and fill it later; meanwhile
	// another writes the next version.
	commit(2, "")
	commit(3, addPath("last.parquet", 1)+"\n")
	harness.Eventually(t, 20*time.Second, func() string {
		os.ReadDir(m.Dir)
		return missingIf(m.Latest() != 3, "latest is not version 3")
	})
	commit(2, addPath("late.parquet", 1)+"\n")
	harness.Eventually(t, 20*time.Second, func() string {
		got := list()
		return missingIf(got != "<nil> good.parquet last.parquet late.parquet", "current/ holds "+got)
	})
}

func missingIf(condition bool, what string) string {
	if condition {
		return what
	}
	return ""
}
