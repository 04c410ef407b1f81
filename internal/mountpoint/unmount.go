package mountpoint

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
)

// Own returns the mount of this program at path. ErrNotMounted.
func Own(path string) (Mount, error) {
	point, err := Resolve(path)
	if err != nil {
		return Mount{}, fault.Wrap(ErrNotMounted, err, "cannot be resolved").InFile(path)
	}
	m, ok, err := Find(point)
	if err != nil {
		return Mount{}, err
	}
	if !ok || m.FSType != FSType {
		return Mount{}, notMounted(path)
	}
	return m, nil
}

// Unmount takes the mount away: as root by umount2(2), else through
// fusermount3. A lazy unmount detaches it at once and lets it end when its last
// user has gone. ErrBusy, fs.ErrPermission.
func Unmount(ctx context.Context, m Mount, lazy bool) error {
	h := thisHost()
	for try := 0; ; try++ {
		var err error
		if h.euid == 0 {
			err = syscallUnmount(m.Point, lazy)
		} else {
			err = h.fusermountUnmount(ctx, m.Point, lazy)
		}
		if !errors.Is(err, syscall.EBUSY) || try == busyTries || len(Holders(m.Point)) > 0 {
			return explain(m, err)
		}
		// The kernel lets go of a closed file a little later.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(busyPause):
		}
	}
}

// A mount that is busy with no user in sight is tried again so often.
const (
	busyTries = 10
	busyPause = 100 * time.Millisecond
)

func notMounted(point string) error {
	return fault.New(ErrNotMounted, "not a deltafs mount").
		InFile(point).WithHint("list them: findmnt -t %s", FSType)
}

func syscallUnmount(point string, lazy bool) error {
	const noFollow = 0x8 // UMOUNT_NOFOLLOW
	flags := noFollow
	if lazy {
		flags |= syscall.MNT_DETACH
	}
	return syscall.Unmount(point, flags)
}

func (h host) fusermountUnmount(ctx context.Context, point string, lazy bool) error {
	bin, err := h.fusermount()
	if err != nil {
		return err
	}
	args := []string{"-u"}
	if lazy {
		args = append(args, "-z")
	}
	cmd := exec.CommandContext(ctx, bin, append(args, "--", point)...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if text := string(bytes.TrimSpace(out)); text != "" {
		err = errors.New(text)
	}
	return err
}

// explain turns a refusal into what the user can do. fusermount3 tells its
// reason in words only, so who holds the mount decides.
func explain(m Mount, err error) error {
	if err == nil || errors.Is(err, ErrNoFUSE) {
		return err
	}
	if m.UID != os.Geteuid() && os.Geteuid() != 0 {
		return fault.Wrap(fs.ErrPermission, err, "another user mounted it").InFile(m.Point).WithHint("unmount it as root")
	}
	holders := Holders(m.Point)
	if errors.Is(err, syscall.EBUSY) || len(holders) > 0 {
		return fault.New(ErrBusy, "busy, used by %s", Describe(holders)).InFile(m.Point).
			WithHint("end them, or detach it now: deltafs umount --lazy %s", m.Point)
	}
	return fault.Wrap(ErrUnfit, err, "cannot be unmounted").InFile(m.Point)
}
