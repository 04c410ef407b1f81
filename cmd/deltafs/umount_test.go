package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/deltafs/deltafs/integration/harness"
	"github.com/deltafs/deltafs/internal/mountpoint"
)

func TestUmountRefusesWhatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	refused(t, deltafs(t, "umount", dir), exitMountpoint, "not a deltafs mount")
	refused(t, deltafs(t, "umount", "/proc"), exitMountpoint, "not a deltafs mount")
	refused(t, deltafs(t, "umount", "--lazy", filepath.Join(dir, "none")), exitMountpoint, "none")
}

func TestUmountNamesWhoUsesTheMount(t *testing.T) {
	m := harness.Start(t, newTable(t))
	f := open(t, m.Path("@v3", "day=2", "b.parquet"))
	refused(t, deltafs(t, "umount", m.Dir), exitMountpoint, "busy", "pid "+strconv.Itoa(os.Getpid()), "--lazy")
	readable(t, f)
	check(t, f.Close())
	m.Unmount()
}

func TestUmountLazyLeavesOpenFilesToTheirUsers(t *testing.T) {
	m := harness.Start(t, newTable(t))
	f := open(t, m.Path("@v3", "day=2", "b.parquet"))
	must(t, "umount", "--lazy", m.Dir)
	if harness.Mounted(m.Dir) {
		t.Error("still mounted")
	}
	readable(t, f)
	check(t, f.Close())
	m.AwaitEnd()
}

func TestUmountFollowsSymlinks(t *testing.T) {
	m := harness.Start(t, newTable(t))
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(m.Dir, link))
	awaitLog(t, m, "mounted")
	must(t, "umount", link)
	m.AwaitEnd()
}

func TestStaleMountIsExplainedAndRemoved(t *testing.T) {
	table, mnt := killed(t)
	refused(t, deltafs(t, "mount", table, mnt), exitMountpoint, "server is gone", "umount --lazy", "umount -l")
	must(t, "umount", "--lazy", mnt)
	if harness.Mounted(mnt) {
		t.Error("still mounted")
	}
	m := harness.StartWith(t, table, harness.Options{Dir: mnt})
	awaitLog(t, m, "mounted")
	m.Unmount()
}

func TestUmountOfAStaleMountDoesNotWait(t *testing.T) {
	_, mnt := killed(t)
	must(t, "umount", mnt)
	if harness.Mounted(mnt) {
		t.Error("still mounted")
	}
}

func TestOrdinaryUserMountsThroughFusermount3(t *testing.T) {
	const nobody = 65534
	user := &syscall.Credential{Uid: nobody, Gid: nobody}
	as := func(args ...string) result {
		t.Helper()
		cmd := exec.Command(harness.Binary(), args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
		return execute(t, cmd)
	}
	table := newTable(t)
	check(t, os.Chmod(filepath.Dir(filepath.Dir(table)), 0o755))
	check(t, os.Chmod(filepath.Dir(table), 0o755))
	mnt := harness.MountPoint(t)
	check(t, os.Chown(mnt, nobody, nobody))
	if _, err := exec.LookPath("fusermount3"); err != nil {
		refused(t, as("mount", table, mnt), exitPermission, "fusermount3", "package fuse3")
		return
	}
	if info, err := os.Stat("/dev/fuse"); err != nil || info.Mode()&0o006 != 0o006 {
		refused(t, as("mount", table, mnt), exitPermission, "/dev/fuse", "chmod 666")
		return
	}
	if r := as("mount", "--read-only", "-d", table, mnt); r != (result{}) {
		t.Fatalf("got %+v", r)
	}
	t.Cleanup(func() { deltafs(t, "umount", "--lazy", mnt) })
	if m, err := mountpoint.Own(mnt); err != nil || m.UID != nobody {
		t.Errorf("got %+v, %v", m, err)
	}
	if r := as("umount", mnt); r != (result{}) || harness.Mounted(mnt) {
		t.Errorf("got %+v", r)
	}
}

func TestOrdinaryUserCannotUnmountWhatRootMounted(t *testing.T) {
	m := harness.Start(t, newTable(t))
	cmd := exec.Command(harness.Binary(), "umount", m.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	refused(t, execute(t, cmd), exitPermission)
	if !harness.Mounted(m.Dir) {
		t.Error("it is gone")
	}
}
