package mountpoint

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/deltafs/deltafs/internal/fault"
)

// Sentinels of the package, wrapped in *fault.Error.
var (
	// ErrUnfit: the directory cannot be mounted on.
	ErrUnfit = errors.New("not fit as a mount point")
	// ErrOverlap: the mount would cover a path that it serves or writes.
	ErrOverlap = errors.New("mount point and source overlap")
	// ErrNotMounted: nothing of ours is mounted there.
	ErrNotMounted = errors.New("not a deltafs mount")
	// ErrBusy: processes use files of the mount.
	ErrBusy = errors.New("mount is busy")
	// ErrNoFUSE: this process may not mount, or the system cannot.
	ErrNoFUSE = errors.New("FUSE is not available")
)

// Resolve returns the absolute path of a mount point with its symlinks
// followed, as mountinfo spells it. It works where the mounted file system
// does not answer any more.
func Resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// readlink, unlike lstat, asks nothing of a directory that is mounted on.
	if target, err := os.Readlink(abs); err == nil {
		if resolved, err := filepath.EvalSymlinks(abs); err == nil {
			return resolved, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(abs), target)
		}
		abs = target
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// Check says whether path can be mounted on and returns it resolved. The error
// is ErrUnfit, or fs.ErrPermission for a directory the user may not write.
func Check(path string, allowNonEmpty bool) (string, error) {
	point, err := Resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", missing(path)
	}
	if err != nil {
		return "", unfit(path, err)
	}
	mounted, isMount, err := Find(point)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(point)
	switch {
	case isMount && isDead(point):
		return "", fault.New(ErrUnfit, "a mount is left here whose server is gone (transport endpoint is not connected)").
			InFile(path).WithHint("deltafs umount --lazy %s, or umount -l %s", path, path)
	case isMount && mounted.FSType == FSType:
		return "", fault.New(ErrUnfit, "%s is already mounted here", mounted.Source).
			InFile(path).WithHint("deltafs umount %s", path)
	case errors.Is(err, fs.ErrNotExist):
		return "", missing(path)
	case err != nil:
		return "", unfit(path, err)
	case !info.IsDir():
		return "", fault.New(ErrUnfit, "not a directory").InFile(path).WithHint("mount on an empty directory")
	}
	return point, checkContent(path, point, allowNonEmpty)
}

// isDead reports whether the FUSE server behind point is gone. stat may still
// be answered from the kernel's cache; statfs never is.
func isDead(point string) bool {
	var st syscall.Statfs_t
	return errors.Is(syscall.Statfs(point, &st), syscall.ENOTCONN)
}

func checkContent(path, point string, allowNonEmpty bool) error {
	if !allowNonEmpty {
		empty, err := isEmpty(point)
		if err != nil {
			return unfit(path, err)
		}
		if !empty {
			return fault.New(ErrUnfit, "directory is not empty, and its files would be hidden").
				InFile(path).WithHint("mount on an empty directory, or use --allow-non-empty")
		}
	}
	const writable = 2 // W_OK of access(2): fusermount3 asks the same
	if err := syscall.Access(point, writable); err != nil && os.Geteuid() != 0 {
		return fault.Wrap(fs.ErrPermission, err, "a user may mount only on a directory that they can write").
			InFile(path).WithHint("mount on a directory of your own")
	}
	return nil
}

func isEmpty(dir string) (bool, error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	_, err = f.ReadDir(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

func missing(path string) error {
	return fault.New(ErrUnfit, "mount point does not exist").InFile(path).WithHint("mkdir -p %s", path)
}

func unfit(path string, err error) error {
	return fault.Wrap(ErrUnfit, err, "cannot be used as a mount point").InFile(path)
}
