package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// EnvBinary names a ready binary to test instead of building one.
const EnvBinary = "DELTAFS_BIN"

// EnvRace, when set, makes the harness build the binary with the race
// detector.
const EnvRace = "DELTAFS_RACE"

// binary is set by Main before any test runs.
var binary string

// Main builds the binary once, runs the tests and returns the exit code for
// TestMain.
func Main(m *testing.M) int {
	if binary = os.Getenv(EnvBinary); binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "deltafs-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// An ordinary user runs it too.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "deltafs")
	args := []string{"build", "-o", binary}
	if os.Getenv(EnvRace) != "" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "github.com/deltafs/deltafs/cmd/deltafs")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building deltafs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// Binary is the path of the binary under test.
func Binary() string { return binary }
