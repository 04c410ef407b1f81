package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// heading says on what and with what was measured.
func (b *bench) heading() string {
	var u unix.Utsname
	var info unix.Sysinfo_t
	unix.Uname(&u)
	unix.Sysinfo(&info)
	command := "scripts/bench"
	if b.full {
		command += " --full"
	}
	if b.only != "" {
		command += " --only " + b.only
	}
	return fmt.Sprintf("Measured %s by `%s`, medians of %d. %d CPUs (%s), %d GB of memory, Linux %s, tables on %s.\n"+
		"%s; %s; go-fuse %s; %s; %s.\n\n",
		time.Now().UTC().Format(time.DateOnly), command, b.runs,
		runtime.NumCPU(), cpu(), info.Totalram*uint64(info.Unit)>>30, unix.ByteSliceToString(u.Release[:]), fileSystem(b.keep),
		output(b.deltafs, "version"), runtime.Version(), moduleVersion(filepath.Join(b.bin, "barefuse"), "github.com/hanwen/go-fuse/v2"),
		output("bindfs", "--version"), output(b.python, b.peers+"/versions.py"))
}

func cpu() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for _, l := range strings.Split(string(data), "\n") {
		if name, ok := strings.CutPrefix(l, "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return runtime.GOARCH
}

// fileSystem is the type of the file system that a directory is on.
func fileSystem(dir string) string {
	return output("findmnt", "-n", "-o", "FSTYPE", "--target", dir)
}

// output is the first line that a command prints.
func output(command string, args ...string) string {
	out, err := exec.Command(command, args...).Output()
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first
}

// moduleVersion is the version of a module that a binary was built with.
func moduleVersion(binary, path string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}
