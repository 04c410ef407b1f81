package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/integration/fixture"
)

// soak is the whole run.
type soak struct {
	deltafs, python, engine, work string
	minutes                       float64
	seed                          int64

	started time.Time
	mount   *process
	actors  []*process
}

func (s *soak) table() string    { return filepath.Join(s.work, "table") }
func (s *soak) point() string    { return filepath.Join(s.work, "mnt") }
func (s *soak) cache() string    { return filepath.Join(s.work, "cache") }
func (s *soak) events() string   { return filepath.Join(s.work, "events") }
func (s *soak) mountLog() string { return filepath.Join(s.work, "mount.log") }
func (s *soak) mountPID() int    { return s.mount.cmd.Process.Pid }

// cast are the processes that work on the mount.
var cast = []string{"reader", "reader", "reader", "reader", "writer", "writer", "outside"}

func (s *soak) run(ctx context.Context) (findings int, err error) {
	fmt.Printf("soak: %v minutes, seed %d, in %s\n", s.minutes, s.seed, s.work)
	if err := s.prepare(); err != nil {
		return 0, err
	}
	defer s.killAll()
	if err := s.startMount(); err != nil {
		return 0, err
	}
	c := newChecker(s.table(), s.events())
	if err := s.startActors(); err != nil {
		return 0, err
	}
	seen, err := s.watch(ctx, c)
	if err != nil {
		return 0, err
	}
	if err := s.end(c); err != nil {
		return 0, err
	}
	if err := s.checkTextViews(ctx, c); err != nil {
		return 0, err
	}
	s.summary(c, seen)
	return len(c.findings), nil
}

func (s *soak) prepare() error {
	for _, dir := range []string{s.point(), s.cache(), s.events()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	_, err := fixture.Create(s.table(), fixture.Spec{Partition: []string{"day"},
		Properties: map[string]string{"delta.enableExpiredLogCleanup": "false"}})
	return err
}

func (s *soak) startMount() error {
	args := []string{"mount", "--log-file", s.mountLog()}
	if out, err := exec.Command(s.deltafs, "mount", "--help").CombinedOutput(); err == nil && strings.Contains(string(out), "--cache-dir") {
		args = append(args, "--cache-dir", s.cache())
	}
	var err error
	if s.mount, err = startProcess(s.deltafs, append(args, s.table(), s.point())...); err != nil {
		return err
	}
	return ready(s.point())
}

func (s *soak) startActors() error {
	s.started = time.Now()
	for i, role := range cast {
		p, err := startProcess(os.Args[0], "-role", role, "-number", fmt.Sprint(i+1), "-table", s.table(), "-mount", s.point(),
			"-events", s.events(), "-actor-seed", fmt.Sprint(s.seed))
		if err != nil {
			return err
		}
		s.actors = append(s.actors, p)
	}
	return nil
}

// watch checks and prints what it sees every minute until time is up.
func (s *soak) watch(ctx context.Context, c *checker) ([]sighting, error) {
	fmt.Println(sightingHeader)
	var seen []sighting
	end := s.started.Add(time.Duration(s.minutes * float64(time.Minute)))
	for minute := time.Minute; ; minute += time.Minute {
		wake := s.started.Add(minute)
		if wake.After(end) {
			wake = end
		}
		select {
		case <-ctx.Done():
			end = time.Now()
		case <-time.After(time.Until(wake)):
		}
		if err := c.look(); err != nil {
			return nil, err
		}
		s.checkProcesses(c)
		if err := s.checkEngine(c, true); err != nil {
			return nil, err
		}
		now, err := s.sight(c)
		if err != nil {
			return nil, err
		}
		fmt.Println(now)
		seen = append(seen, now)
		if !time.Now().Before(end) {
			return seen, nil
		}
	}
}

func (s *soak) checkProcesses(c *checker) {
	for _, p := range append(s.actors, s.mount) {
		if p.ended() && !p.reported {
			p.reported = true
			c.find("%s ended in the middle: %v", p.cmd.Args, p.err)
		}
	}
}

// end ends the processes, checks the last listings, unmounts, and looks at what
// is left.
func (s *soak) end(c *checker) error {
	for _, p := range s.actors {
		if err := p.stop(time.Minute); err != nil && !p.reported {
			c.find("%s: %v", p.cmd.Args, err)
		}
	}
	if err := s.mount.stop(time.Minute); err != nil {
		c.find("the mount: %v", err)
	}
	if err := c.finish(); err != nil {
		return err
	}
	s.checkLeftovers(c)
	if err := s.checkMountLog(c); err != nil {
		return err
	}
	return s.checkEngine(c, false)
}

// checkLeftovers looks whether the bytes of every refused file were kept, and
// nothing else.
func (s *soak) checkLeftovers(c *checker) {
	if n, names := s.leftovers("mounts"); n > 0 {
		c.find("the mount left %v", names)
	}
	if n, _ := s.leftovers("rejected"); n != len(c.refused) {
		c.find("%d files were refused, and %d are kept", len(c.refused), n)
	}
	drafts, err := filepath.Glob(filepath.Join(s.table(), "_delta_log", "*.tmp"))
	if err != nil || len(drafts) > 0 {
		c.find("left in the log: %v (%v)", drafts, err)
	}
}

func (s *soak) checkMountLog(c *checker) error {
	data, err := os.ReadFile(s.mountLog())
	for _, sign := range []string{"DATA RACE", "panic:", "defect:", "fatal error:"} {
		if bytes.Contains(data, []byte(sign)) {
			c.find("the mount's log has %q", sign)
		}
	}
	return err
}

// engineResult is what the engine's program prints of a version.
type engineResult struct {
	Rows  int    `json:"rows"`
	Print string `json:"print"`
}

// checkEngine lets delta-rs read the newest version that was replayed, and
// make a checkpoint, of which the mount has to make the best.
func (s *soak) checkEngine(c *checker, checkpoint bool) error {
	version := c.log.latest()
	cmd := exec.Command(s.python, "-W", "ignore", s.engine, s.table(), fmt.Sprint(version), fmt.Sprint(checkpoint))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", s.engine, err)
	}
	var got engineResult
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	if want := c.log.rows(); got != want {
		c.find("delta-rs reads version %d as %v, the log says %v", version, got, want)
	}
	return nil
}

func (s *soak) summary(c *checker, seen []sighting) {
	fmt.Printf("\n%s\n", sightingHeader)
	for i, v := range seen {
		if i == 0 || i == len(seen)-1 || i%10 == 9 {
			fmt.Println(v)
		}
	}
	fmt.Printf("\n%d files added, %d removed, %d refused in %d commits; %d versions, %d files and %d listings of current/ compared\n",
		len(c.log.added), len(c.log.removed), len(c.refused), c.log.latest(), c.samples, c.reads, c.listed)
	for i, f := range c.findings {
		if i == 50 {
			fmt.Printf("… and %d more\n", len(c.findings)-i)
			break
		}
		fmt.Println("FINDING:", f)
	}
	if len(c.findings) == 0 {
		fmt.Println("no findings")
	}
}

// killAll ends what is still there.
func (s *soak) killAll() {
	for _, p := range append(s.actors, s.mount) {
		if p != nil && !p.ended() {
			p.cmd.Process.Kill()
		}
	}
	unmount(s.point())
}

func unmount(point string) {
	if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "soak: unmounting:", err)
	}
}
