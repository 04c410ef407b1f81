package fsnode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/integration/fixture"
)

// The tests mount in this process. A goroutine that waits for the mount does
// not keep the ones that serve it from running, as long as it enters the
// kernel by an ordinary system call: nothing here maps a file of the mount, and
// the kernel must not ask it to poll one, because the runtime does that without
// giving up its processor. So another process asks first, and the kernel learns
// that polling is not implemented.

// pollEnv names a file that a copy of this program opens, and nothing else.
const pollEnv = "FSNODE_TEST_POLL"

func TestMain(m *testing.M) {
	if name := os.Getenv(pollEnv); name != "" {
		if _, err := os.Open(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// unlearnPolling has another process poll a file that go-fuse serves in every
// mount.
func unlearnPolling(t *testing.T, point string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), pollEnv+"="+filepath.Join(point, ".go-fuse-epoll-hack"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// row is a row of the tables that the tests make.
type row struct {
	ID int64  `parquet:"id"`
	S  string `parquet:"s"`
}

const rowSchema = `{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},{"name":"s","type":"string","nullable":true,"metadata":{}}]}`

// rowFile makes a Parquet file of n rows; salt tells files of one length apart.
func rowFile(n int, salt string) []byte {
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{int64(i), fmt.Sprintf("%s-%d", salt, i)}
	}
	return fixture.Parquet(rows)
}

// testTable is a table on disk.
type testTable struct {
	t    testing.TB
	path string
	next int64
	time time.Time
}

// epoch is when the first commit of every test table was made; the others
// follow by the hour.
var epoch = time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)

func makeTable(t testing.TB, path string, partitions ...string) *testTable {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path, logDir), 0o755); err != nil {
		t.Fatal(err)
	}
	tab := &testTable{t: t, path: path, time: epoch}
	schema := rowSchema
	for _, p := range partitions {
		schema = strings.Replace(schema, `"fields":[`, `"fields":[{"name":"`+p+`","type":"integer","nullable":true,"metadata":{}},`, 1)
	}
	tab.commit(
		map[string]any{"protocol": map[string]any{"minReaderVersion": 1, "minWriterVersion": 2}},
		map[string]any{"metaData": map[string]any{
			"id": fmt.Sprintf("id-%d", time.Now().UnixNano()), "format": map[string]any{"provider": "parquet", "options": map[string]any{}},
			"schemaString": schema, "partitionColumns": append([]string{}, partitions...), "configuration": map[string]any{},
		}})
	return tab
}

// commit writes the next commit file.
func (tab *testTable) commit(actions ...map[string]any) {
	tab.t.Helper()
	actions = append([]map[string]any{{"commitInfo": map[string]any{
		"timestamp": tab.time.UnixMilli(), "operation": "TEST", "operationParameters": map[string]any{},
	}}}, actions...)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, a := range actions {
		if err := enc.Encode(a); err != nil {
			tab.t.Fatal(err)
		}
	}
	name := filepath.Join(tab.path, logDir, fmt.Sprintf("%020d.json", tab.next))
	tmp := filepath.Join(tab.path, "commit.tmp")
	if err := os.WriteFile(tmp, b.Bytes(), 0o644); err != nil {
		tab.t.Fatal(err)
	}
	if err := os.Chtimes(tmp, tab.time, tab.time); err != nil {
		tab.t.Fatal(err)
	}
	if err := os.Rename(tmp, name); err != nil {
		tab.t.Fatal(err)
	}
	tab.next++
	tab.time = tab.time.Add(time.Hour)
}

// add writes a data file and returns the action that adds it.
func (tab *testTable) add(path string, data []byte, values map[string]string) map[string]any {
	tab.t.Helper()
	full := filepath.Join(tab.path, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		tab.t.Fatal(err)
	}
	if err := os.WriteFile(full, data, 0o644); err != nil {
		tab.t.Fatal(err)
	}
	if values == nil {
		values = map[string]string{}
	}
	return map[string]any{"add": map[string]any{
		"path": path, "partitionValues": values, "size": len(data),
		"modificationTime": tab.time.UnixMilli(), "dataChange": true,
	}}
}

func (tab *testTable) remove(path string) map[string]any {
	return map[string]any{"remove": map[string]any{"path": path, "deletionTimestamp": tab.time.UnixMilli(), "dataChange": true}}
}

// testMount is a mounted file system.
type testMount struct {
	t    *testing.T
	fs   *FS
	srv  *Server
	path string
}

// mount mounts source for the test. A mount that a test leaves busy, or that
// outlives the process because it was killed, is detached.
func mount(t *testing.T, source string, change ...func(*Options)) *testMount {
	t.Helper()
	o := Options{Source: source, EngineInfo: "deltafs/test", Location: time.UTC, Logger: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	for _, c := range change {
		c(&o)
	}
	f, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	point := t.TempDir()
	undertaker(t, point)
	srv, err := f.Mount(point)
	if err != nil {
		t.Fatal(err)
	}
	m := &testMount{t, f, srv, point}
	t.Cleanup(m.close)
	unlearnPolling(t, point)
	return m
}

func (m *testMount) close() {
	ctx := context.Background()
	if m.srv.ended() {
		return
	}
	if err := m.srv.Unmount(ctx); err != nil {
		m.t.Errorf("unmount: %v", err)
		if err := m.srv.UnmountLazy(ctx); err != nil {
			m.t.Errorf("detach: %v", err)
		}
		return
	}
	if err := m.fs.Close(ctx); err != nil {
		m.t.Logf("close: %v", err)
	}
}

// undertaker starts a process that takes the mount away when this one has
// ended, however it did. A process that is killed while it waits for its own
// mount lives on as a zombie until the connection is aborted, which -f does.
func undertaker(t *testing.T, point string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `
		while [ -e "/proc/$1" ] && ! grep -qs '^State:.Z' "/proc/$1/status"; do sleep 1; done
		umount -f "$0" 2>/dev/null; umount -l "$0" 2>/dev/null || fusermount3 -uz "$0" 2>/dev/null`,
		point, strconv.Itoa(os.Getpid()))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// testLog sends the server's log to the test's.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	// A line may come after the test, from a goroutine that is ending.
	defer func() { _ = recover() }()
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (m *testMount) join(parts ...string) string {
	return filepath.Join(append([]string{m.path}, parts...)...)
}

// names lists a directory.
func (m *testMount) names(parts ...string) []string {
	m.t.Helper()
	entries, err := os.ReadDir(m.join(parts...))
	if err != nil {
		m.t.Fatal(err)
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out
}

func (m *testMount) read(parts ...string) []byte {
	m.t.Helper()
	b, err := os.ReadFile(m.join(parts...))
	if err != nil {
		m.t.Fatal(err)
	}
	return b
}

func (m *testMount) latest(parts ...string) string {
	m.t.Helper()
	target, err := os.Readlink(m.join(append(parts, nameLatest)...))
	if err != nil {
		m.t.Fatal(err)
	}
	return target
}

// write makes a file as cp does and returns what close(2) said.
func write(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// eventually waits until what another process did has arrived.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s did not happen", what)
}

// run runs a program that uses the mount.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	return string(out), err
}

func lstatOf(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(path, err)
	}
	return st
}

func sameBytes(t *testing.T, r io.Reader, want []byte) {
	t.Helper()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes that differ from the %d expected", len(got), len(want))
	}
}
