package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// result is how a run of the binary ended.
type result struct {
	code           int
	stdout, stderr string
}

// deltafs runs the binary.
func deltafs(t *testing.T, args ...string) result {
	t.Helper()
	return execute(t, exec.Command(harness.Binary(), args...))
}

func execute(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// must is the standard output of a run that succeeds without a complaint.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := deltafs(t, args...)
	if r.code != exitOK || r.stderr != "" {
		t.Fatalf("deltafs %s: exit code %d, %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// refused checks that a run failed with the code and one line that holds
// every word.
func refused(t *testing.T, r result, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	if !strings.HasPrefix(r.stderr, "deltafs: ") || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
		t.Errorf("want one line on standard error, got %q and %q on standard output", r.stderr, r.stdout)
	}
	for _, word := range words {
		if !strings.Contains(r.stderr, word) {
			t.Errorf("%q does not say %q", strings.TrimSpace(r.stderr), word)
		}
	}
}

// newTable makes a table: version 0 is empty, 1 adds day=1/a.parquet with 10
// rows, 2 adds day=2/b.parquet with 5, 3 removes the first.
func newTable(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sales")
	table, err := fixture.Create(dir, fixture.Spec{Partition: []string{"day"}})
	check(t, err)
	check(t, table.Add("day=1/a.parquet", fixture.Rows(0, 10)))
	check(t, table.Add("day=2/b.parquet", fixture.Rows(10, 5)))
	check(t, table.Remove("day=1/a.parquet"))
	return dir
}

// newTableOf makes a table of one version with the protocol given.
func newTableOf(t *testing.T, protocol string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "odd")
	_, err := fixture.Create(dir, fixture.Spec{Protocol: protocol})
	check(t, err)
	return dir
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
