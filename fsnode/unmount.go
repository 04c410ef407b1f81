package fsnode

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"github.com/deltafs/deltafs/internal/fault"
)

// detach unmounts lazily: as root by umount2(2), else through fusermount3.
func detach(ctx context.Context, point string) error {
	if os.Geteuid() == 0 {
		return os.NewSyscallError("umount2", syscall.Unmount(point, syscall.MNT_DETACH))
	}
	out, err := exec.CommandContext(ctx, "fusermount3", "-u", "-z", point).CombinedOutput()
	if err != nil {
		return fault.Wrap(ErrBusy, err, "%s", out).InFile(point)
	}
	return nil
}
