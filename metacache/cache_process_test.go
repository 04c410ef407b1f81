package metacache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childEnv is set in a process that a test started; its value is for the test.
const childEnv = "METACACHE_TEST_CHILD"

// child prepares a process that runs the same test with childEnv set.
func child(t *testing.T, value string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+value)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// inOwnMounts runs the test in a process that may mount what it likes. It
// returns true there, and in the process that started it false at the end.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childEnv) != "" {
		check(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		return true
	}
	cmd := child(t, "mounts")
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	if id := os.Geteuid(); id != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: id, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("the process ended with %v:\n%s", err, out)
	}
	return false
}

// smallDisk mounts a file system of a size.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	check(t, unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", bytes)))
	t.Cleanup(func() { check(t, unix.Unmount(dir, 0)) })
	return dir
}

func TestFullDiskCostsNothingButTime(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	tr := newTruth(t, 4000, 5)
	kept := 0
	for size := 64 << 10; size < 1<<20; size += 64 << 10 {
		dir := smallDisk(t, size)
		c := openTestCache(t, filepath.Join(dir, "cache"))
		tr.check(t, c)
		if tr.check(t, c) == len(tr.versions) {
			kept++
		}
	}
	if kept == 0 {
		t.Error("it was kept on no disk")
	}
}

func TestDiskThatFillsUpMeanwhile(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	tr := newTruth(t, 4000, 5)
	const size = 2 << 20
	dir := smallDisk(t, size)
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.WriteFile(filepath.Join(dir, "other"), make([]byte, size), 0o600)
			time.Sleep(time.Duration(n%7) * time.Millisecond)
			_ = os.Remove(filepath.Join(dir, "other"))
			time.Sleep(time.Duration(n%5) * time.Millisecond)
		}
	}()
	for range 25 {
		tr.check(t, openTestCache(t, filepath.Join(dir, "cache")))
	}
	close(stop)
	<-done
}

func TestReadOnlyCacheIsRead(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	tr := newTruth(t, 2000, 5)
	dir := t.TempDir()
	tr.keep(t, openTestCache(t, dir))
	check(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	defer func() { check(t, unix.Unmount(dir, 0)) }()
	check(t, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for range 2 {
		if n := tr.check(t, openTestCache(t, dir)); n != len(tr.versions) {
			t.Errorf("%d of %d versions are covered", n, len(tr.versions))
		}
	}
}

func TestReadOnlyDirectoryWithoutACache(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	tr := newTruth(t, 2000, 5)
	dir := t.TempDir()
	check(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	defer func() { check(t, unix.Unmount(dir, 0)) }()
	check(t, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for _, cache := range []string{dir, filepath.Join(dir, "cache")} {
		if n := tr.check(t, openTestCache(t, cache)); n != 0 {
			t.Errorf("%d versions are covered", n)
		}
	}
}

func TestKillLeavesNothingWrong(t *testing.T) {
	tr := newTruth(t, 2500, 5)
	if dir := os.Getenv(childEnv); dir != "" {
		c := openTestCache(t, dir)
		fmt.Println("begun")
		for {
			for range 3 { // the second and the third restore it
				tr.keep(t, c)
			}
			_, _, err := c.Clear(t.Context(), "")
			check(t, err)
		}
	}
	begun := time.Now()
	tr.keep(t, testCache(t))
	fill := time.Since(begun)
	covered := map[int]int{}
	for range 12 {
		dir := filepath.Join(t.TempDir(), "cache")
		cmd := child(t, dir)
		out, err := cmd.StdoutPipe()
		check(t, err)
		check(t, cmd.Start())
		waitFor(t, out, "begun")
		time.Sleep(rand.N(4 * fill))
		check(t, cmd.Process.Kill())
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()

		c := openTestCache(t, dir)
		covered[tr.check(t, c)]++
		if n := tr.check(t, c); n != len(tr.versions) {
			t.Errorf("what was loaded again is not kept: %d of %d versions", n, len(tr.versions))
		}
		theRun(t, c)
		left, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"+newSuffix))
		if err != nil || len(left) > 0 {
			t.Errorf("unfinished runs are left: %q, %v", left, err)
		}
	}
	t.Logf("killed when so many versions were kept: %v", covered)
}

func waitFor(t *testing.T, r io.Reader, line string) {
	t.Helper()
	for s := bufio.NewScanner(r); s.Scan(); {
		if s.Text() == line {
			return
		}
	}
	t.Fatalf("the process ended before it said %q", line)
}

func TestTwoProcessesOnOneCache(t *testing.T) {
	tr := newTruth(t, 2500, 5)
	if dir := os.Getenv(childEnv); dir != "" {
		// Holds the first slot and fills it over and over, as the versions of a
		// table are replaced.
		x, err := openTestCache(t, dir).Open(t.Context(), testTable)
		check(t, err)
		tr.load(t, x)
		settle(t, x)
		fmt.Println("kept")
		_, _ = io.Copy(io.Discard, os.Stdin)
		check(t, x.Close())
		return
	}
	dir := filepath.Join(t.TempDir(), "cache")
	cmd := child(t, dir)
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	// While it fills.
	c := openTestCache(t, dir)
	for range 5 {
		tr.check(t, c)
	}
	waitFor(t, out, "kept")
	// Both have it open: this one reads in the slot of the other, or its own.
	if n := tr.check(t, c); n != len(tr.versions) {
		t.Errorf("%d of %d versions are covered", n, len(tr.versions))
	}
	check(t, in.Close())
	_, _ = io.Copy(io.Discard, out)
	check(t, cmd.Wait())
	if n := tr.check(t, c); n != len(tr.versions) {
		t.Errorf("after the other ended, %d of %d versions are covered", n, len(tr.versions))
	}
}

func TestSecondOpeningBeginsWithWhatTheFirstHas(t *testing.T) {
	tr := newTruth(t, 2000, 5)
	c := testCache(t)
	tr.keep(t, c)
	first, err := c.Open(t.Context(), testTable)
	check(t, err)
	second, err := c.Open(t.Context(), testTable)
	check(t, err)
	if n := tr.compare(t, second); n != len(tr.versions) {
		t.Errorf("%d of %d versions are covered", n, len(tr.versions))
	}
	// Each goes its own way.
	next := int64(truthFirst + len(tr.versions))
	for name, x := range map[string]Index{"a": first, "b": second} {
		check(t, x.Apply(t.Context(), next, nil, nil, []File{{Key: Key{Name: name, Path: name}}}))
		settle(t, x)
	}
	check(t, first.Close())
	check(t, second.Close())
	again, err := c.Open(t.Context(), testTable)
	check(t, err)
	if _, ok, err := again.ByPath(t.Context(), next, "a"); !ok || err != nil {
		t.Errorf("what the owner kept is not there: %v", err)
	}
	if _, ok, err := again.ByPath(t.Context(), next, "b"); ok || err != nil {
		t.Errorf("what the other said is there: %v", err)
	}
	check(t, again.Close())
}

func TestWhoFindsNoSlotWorksInMemory(t *testing.T) {
	tr := newTruth(t, 600, 2)
	c := testCache(t)
	tr.keep(t, c)
	for range tableSlotCount {
		x, err := c.Open(t.Context(), testTable)
		check(t, err)
		defer x.Close()
	}
	x, err := c.Open(t.Context(), testTable)
	check(t, err)
	defer x.Close()
	if n := tr.compare(t, x); n != len(tr.versions) {
		t.Errorf("%d of %d versions are covered", n, len(tr.versions))
	}
	check(t, x.Load(t.Context(), 1, nil, func(func(File, error) bool) {}))
	settle(t, x)
	if _, err := x.Totals(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

func TestCancelledFillLeavesNothing(t *testing.T) {
	k := testKeeper(t, testCache(t))
	ctx, cancel := context.WithCancel(t.Context())
	files := someFiles(3000, 10, 1)
	_, err := k.keep(ctx, keptRun{serial: 1, base: callingBase{files, cancel}, firstID: 1})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	left, err := os.ReadDir(k.own.dir)
	if err != nil || len(left) != 1 || left[0].Name() != lockFile {
		t.Errorf("left are %v, %v", left, err)
	}
}

// callingBase calls back in the middle of a scan.
type callingBase struct {
	sliceBase
	call func()
}

func (b callingBase) scan(_ context.Context, first, end int) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for i, f := range b.sliceBase[first:end] {
			if i == 1000 {
				b.call()
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}
