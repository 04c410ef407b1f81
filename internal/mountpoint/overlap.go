package mountpoint

import (
	"os"
	"path/filepath"

	"github.com/deltafs/deltafs/internal/fault"
)

// CheckOverlap refuses a mount on point (from [Check]) that would hide path,
// or be made inside it: a server that reads its table through its own mount
// waits for itself. What names the path in the message ("table", "log file").
// A path that does not exist yet is judged by its nearest parent that does.
func CheckOverlap(point, what, path string) error {
	if err := CheckOutside(point, what, path); err != nil {
		return err
	}
	real, err := resolveExisting(path)
	if err == nil && contains(real, point) {
		err = overlap(point, "the mount point lies inside the %s %s", what, path)
	}
	return err
}

// CheckOutside refuses a mount on point that would hide path.
func CheckOutside(point, what, path string) error {
	real, err := resolveExisting(path)
	switch {
	case err != nil:
		return err
	case same(point, real):
		return overlap(point, "the %s %s is the mount point itself", what, path)
	case contains(point, real):
		return overlap(point, "the %s %s lies inside the mount point", what, path)
	}
	return nil
}

func overlap(point, format, what, path string) error {
	return fault.New(ErrOverlap, format, what, path).
		InFile(point).WithHint("mount on a directory apart from it")
}

// contains reports whether dir is an ancestor of path, by name or, seen
// through bind mounts, by inode.
func contains(dir, path string) bool {
	for parent := filepath.Dir(path); ; parent = filepath.Dir(parent) {
		if same(dir, parent) {
			return true
		}
		if parent == filepath.Dir(parent) {
			return false
		}
	}
}

func same(a, b string) bool {
	if a == b {
		return true
	}
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ia, ib)
}

// resolveExisting follows symlinks in the part of path that exists.
func resolveExisting(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest), nil
		} else if dir == filepath.Dir(dir) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
