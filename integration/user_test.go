package integration

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// nobody is an ordinary user. As root the tests act as one; run by an ordinary
// user they already are.
func nobody() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

// openDevice lets ordinary users at /dev/fuse for the length of the test, where
// the machine is not set up so (most are).
func openDevice(t *testing.T) {
	t.Helper()
	st, err := os.Stat("/dev/fuse")
	if err != nil {
		t.Fatal(err)
	}
	if mode := st.Mode().Perm(); os.Geteuid() == 0 && mode&0o006 != 0o006 {
		if err := os.Chmod("/dev/fuse", 0o666); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod("/dev/fuse", mode) })
	}
}

// userTable makes a table that belongs to the ordinary user, in a directory
// that everybody may enter.
func userTable(t *testing.T) string {
	t.Helper()
	openDevice(t)
	root, err := os.MkdirTemp("", "deltafs-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	table := filepath.Join(root, "table")
	if _, err := fixture.Create(table, fixture.Spec{}); err != nil {
		t.Fatal(err)
	}
	own(t, root)
	return table
}

func own(t *testing.T, root string) {
	t.Helper()
	if u := nobody(); u != nil {
		harness.Must(t, "chown", "-R", "65534:65534", root)
	}
	harness.Must(t, "chmod", "-R", "a+rX", root)
}

// userMountPoint makes a mount point that belongs to the ordinary user.
func userMountPoint(t *testing.T) string {
	t.Helper()
	dir := harness.MountPoint(t)
	own(t, dir)
	return dir
}

func TestOrdinaryUserMountsThroughFusermount(t *testing.T) {
	table, user := userTable(t), nobody()
	dir := userMountPoint(t)
	m := harness.StartWith(t, table, harness.Options{User: user, Dir: dir})
	source := filepath.Join(filepath.Dir(table), "x.parquet")
	if err := fixture.WriteParquet(source, fixture.Rows(1, 100)); err != nil {
		t.Fatal(err)
	}
	own(t, source)
	for _, script := range []string{
		`cp "$1" "$2/current/"`,
		`cmp "$1" "$2/@v1/x.parquet"`,
		`test "$(readlink "$2/latest")" = @v1`,
		`rm "$2/current/x.parquet" && sync "$2/current"`,
		`test "$(readlink "$2/latest")" = @v2`,
	} {
		r := harness.RunAs(t, user, nil, "bash", "-c", script, "bash", source, dir)
		if !r.OK() {
			t.Fatalf("%s: exit status %d\n%s\n%s", script, r.Code, r.Out, m.Log())
		}
	}
	if r := harness.RunAs(t, user, nil, harness.Binary(), "umount", dir); !r.OK() {
		t.Fatalf("umount: exit status %d\n%s", r.Code, r.Out)
	}
	m.AwaitEnd()
	rows, err := fixture.ReadRows(table, 1)
	if err != nil || len(rows) != 100 {
		t.Fatalf("version 1 holds %d rows: %v", len(rows), err)
	}
}

func TestTableWithoutWritePermissionReadsButRefusesWrites(t *testing.T) {
	table, user := userTable(t), nobody()
	source := filepath.Join(filepath.Dir(table), "x.parquet")
	if err := fixture.WriteParquet(source, fixture.Rows(1, 3)); err != nil {
		t.Fatal(err)
	}
	own(t, source)
	if user != nil {
		harness.Must(t, "chown", "-R", "0:0", table)
	}
	harness.Must(t, "chmod", "-R", "u-w,go-w", table)
	t.Cleanup(func() { harness.Run(t, "chmod", "-R", "u+w", table) })
	dir := userMountPoint(t)
	m := harness.StartWith(t, table, harness.Options{User: user, Dir: dir})
	r := harness.RunAs(t, user, nil, "ls", dir+"/@v0")
	if !r.OK() {
		t.Fatalf("ls: %s\n%s", r.Out, m.Log())
	}
	r = harness.RunAs(t, user, nil, "cp", source, dir+"/current/")
	wantFailed(t, r)
	if !strings.Contains(r.Out, "Permission denied") && !strings.Contains(r.Out, "Read-only file system") {
		t.Errorf("cp said %q", r.Out)
	}
	if got, _ := fixture.Versions(table); len(got) != 1 {
		t.Errorf("versions in the log: %v", got)
	}
	r = harness.RunAs(t, user, nil, "cat", dir+"/.delta/status.json")
	if !r.OK() || !strings.Contains(r.Out, "the table cannot be written here") {
		t.Errorf("status.json says %q", r.Out)
	}
}

// A file whose log entry cannot be written must fail when it is created: not
// every tool looks at the result of close.
func TestTableWhoseLogMayNotBeWrittenRefusesCreate(t *testing.T) {
	table, user := userTable(t), nobody()
	log := filepath.Join(table, "_delta_log")
	if user != nil {
		harness.Must(t, "chown", "-R", "0:0", log)
	}
	harness.Must(t, "chmod", "-R", "a-w", log)
	t.Cleanup(func() { harness.Run(t, "chmod", "-R", "u+w", log) })
	dir := userMountPoint(t)
	harness.StartWith(t, table, harness.Options{User: user, Dir: dir})
	r := harness.RunAs(t, user, nil, "touch", dir+"/current/x.parquet")
	wantFailed(t, r)
	if !strings.Contains(r.Out, "Permission denied") {
		t.Errorf("touch said %q", r.Out)
	}
}

func TestSourceWithoutReadPermissionIsRefused(t *testing.T) {
	table, user := userTable(t), nobody()
	if user != nil {
		harness.Must(t, "chown", "-R", "0:0", table)
	}
	harness.Must(t, "chmod", "0000", table)
	t.Cleanup(func() { harness.Run(t, "chmod", "0755", table) })
	r := harness.RunAs(t, user, nil, harness.Binary(), "mount", table, userMountPoint(t))
	wantClearLine(t, r, exitPermission, table)
}

func TestOtherUsersAreKeptOutWithoutAllowOther(t *testing.T) {
	needRoot(t)
	table, user := userTable(t), nobody()
	dir := userMountPoint(t)
	harness.StartWith(t, table, harness.Options{User: user, Dir: dir})
	if _, err := os.ReadDir(dir); harness.Errno(err) != syscall.EACCES {
		t.Fatalf("root reads another user's mount: %v", err)
	}
}

func TestRootsMountLetsOthersReadAndChecksPermissions(t *testing.T) {
	needRoot(t)
	table := userTable(t)
	harness.Must(t, "chown", "-R", "0:0", table)
	dir := harness.MountPoint(t)
	harness.StartWith(t, table, harness.Options{Dir: dir})
	user := nobody()
	if r := harness.RunAs(t, user, nil, "ls", dir+"/@v0"); !r.OK() {
		t.Fatalf("ls: %s", r.Out)
	}
	r := harness.RunAs(t, user, nil, "touch", dir+"/current/x.parquet")
	wantFailed(t, r)
	if !strings.Contains(r.Out, "Permission denied") {
		t.Errorf("touch said %q", r.Out)
	}
}
