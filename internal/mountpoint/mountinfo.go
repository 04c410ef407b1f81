package mountpoint

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// FSType is the file system type of every mount of this program, as
// /proc/self/mountinfo and mount(8) show it.
const FSType = "fuse.deltafs"

// Mount is one line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type Mount struct {
	// Device is the device number of the mounted file system, "major:minor".
	Device string
	// Point is the absolute path of the mount point.
	Point string
	// FSType and Source are as given to mount(2).
	FSType, Source string
	// UID is the user who mounted a FUSE file system, -1 for others.
	UID int
}

// Mounts lists the mounts that this process sees, in the order they were made.
func Mounts() ([]Mount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseMountinfo(f)
}

// Find returns the mount that is on top at point, a path that [Resolve]
// returned.
func Find(point string) (Mount, bool, error) {
	mounts, err := Mounts()
	if err != nil {
		return Mount{}, false, err
	}
	for i := len(mounts) - 1; i >= 0; i-- {
		if mounts[i].Point == point {
			return mounts[i], true, nil
		}
	}
	return Mount{}, false, nil
}

func parseMountinfo(r io.Reader) ([]Mount, error) {
	var mounts []Mount
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m, err := parseMount(lines.Text())
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, m)
	}
	return mounts, lines.Err()
}

// parseMount reads "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG…] - TYPE
// SOURCE SUPEROPTIONS".
func parseMount(line string) (Mount, error) {
	mount, super, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(mount), strings.Split(super, " ")
	if !ok || len(left) < 6 || len(right) < 3 {
		return Mount{}, fmt.Errorf("mountinfo line %q does not parse", line)
	}
	m := Mount{Device: left[2], Point: unescape(left[4]), FSType: right[0], Source: unescape(right[1]), UID: -1}
	for option := range strings.SplitSeq(right[2], ",") {
		if id, ok := strings.CutPrefix(option, "user_id="); ok {
			if uid, err := strconv.Atoi(id); err == nil {
				m.UID = uid
			}
		}
	}
	return m, nil
}

// unescape undoes the octal escapes of mountinfo (\040 for a space).
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
