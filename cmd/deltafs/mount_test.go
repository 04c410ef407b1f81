package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deltafs/deltafs/integration/harness"
)

func TestMountRefusesBadMountPoints(t *testing.T) {
	table := newTable(t)
	dir := t.TempDir()
	file, full := filepath.Join(dir, "file"), filepath.Join(dir, "full")
	check(t, os.WriteFile(file, nil, 0o644))
	check(t, os.MkdirAll(filepath.Join(full, "x"), 0o755))
	check(t, os.MkdirAll(filepath.Join(table, "mnt"), 0o755))
	check(t, os.Symlink(table, filepath.Join(dir, "alias")))
	good := harness.MountPoint(t)
	for _, c := range []struct {
		name string
		args []string
		code int
		word string
	}{
		{"missing", []string{table, filepath.Join(dir, "none")}, exitMountpoint, "mkdir -p"},
		{"file", []string{table, file}, exitMountpoint, "not a directory"},
		{"not empty", []string{table, full}, exitMountpoint, "--allow-non-empty"},
		{"inside the table", []string{table, filepath.Join(table, "mnt")}, exitMountpoint, "lies inside the table"},
		{"inside the table by a link", []string{filepath.Join(dir, "alias"), filepath.Join(table, "mnt")}, exitMountpoint, "lies inside the table"},
		{"the table itself", []string{table, table, "--allow-non-empty"}, exitMountpoint, "is the mount point itself"},
		{"around the table", []string{table, filepath.Dir(table), "--allow-non-empty"}, exitMountpoint, "lies inside the mount point"},
		{"log file inside", []string{table, good, "--log-file", filepath.Join(good, "log")}, exitMountpoint, "log file"},
		{"log file nowhere", []string{table, good, "--log-file", filepath.Join(dir, "none", "log")}, exitFailure, "log file"},
		{"allowed directory inside", []string{table, good, "--allow-path", filepath.Join(good, "x")}, exitUsage, "no such directory"},
		{"allowed directory nowhere", []string{table, good, "--allow-path", table, "--allow-path", file}, exitUsage, "no such directory"},
		{"no table", []string{filepath.Join(dir, "none"), good}, exitNotFound, "no such table"},
		{"table is a file", []string{file, good}, exitNotFound, "not a directory"},
		{"no table below", []string{full, good}, exitNotFound, "neither a Delta table"},
		{"object store", []string{"s3://bucket/table", good}, exitUnsupported, "not supported yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, deltafs(t, append([]string{"mount"}, c.args...)...), c.code, c.word)
			// In the background it is the same failure, told by the parent.
			refused(t, deltafs(t, append([]string{"mount", "-d"}, c.args...)...), c.code, c.word)
			if harness.Mounted(good) {
				t.Error("something is mounted")
			}
		})
	}
}

func TestMountOnAMountIsRefused(t *testing.T) {
	table := newTable(t)
	m := harness.Start(t, table)
	refused(t, deltafs(t, "mount", table, m.Dir), exitMountpoint, "already mounted", "deltafs umount")
}

func TestMountHidesWhatIsThereWhenAsked(t *testing.T) {
	dir := harness.MountPoint(t)
	hidden := filepath.Join(dir, "hidden")
	check(t, os.WriteFile(hidden, nil, 0o644))
	m := harness.StartWith(t, newTable(t), harness.Options{Dir: dir, Flags: []string{"--allow-non-empty"}})
	if _, err := os.Stat(hidden); !os.IsNotExist(err) {
		t.Errorf("the file shows through: %v", err)
	}
	m.Unmount()
	check(t, os.Remove(hidden))
}

func TestMountTakesURLsAndOptionsAnywhere(t *testing.T) {
	table := newTable(t)
	mnt := harness.MountPoint(t)
	must(t, "mount", "file://"+table, mnt, "-d", "-o", "ro,list_versions=2,uid=1234", "--gid", "4321", "--dir-mode=0750", "--file-mode", "0640")
	t.Cleanup(func() { deltafs(t, "umount", "--lazy", mnt) })
	var versions []string
	entries, err := os.ReadDir(mnt)
	check(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "@v") {
			versions = append(versions, e.Name())
		}
	}
	if got := strings.Join(versions, " "); got != "@v2 @v3" {
		t.Errorf("lists %s", got)
	}
	var st syscall.Stat_t
	check(t, syscall.Stat(filepath.Join(mnt, "current"), &st))
	if st.Uid != 1234 || st.Gid != 4321 || st.Mode&0o777&^0o222 != 0o550 {
		t.Errorf("current belongs to %d:%d with mode %o", st.Uid, st.Gid, st.Mode&0o777)
	}
	if err := os.WriteFile(filepath.Join(mnt, "current", "x"), nil, 0o644); !os.IsPermission(err) && harness.Errno(err) != syscall.EROFS {
		t.Errorf("a read-only mount took a file: %v", err)
	}
	must(t, "umount", mnt)
}

func TestTimesWithoutAZoneAreOfTheMountsZone(t *testing.T) {
	table := newTable(t)
	for v, day := range []int{1, 3, 5, 7} {
		check(t, os.Chtimes(filepath.Join(table, "_delta_log", "0000000000000000000"+strconv.Itoa(v)+".json"), date(day), date(day)))
	}
	m := harness.Start(t, table, "--timezone", "Europe/Vienna")
	for name, want := range map[string]string{"@2024-05-03T01-30-00": "@v0", "@2024-05-03T02-30-00": "@v1"} {
		if got, err := os.Readlink(m.Path(name)); err != nil || got != want {
			t.Errorf("%s -> %s, %v; want %s", name, got, err, want)
		}
	}
}

func TestDaemonReturnsWhenTheMountIsReady(t *testing.T) {
	table := newTable(t)
	mnt := harness.MountPoint(t)
	logFile := filepath.Join(t.TempDir(), "log")
	r := deltafs(t, "mount", table, mnt, "--daemon", "--log-file", logFile)
	t.Cleanup(func() { deltafs(t, "umount", "--lazy", mnt) })
	if r != (result{}) {
		t.Fatalf("got %+v", r)
	}
	target, err := os.Readlink(filepath.Join(mnt, "latest"))
	if err != nil || target != "@v3" {
		t.Errorf("latest -> %s, %v", target, err)
	}
	pid := daemonPID(t, logFile)
	if cwd, err := os.Readlink("/proc/" + pid + "/cwd"); cwd != "/" {
		t.Errorf("its working directory is %s, %v", cwd, err)
	}
	if stderr, _ := os.Readlink("/proc/" + pid + "/fd/2"); stderr != logFile {
		t.Errorf("its standard error is %s", stderr)
	}
	must(t, "umount", mnt)
	if log, err := os.ReadFile(logFile); !bytes.Contains(log, []byte("msg=unmounted")) {
		t.Errorf("umount returned before the table was closed: %v\n%s", err, log)
	}
}

func TestDaemonStartsInADirectoryThatVanished(t *testing.T) {
	table := newTable(t)
	mnt := harness.MountPoint(t)
	gone := filepath.Join(t.TempDir(), "gone")
	check(t, os.Mkdir(gone, 0o755))
	script := `rmdir "$PWD" && exec "$0" mount "$1" "$2" -d`
	cmd := exec.Command("sh", "-c", script, harness.Binary(), table, mnt)
	cmd.Dir = gone
	t.Cleanup(func() { deltafs(t, "umount", "--lazy", mnt) })
	if r := execute(t, cmd); r != (result{}) {
		t.Fatalf("got %+v", r)
	}
	must(t, "umount", mnt)
	// A relative path means nothing there.
	check(t, os.Mkdir(gone, 0o755))
	cmd = exec.Command("sh", "-c", script, harness.Binary(), "sales", mnt)
	cmd.Dir = gone
	refused(t, execute(t, cmd), exitNotFound, "use an absolute path")
}

func TestMountHelperForMount8(t *testing.T) {
	helper := filepath.Join(t.TempDir(), "mount.fuse.deltafs")
	check(t, os.Symlink(harness.Binary(), helper))
	mnt := harness.MountPoint(t)
	r := execute(t, exec.Command(helper, newTable(t), mnt, "-n", "-o", "rw,nodev,nosuid,append_only"))
	t.Cleanup(func() { deltafs(t, "umount", "--lazy", mnt) })
	if r != (result{}) || !harness.Mounted(mnt) {
		t.Fatalf("got %+v, mounted %v", r, harness.Mounted(mnt))
	}
	must(t, "umount", mnt)
}

func TestServiceManagerIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: path})
	check(t, err)
	defer conn.Close()
	m := harness.StartWith(t, newTable(t), harness.Options{Env: []string{"NOTIFY_SOCKET=" + path}})
	expect := func(want string) {
		t.Helper()
		buf := make([]byte, 200)
		n, err := conn.Read(buf)
		if err != nil || string(buf[:n]) != want {
			t.Errorf("got %q, %v; want %q", buf[:n], err, want)
		}
	}
	expect("READY=1\nMAINPID=" + strconv.Itoa(m.PID()))
	m.Signal(syscall.SIGTERM)
	expect("STOPPING=1")
	m.AwaitEnd()
}

func TestUnmountFromOutsideEndsTheProcessWell(t *testing.T) {
	m := harness.Start(t, newTable(t))
	awaitLog(t, m, "mounted")
	check(t, syscall.Unmount(m.Dir, 0))
	m.AwaitEnd()
}

func TestSignalWaitsForUsersOfTheMount(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			m := harness.Start(t, newTable(t))
			f := open(t, m.Path("@v3", "day=2", "b.parquet"))
			m.Signal(sig)
			awaitLog(t, m, "mount is busy")
			if !strings.Contains(m.Log(), "pid "+strconv.Itoa(os.Getpid())) {
				t.Errorf("the log does not name this process:\n%s", m.Log())
			}
			readable(t, f)
			check(t, f.Close())
			m.AwaitEnd()
		})
	}
}

func TestSecondSignalDetachesAMountInUse(t *testing.T) {
	m := harness.Start(t, newTable(t))
	f := open(t, m.Path("@v3", "day=2", "b.parquet"))
	m.Signal(syscall.SIGTERM)
	awaitLog(t, m, "mount is busy")
	m.Signal(syscall.SIGTERM)
	harness.Eventually(t, time.Minute, func() string {
		if harness.Mounted(m.Dir) {
			return "mounted"
		}
		return ""
	})
	readable(t, f)
	check(t, f.Close())
	m.AwaitEnd()
}

func TestThirdSignalGivesUpOnUsers(t *testing.T) {
	mnt := harness.MountPoint(t)
	cmd := exec.Command(harness.Binary(), "mount", newTable(t), mnt)
	stderr, err := cmd.StderrPipe()
	check(t, err)
	check(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	await := func(word string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), word) {
				return
			}
		}
		t.Fatalf("the process ended without %q", word)
	}
	await("mounted")
	f := open(t, filepath.Join(mnt, "@v3", "day=2", "b.parquet"))
	defer f.Close()
	for _, word := range []string{"mount is busy", "detaching", "given up"} {
		check(t, cmd.Process.Signal(syscall.SIGINT))
		await(word)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitMountpoint {
		t.Errorf("ended with %v", err)
	}
}

func TestLogFileIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	path, rotated := filepath.Join(dir, "log"), filepath.Join(dir, "log.1")
	m := harness.Start(t, newTable(t), "--log-file", path, "--log-format", "json")
	check(t, os.Rename(path, rotated))
	m.Signal(syscall.SIGHUP)
	harness.Eventually(t, time.Minute, func() string {
		if data, _ := os.ReadFile(path); !bytes.Contains(data, []byte("opened again")) {
			return "no new log"
		}
		return ""
	})
	m.Unmount()
	for path, want := range map[string]string{rotated: "mounted", path: "unmounted"} {
		data, err := os.ReadFile(path)
		check(t, err)
		found := false
		for line := range strings.Lines(string(data)) {
			var record struct{ Msg string }
			check(t, json.Unmarshal([]byte(line), &record))
			found = found || record.Msg == want
		}
		if !found {
			t.Errorf("%s lacks %q:\n%s", path, want, data)
		}
	}
}

func TestGoroutinesAreDumpedOnRequest(t *testing.T) {
	m := harness.Start(t, newTable(t))
	m.Signal(syscall.SIGUSR1)
	awaitLog(t, m, "goroutine 1 [")
	m.Unmount()
}

// open opens a file for reading.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func readable(t *testing.T, f *os.File) {
	t.Helper()
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err != nil || string(magic) != "PAR1" {
		t.Errorf("reading the open file: %q, %v", magic, err)
	}
}

func awaitLog(t *testing.T, m *harness.Mount, word string) {
	t.Helper()
	harness.Eventually(t, time.Minute, func() string {
		if strings.Contains(m.Log(), word) {
			return ""
		}
		return "the log lacks " + word + ":\n" + m.Log()
	})
}

// daemonPID is the process id that a mount logged.
func daemonPID(t *testing.T, logFile string) string {
	t.Helper()
	pid := ""
	harness.Eventually(t, time.Minute, func() string {
		data, _ := os.ReadFile(logFile)
		if _, rest, ok := strings.Cut(string(data), " pid="); ok && strings.Contains(rest, "\n") {
			pid = strings.Fields(rest)[0]
			return ""
		}
		return "no pid in the log"
	})
	return pid
}

// killed is a mount whose process died.
func killed(t *testing.T) (table, mnt string) {
	t.Helper()
	table, mnt = newTable(t), harness.MountPoint(t)
	logFile := filepath.Join(t.TempDir(), "log")
	must(t, "mount", table, mnt, "-d", "--log-file", logFile)
	pid, err := strconv.Atoi(daemonPID(t, logFile))
	check(t, err)
	check(t, syscall.Kill(pid, syscall.SIGKILL))
	harness.Eventually(t, time.Minute, func() string {
		var st syscall.Statfs_t
		if err := syscall.Statfs(mnt, &st); err != syscall.ENOTCONN {
			return "the kernel still knows a server"
		}
		return ""
	})
	t.Cleanup(func() { syscall.Unmount(mnt, syscall.MNT_DETACH) })
	return table, mnt
}
