//go:build cgo && linux && (amd64 || arm64)

package worker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/deltafs/deltafs/internal/sql"
)

// TestMain is the child process too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sql.WorkerCommand {
		var o Options
		flags := flag.NewFlagSet(sql.WorkerCommand, flag.ExitOnError)
		flags.Int64Var(&o.MemoryLimit, "memory", 0, "")
		flags.IntVar(&o.Threads, "threads", 0, "")
		flags.StringVar(&o.Spill, "spill", "", "")
		_ = flags.Parse(os.Args[2:])
		if err := Run(context.Background(), o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newEngine(t *testing.T, o sql.Options) *sql.Engine {
	t.Helper()
	o.SpillDir = t.TempDir()
	e := sql.New(o)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(o.SpillDir); len(left) > 0 {
			t.Errorf("the engine left %v", left)
		}
	})
	return e
}

// parquet writes the rows of a statement to a file, by an engine that is not
// locked.
func parquet(t *testing.T, statement string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.parquet")
	var db duckdb.Database
	var config duckdb.Config
	var text string
	duckdb.CreateConfig(&config)
	if duckdb.OpenExt(":memory:", &db, config, &text) != duckdb.StateSuccess {
		t.Fatal(text)
	}
	e := &engine{db}
	defer e.close()
	c, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, s := range []string{"SET TimeZone='UTC'", "COPY (" + statement + ") TO " + literal(path) + " (FORMAT parquet)"} {
		if err := c.exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// files yields files by path.
func files(t *testing.T, paths ...string) sql.Files {
	return func(yield func(sql.File, error) bool) {
		for _, path := range paths {
			f, err := os.Open(path)
			if err != nil {
				t.Error(err)
			}
			if !yield(sql.File{File: f, Name: filepath.Base(path)}, err) || err != nil {
				return
			}
		}
	}
}

// column is a column of a type written like decimal(10,2).
func column(name, typ string) sql.Column {
	t := sql.Type{Name: typ}
	if n, _ := fmt.Sscanf(typ, "decimal(%d,%d)", &t.Precision, &t.Scale); n == 2 {
		t.Name = "decimal"
	}
	return sql.Column{Name: name, Type: t}
}

// run returns the whole result of a query.
func run(t *testing.T, e *sql.Engine, q sql.Query, f sql.Files) (string, error) {
	t.Helper()
	s, err := e.Run(context.Background(), q, f)
	if err != nil {
		return "", err
	}
	defer s.Close()
	text, err := io.ReadAll(s)
	return string(text), err
}

func TestTheEngineIsTheOneThatIsPinned(t *testing.T) {
	if got := duckdb.LibraryVersion(); got != Version {
		t.Errorf("the engine linked is %s, want %s: pin the version of duckdb-go-bindings in go.mod", got, Version)
	}
}

func TestValuesOfEveryTypeAsText(t *testing.T) {
	e := newEngine(t, sql.Options{})
	for _, c := range []struct{ value, typ, csv, json string }{
		{"true", "boolean", "true", "true"},
		{"(-128)::TINYINT", "byte", "-128", "-128"},
		{"32767::SMALLINT", "short", "32767", "32767"},
		{"-2147483648", "integer", "-2147483648", "-2147483648"},
		{"9223372036854775807", "long", "9223372036854775807", "9223372036854775807"},
		{"7::TINYINT", "long", "7", "7"},
		{"7", "double", "7.0", "7.0"},
		{"0.1::FLOAT", "float", "0.1", "0.1"},
		{"0.1::FLOAT", "double", "0.10000000149011612", "0.10000000149011612"},
		{"1e300::DOUBLE", "double", "1e+300", "1e+300"},
		{"'nan'::DOUBLE", "double", "NaN", `"NaN"`},
		{"'-inf'::FLOAT", "float", "-Infinity", `"-Infinity"`},
		{"(-0.05)::DECIMAL(4,2)", "decimal(4,2)", "-0.05", "-0.05"},
		{"1.5::DECIMAL(4,1)", "decimal(10,3)", "1.500", "1.500"},
		{"12::INTEGER", "decimal(10,2)", "12.00", "12.00"},
		{"123456789012345678.9::DECIMAL(19,1)", "decimal(19,1)", "123456789012345678.9", "123456789012345678.9"},
		{"(-99999999999999999999999999999999999999)::DECIMAL(38,0)", "decimal(38,0)",
			"-99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"},
		{"0.00000000000000000000000000000000000001::DECIMAL(38,38)", "decimal(38,38)",
			"0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001"},
		{"'a'", "string", "a", `"a"`},
		{"''", "string", `""`, `""`},
		{`'a"b'||chr(10)||','`, "string", "\"a\"\"b\n,\"", `"a\"b\n,"`},
		{"'longer than what is kept inline: é😀'", "string", "longer than what is kept inline: é😀", `"longer than what is kept inline: é😀"`},
		{"'abc'::BLOB", "string", "abc", `"abc"`},
		{`'\x00\xff'::BLOB`, "binary", "AP8=", `"AP8="`},
		{"DATE '1582-10-14'", "date", "1582-10-14", `"1582-10-14"`},
		{"DATE '0001-01-01'", "date", "0001-01-01", `"0001-01-01"`},
		{"DATE '9999-12-31'", "date", "9999-12-31", `"9999-12-31"`},
		{"DATE '2024-02-29'", "timestamp_ntz", "2024-02-29T00:00:00.000000", `"2024-02-29T00:00:00.000000"`},
		{"TIMESTAMPTZ '2024-05-01 10:11:12.123456+02'", "timestamp", "2024-05-01T08:11:12.123456Z", `"2024-05-01T08:11:12.123456Z"`},
		{"TIMESTAMP '1500-01-01 00:00:00'", "timestamp_ntz", "1500-01-01T00:00:00.000000", `"1500-01-01T00:00:00.000000"`},
		{"TIMESTAMP_MS '2024-05-01 10:11:12.5'", "timestamp", "2024-05-01T10:11:12.500000Z", `"2024-05-01T10:11:12.500000Z"`},
		{"TIMESTAMP_NS '1969-12-31 23:59:59.999999999'", "timestamp_ntz", "1969-12-31T23:59:59.999999", `"1969-12-31T23:59:59.999999"`},
		{"1", "void", "", "null"},
		{"NULL::INTEGER", "integer", "", "null"},
		{"NULL::VARCHAR", "string", "", "null"},
	} {
		t.Run(c.typ+" "+c.value, func(t *testing.T) {
			path := parquet(t, "SELECT 1 AS n, "+c.value+" AS v")
			columns := []sql.Column{column("n", "integer"), column("v", c.typ)}
			got, err := run(t, e, sql.Query{Format: sql.CSV, Columns: columns, Limit: -1}, files(t, path))
			if want := "1," + c.csv + "\n"; err != nil || got != want {
				t.Errorf("CSV is %q, %v, want %q", got, err, want)
			}
			got, err = run(t, e, sql.Query{Format: sql.JSONL, Columns: columns, Limit: -1}, files(t, path))
			if want := `{"n":1,"v":` + c.json + "}\n"; err != nil || got != want {
				t.Errorf("JSON is %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestNestedValuesAreJSON(t *testing.T) {
	e := newEngine(t, sql.Options{})
	path := parquet(t, `SELECT {'a': [1, NULL, 3], 'b': MAP {'k"1': DATE '2024-05-01', 'k2': NULL}, 'gone': 1, 'c': {'x': 1.50::DECIMAL(5,2)}} AS v,
		MAP {7: [NULL, 'x']} AS m UNION ALL SELECT NULL, MAP {} UNION ALL SELECT {'a': [], 'b': NULL, 'gone': 1, 'c': NULL}, NULL`)
	list := sql.Column{Name: "a", Type: sql.Type{Name: "array", Parts: []sql.Column{column("", "integer")}}}
	dates := sql.Column{Name: "b", Type: sql.Type{Name: "map", Parts: []sql.Column{column("", "string"), column("", "date")}}}
	inner := sql.Column{Name: "c", Type: sql.Type{Name: "struct", Parts: []sql.Column{column("x", "decimal(6,3)"), column("later", "long")}}}
	columns := []sql.Column{
		{Name: "v", Type: sql.Type{Name: "struct", Parts: []sql.Column{list, dates, inner}}},
		{Name: "m", Type: sql.Type{Name: "map", Parts: []sql.Column{column("", "long"),
			{Type: sql.Type{Name: "array", Parts: []sql.Column{column("", "string")}}}}}},
	}
	first := `{"a":[1,null,3],"b":{"k\"1":"2024-05-01","k2":null},"c":{"x":1.500,"later":null}}`
	want := `{"v":` + first + `,"m":{"7":[null,"x"]}}
{"v":null,"m":{}}
{"v":{"a":[],"b":null,"c":null},"m":null}
`
	got, err := run(t, e, sql.Query{Format: sql.JSONL, Columns: columns, Limit: -1}, files(t, path))
	if err != nil || got != want {
		t.Errorf("JSON is\n%s, %v, want\n%s", got, err, want)
	}
	got, err = run(t, e, sql.Query{Format: sql.CSV, Columns: columns, Limit: 1}, files(t, path))
	if want := `"` + strings.ReplaceAll(first, `"`, `""`) + `","{""7"":[null,""x""]}"` + "\n"; err != nil || got != want {
		t.Errorf("CSV is\n%s, %v, want\n%s", got, err, want)
	}
}

func TestVariantsOfAFile(t *testing.T) {
	e := newEngine(t, sql.Options{})
	path := parquet(t, `SELECT {'value': '\x02\x01\x00\x00\x02\x0C\x07'::BLOB, 'metadata': '\x01\x01\x00\x01a'::BLOB} AS v UNION ALL SELECT NULL`)
	q := sql.Query{Format: sql.JSONL, Columns: []sql.Column{column("v", "variant")}, Limit: -1}
	if got, err := run(t, e, q, files(t, path)); err != nil || got != "{\"v\":{\"a\":7}}\n{\"v\":null}\n" {
		t.Errorf("%q, %v", got, err)
	}
	path = parquet(t, `SELECT {'value': '\x02'::BLOB, 'metadata': '\x01'::BLOB} AS v`)
	if got, err := run(t, e, q, files(t, path)); !errors.Is(err, sql.ErrFailed) {
		t.Errorf("a broken variant: %q, %v", got, err)
	}
}

func TestFilesInOrderWithConstantsHeaderAndLimit(t *testing.T) {
	e := newEngine(t, sql.Options{})
	paths := []string{
		parquet(t, "SELECT range AS n FROM range(300000)"),
		parquet(t, "SELECT 300000 + range AS N, 'more' AS unknown FROM range(10)"),
	}
	in := func(yield func(sql.File, error) bool) {
		i := 0
		for f, err := range files(t, paths...) {
			f.Constants = map[int]sql.Constant{1: {Text: fmt.Sprint("p,", i)}, 2: {Null: i == 0, Text: "1.50"}}
			i++
			if !yield(f, err) {
				return
			}
		}
	}
	q := sql.Query{Format: sql.CSV, Header: true, Limit: -1,
		Columns: []sql.Column{column("n", "long"), column("p", "string"), column("d", "decimal(5,2)"), column("later", "date")}}
	got, err := run(t, e, q, in)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 300011 || lines[0] != "n,p,d,later" {
		t.Fatalf("%d lines, the first is %q", len(lines), lines[0])
	}
	for i, line := range lines[1:] {
		want := fmt.Sprintf(`%d,"p,0",,`, i)
		if i >= 300000 {
			want = fmt.Sprintf(`%d,"p,1",1.50,`, i)
		}
		if line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
	q.Format, q.Limit = sql.JSONL, 300001
	got, err = run(t, e, q, in)
	lines = strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if want := `{"n":300000,"p":"p,1","d":1.50,"later":null}`; err != nil || len(lines) != 300001 || lines[300000] != want {
		t.Errorf("%d lines, %v, the last is %q, want %q", len(lines), err, lines[len(lines)-1], want)
	}
}

func TestRowsAsOneParquetFile(t *testing.T) {
	e := newEngine(t, sql.Options{})
	paths := []string{
		parquet(t, "SELECT range AS n, {'a': 1} AS s FROM range(100000)"),
		parquet(t, "SELECT 7::TINYINT AS n, {'b': 2, 'a': 3} AS s"),
	}
	in := func(yield func(sql.File, error) bool) {
		for f, err := range files(t, paths...) {
			f.Constants = map[int]sql.Constant{1: {Text: "it's"}, 2: {Text: "2024-05-01T10:11:12.500000Z"}}
			if !yield(f, err) {
				return
			}
		}
	}
	nested := sql.Column{Name: "s", Type: sql.Type{Name: "struct", Parts: []sql.Column{column("a", "integer"), column("c", "date")}}}
	q := sql.Query{Format: sql.Parquet, Limit: -1, Columns: []sql.Column{
		column("n", "long"), column("p", "string"), column("t", "timestamp"), nested, column("later", "decimal(38,2)")}}
	written, err := run(t, e, q, in)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "written.parquet")
	if err := os.WriteFile(path, []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	q.Format = sql.JSONL
	want, err := run(t, e, q, in)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := run(t, e, q, files(t, path)); err != nil || got != want {
		t.Errorf("the file reads as %d bytes of text, %v, want %d", len(got), err, len(want))
	}
	q.Format, q.Limit = sql.Parquet, 0
	for _, in := range []sql.Files{in, files(t)} {
		written, err := run(t, e, q, in)
		if err == nil {
			err = os.WriteFile(path, []byte(written), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run(t, e, sql.Query{Format: sql.CSV, Columns: q.Columns, Limit: -1}, files(t, path)); err != nil || got != "" {
			t.Errorf("a file of no rows reads as %q, %v", got, err)
		}
	}
}

func TestWhatCannotBeShownExactlyIsRefused(t *testing.T) {
	e := newEngine(t, sql.Options{})
	for value, typ := range map[string]string{
		"1.5::DOUBLE": "long", "1::BIGINT": "double", "0.1::DOUBLE": "float", "300": "byte",
		"1.55::DECIMAL(4,2)": "decimal(4,1)", "'1'": "long", "TIMESTAMP '2024-01-01'": "date", `'\xff'::BLOB`: "string",
		"[1]": "long", "1 ": "struct",
	} {
		q := sql.Query{Format: sql.CSV, Columns: []sql.Column{column("v", typ)}, Limit: -1}
		_, err := run(t, e, q, files(t, parquet(t, "SELECT "+value+" AS v")))
		if !errors.Is(err, sql.ErrFailed) || !strings.Contains(err.Error(), "file.parquet") {
			t.Errorf("%s as %s: %v", value, typ, err)
		}
	}
}

func TestADamagedFileEndsTheTextWithAnError(t *testing.T) {
	e := newEngine(t, sql.Options{})
	good := parquet(t, "SELECT range AS n FROM range(10)")
	bad := parquet(t, "SELECT hash(range)::UBIGINT::VARCHAR AS n FROM range(200000)")
	b, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[len(b)/3 : len(b)/2])
	if err := os.WriteFile(bad, b, 0o600); err != nil {
		t.Fatal(err)
	}
	q := sql.Query{Format: sql.JSONL, Columns: []sql.Column{{Name: "n", Type: sql.Type{Name: "void"}}}, Limit: -1}
	q.Columns[0].Type.Name = "string"
	got, err := run(t, e, q, files(t, bad))
	if !errors.Is(err, sql.ErrFailed) {
		t.Errorf("a damaged file ends with %v after %d bytes", err, len(got))
	}
	q.Columns[0].Type.Name = "long"
	if got, err := run(t, e, q, files(t, good)); err != nil || strings.Count(got, "\n") != 10 {
		t.Errorf("after a damaged file: %q, %v", got, err)
	}
}

func TestErrorOfTheFilesComesAfterTheRowsBefore(t *testing.T) {
	e := newEngine(t, sql.Options{})
	gone := errors.New("the file is gone")
	path := parquet(t, "SELECT range AS n FROM range(3)")
	in := func(yield func(sql.File, error) bool) {
		for f, err := range files(t, path) {
			if !yield(f, err) {
				return
			}
		}
		yield(sql.File{}, gone)
	}
	got, err := run(t, e, sql.Query{Format: sql.CSV, Columns: []sql.Column{column("n", "long")}, Limit: -1}, in)
	if got != "0\n1\n2\n" || !errors.Is(err, gone) {
		t.Errorf("%q, %v", got, err)
	}
}

// endless is a query whose result nobody reads to its end.
func endless(t *testing.T, ctx context.Context, e *sql.Engine) *sql.Stream {
	t.Helper()
	path := parquet(t, "SELECT range AS n FROM range(3000000)")
	s, err := e.Run(ctx, sql.Query{Format: sql.CSV, Columns: []sql.Column{column("n", "long")}, Limit: -1}, files(t, path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := io.ReadFull(s, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	return s
}

// children are the processes that this one has started.
func children(t *testing.T) []string {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		out = append(out, strings.Fields(string(b))...)
	}
	return out
}

func TestCrashFailsTheQueryAndTheNextOneWorks(t *testing.T) {
	e := newEngine(t, sql.Options{})
	s := endless(t, context.Background(), e)
	pids := children(t)
	if len(pids) != 1 {
		t.Fatalf("children: %v", pids)
	}
	var pid int
	fmt.Sscan(pids[0], &pid)
	if err := syscall.Kill(pid, syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, s); !errors.Is(err, sql.ErrCrashed) {
		t.Errorf("the query under way ends with %v", err)
	}
	s.Close()
	path := parquet(t, "SELECT 1 AS n")
	got, err := run(t, e, sql.Query{Format: sql.CSV, Columns: []sql.Column{column("n", "long")}, Limit: -1}, files(t, path))
	if err != nil || got != "1\n" {
		t.Errorf("after a crash: %q, %v", got, err)
	}
}

func TestCancelEndsTheQuery(t *testing.T) {
	e := newEngine(t, sql.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	s := endless(t, ctx, e)
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := io.Copy(io.Discard, blocked{s, ctx}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled query ends with %v", err)
	}
	// Closing in the middle lets the engine go on with the next.
	endless(t, context.Background(), e).Close()
	endless(t, context.Background(), e).Close()
}

// blocked reads nothing before the context is done.
type blocked struct {
	io.Reader
	ctx context.Context
}

func (b blocked) Read(p []byte) (int, error) {
	<-b.ctx.Done()
	return b.Reader.Read(p)
}

func TestIdleChildEnds(t *testing.T) {
	e := newEngine(t, sql.Options{Idle: time.Millisecond})
	endless(t, context.Background(), e).Close()
	for len(children(t)) > 0 {
		time.Sleep(time.Millisecond)
	}
	endless(t, context.Background(), e).Close()
}

func TestEndOfAQueryHarmsNoOther(t *testing.T) {
	e := newEngine(t, sql.Options{})
	path := parquet(t, "SELECT 1 AS n")
	q := sql.Query{Format: sql.CSV, Columns: []sql.Column{column("n", "long")}, Limit: -1}
	const workers, rounds = 4, 300
	done := make(chan error)
	for range workers {
		go func() {
			for range rounds {
				if got, err := run(t, e, q, files(t, path)); err != nil || got != "1\n" {
					done <- fmt.Errorf("%q: %w", got, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range workers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestManyQueriesAtATime(t *testing.T) {
	e := newEngine(t, sql.Options{Threads: 2})
	// None of them is read on while the next one begins.
	var streams []*sql.Stream
	for range 12 {
		streams = append(streams, endless(t, context.Background(), e))
	}
	if pids := children(t); len(pids) != 1 {
		t.Errorf("children: %v", pids)
	}
	for _, s := range streams {
		n, err := io.Copy(io.Discard, s)
		if want := int64(22888890 - 10); err != nil || n != want {
			t.Errorf("%d bytes, %v, want %d", n, err, want)
		}
	}
}

func TestEngineIsLocked(t *testing.T) {
	e, err := openEngine(Options{MemoryLimit: 100 << 20, Spill: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	c, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	secret := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secret, []byte("a\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	passed, err := os.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	dir, err := os.Open(filepath.Dir(secret))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := c.exec(fmt.Sprintf("SELECT * FROM read_text('%s%d')", descriptors, passed.Fd())); err != nil {
		t.Errorf("a descriptor cannot be read: %v", err)
	}
	for _, statement := range []string{
		"SELECT * FROM read_text('" + secret + "')",
		"SELECT * FROM '" + secret + "'",
		"SELECT * FROM read_csv('/etc/passwd')",
		"SELECT * FROM read_text('/proc/self/fd/../../../etc/passwd')",
		fmt.Sprintf("SELECT * FROM read_text('%s%d/../../../../etc/passwd')", descriptors, dir.Fd()),
		fmt.Sprintf("SELECT * FROM read_text('%s%d/secret.csv')", descriptors, dir.Fd()),
		"SELECT * FROM read_text('/proc/self/environ')",
		"SELECT * FROM read_text('/proc/self/fdinfo/0')",
		"SELECT * FROM glob('" + filepath.Dir(secret) + "/*')",
		"COPY (SELECT 1) TO '" + secret + "'",
		"ATTACH '" + secret + "' AS other",
		"EXPORT DATABASE '" + filepath.Dir(secret) + "'",
		"INSTALL httpfs", "LOAD httpfs", "LOAD '" + secret + "'",
		"SELECT * FROM read_parquet('https://example.com/a.parquet')",
		"SET enable_external_access = true", "SET GLOBAL allowed_directories = ['/']", "SET GLOBAL allowed_paths = ['/etc/passwd']",
		"SET memory_limit = '100GB'", "SET temp_directory = '/tmp'", "RESET lock_configuration", "SET lock_configuration = false",
	} {
		if err := c.exec(statement); err == nil {
			t.Errorf("%s: is possible", statement)
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "a\n1\n" {
		t.Errorf("the file was changed: %q, %v", b, err)
	}
}

func TestHostileNamesStayNames(t *testing.T) {
	e := newEngine(t, sql.Options{})
	name := `x" FROM read_text('/etc/passwd') --`
	path := parquet(t, "SELECT 1 AS "+identifier(name))
	q := sql.Query{Format: sql.CSV, Header: true, Limit: -1, Columns: []sql.Column{column(name, "long"), column(`"; DROP`, "long")}}
	got, err := run(t, e, q, files(t, path))
	if want := "\"x\"\" FROM read_text('/etc/passwd') --\",\"\"\"; DROP\"\n1,\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestSpillingStaysInItsDirectory(t *testing.T) {
	dir := t.TempDir()
	e, err := openEngine(Options{MemoryLimit: 60 << 20, Threads: 1, Spill: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	c, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.exec("CREATE TEMP TABLE t AS SELECT range AS n, repeat('x', 100) || hash(range) AS s FROM range(1000000)"); err != nil {
		t.Fatal(err)
	}
	if spilled, err := os.ReadDir(dir); err != nil || len(spilled) == 0 {
		t.Errorf("more than the memory allowed was kept without spilling: %v, %v", spilled, err)
	}
}
