package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sighting is what a mount uses at one moment.
type sighting struct {
	at          time.Duration
	rss, anon   int64 // kB
	goroutines  int
	descriptors int
	staged      int
	cache       int64 // bytes
	commits     int64
	samples     int
	reads       int
	findings    int
}

const sightingHeader = "minute  RSS MB  anon MB  goroutines  descriptors  staged  cache MB  commits  versions read  files read  findings"

func (s sighting) String() string {
	return fmt.Sprintf("%6.1f %7d %8d %11d %12d %7d %9.1f %8d %14d %11d %9d", s.at.Minutes(), s.rss>>10, s.anon>>10,
		s.goroutines, s.descriptors, s.staged, float64(s.cache)/1e6, s.commits, s.samples, s.reads, s.findings)
}

// sight looks at the mount's process and directories.
func (s *soak) sight(c *checker) (sighting, error) {
	out := sighting{at: time.Since(s.started), commits: c.log.latest(), samples: c.samples, reads: c.reads, findings: len(c.findings)}
	var err error
	if out.rss, out.anon, err = memoryOf(s.mountPID()); err != nil {
		return out, err
	}
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.mountPID()))
	if err != nil {
		return out, err
	}
	out.descriptors = len(descriptors)
	out.staged, _ = s.leftovers("mounts")
	out.cache = sizeOf(s.cache())
	out.goroutines, err = s.goroutines()
	return out, err
}

func memoryOf(pid int) (rss, anon int64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, l := range strings.Split(string(data), "\n") {
		name, value, _ := strings.Cut(l, ":")
		switch name {
		case "VmRSS":
			rss, err = strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		case "RssAnon":
			anon, err = strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return rss, anon, nil
}

// leftovers counts the files in a part of the table's hidden directory, but for
// what belongs to its keeping.
func (s *soak) leftovers(part string) (int, []string) {
	var names []string
	filepath.WalkDir(filepath.Join(s.table(), ".deltafs", part), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it comes and goes
		}
		if name := e.Name(); !e.IsDir() && name != "lock" && name != "notes" && !strings.HasPrefix(name, ".why-") {
			names = append(names, path)
		}
		return nil
	})
	return len(names), names
}

func sizeOf(dir string) int64 {
	var total int64
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && unix.Lstat(path, &st) == nil {
			total += st.Blocks * 512
		}
		return nil
	})
	return total
}

var goroutine = regexp.MustCompile(`goroutine \d+ \[`)

// goroutines asks the mount to log its stacks, and counts them.
func (s *soak) goroutines() (int, error) {
	st, err := os.Stat(s.mountLog())
	if err != nil {
		return 0, err
	}
	if err := unix.Kill(s.mountPID(), unix.SIGUSR1); err != nil {
		return 0, err
	}
	for range 100 {
		time.Sleep(20 * time.Millisecond)
		data, err := os.ReadFile(s.mountLog())
		if err != nil {
			return 0, err
		}
		data = data[st.Size():]
		if n := len(goroutine.FindAll(data, -1)); n > 0 && bytes.HasSuffix(data, []byte("\n")) {
			return n, nil
		}
	}
	return 0, nil
}
