package mountpoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestHoldersNameWhoUsesFilesBelow(t *testing.T) {
	dir := t.TempDir()
	inside, beside := filepath.Join(dir, "mnt", "sub"), filepath.Join(dir, "mnt2")
	mkdir(t, inside, beside)
	write(t, filepath.Join(inside, "file"))
	open, err := os.Open(filepath.Join(inside, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()

	cwd := start(t, inside, nil)
	reader := start(t, "/", open)
	start(t, beside, nil)

	got := map[int]string{}
	for _, h := range Holders(filepath.Join(dir, "mnt")) {
		got[h.PID] = h.Use + " " + h.Path
	}
	want := map[int]string{
		cwd:    "cwd " + inside,
		reader: "open " + filepath.Join(inside, "file"),
	}
	if len(got) != len(want) || got[cwd] != want[cwd] || got[reader] != want[reader] {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDescribeListsTheFirstFew(t *testing.T) {
	if got := Describe(nil); !strings.Contains(got, "cannot see") {
		t.Errorf("nobody visible: %q", got)
	}
	many := make([]Holder, 7)
	many[0] = Holder{PID: 12, Command: "rsync", Use: "open", Path: "/mnt/x"}
	got := Describe(many)
	if !strings.HasPrefix(got, "rsync (pid 12, open /mnt/x), ") || !strings.HasSuffix(got, ", 2 more") {
		t.Errorf("got %q", got)
	}
}

// start runs a process that waits, with this working directory and standard
// input, until the test ends, and returns its id.
func start(t *testing.T, dir string, stdin *os.File) int {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Dir, cmd.Stdin = dir, stdin
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd.Process.Pid
}
