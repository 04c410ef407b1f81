package mountpoint

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Holder is a process that keeps a mount busy.
type Holder struct {
	PID int
	// Command is the process's name.
	Command string
	// Path is one path below the mount point that it uses.
	Path string
	// Use says how: "cwd", "root", "open" or "mapped".
	Use string
}

// String is "rsync (pid 12, open /mnt/t/current/x)".
func (h Holder) String() string {
	return fmt.Sprintf("%s (pid %d, %s %s)", h.Command, h.PID, h.Use, h.Path)
}

// Describe lists holders for a message, the first few by name.
func Describe(holders []Holder) string {
	const few = 5
	if len(holders) == 0 {
		return "processes that this user cannot see"
	}
	var names []string
	for _, h := range holders[:min(few, len(holders))] {
		names = append(names, h.String())
	}
	if more := len(holders) - few; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// Holders lists the processes with a working directory, a root, an open file
// or a mapping at or below point, as far as /proc shows them to this user. It
// does not touch the mount.
func Holders(point string) []Holder {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var holders []Holder
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if h, ok := holder(filepath.Join("/proc", e.Name()), point); ok {
			h.PID = pid
			holders = append(holders, h)
		}
	}
	return holders
}

// holder looks at one process. Errors mean that the process is gone or not
// ours to see.
func holder(proc, point string) (Holder, bool) {
	path, use := "", ""
	for _, link := range []string{"cwd", "root"} {
		if target, err := os.Readlink(filepath.Join(proc, link)); err == nil && below(target, point) {
			path, use = target, link
		}
	}
	if use == "" {
		path, use = openBelow(proc, point)
	}
	if use == "" {
		path, use = mappedBelow(proc, point)
	}
	if use == "" {
		return Holder{}, false
	}
	name, _ := os.ReadFile(filepath.Join(proc, "comm"))
	return Holder{Command: strings.TrimSpace(string(name)), Path: path, Use: use}, true
}

func openBelow(proc, point string) (path, use string) {
	fds, _ := filepath.Glob(filepath.Join(proc, "fd", "*"))
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && below(target, point) {
			return target, "open"
		}
	}
	return "", ""
}

func mappedBelow(proc, point string) (path, use string) {
	f, err := os.Open(filepath.Join(proc, "maps"))
	if err != nil {
		return "", ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if _, name, ok := strings.Cut(lines.Text(), " /"); ok && below("/"+name, point) {
			return "/" + name, "mapped"
		}
	}
	return "", ""
}

func below(path, point string) bool {
	return path == point || strings.HasPrefix(path, strings.TrimSuffix(point, "/")+"/")
}
