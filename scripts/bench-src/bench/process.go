package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memoryOf reads a field of /proc/PID/status that counts memory, in MB.
func memoryOf(pid int, field string) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, l := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(l, field+":"); ok {
			kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kilobytes * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, field)
}

// cpuOf is the CPU time that a process has used.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime; the first is the state
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	const tick = 10 * time.Millisecond
	return time.Duration(ticks) * tick, nil
}

// waitIdle waits until a process uses next to no CPU for two seconds.
func waitIdle(pid int) error {
	const quiet, nothing = 2 * time.Second, 30 * time.Millisecond
	last, err := cpuOf(pid)
	for deadline := time.Now().Add(10 * time.Minute); err == nil; {
		time.Sleep(quiet)
		var used time.Duration
		if used, err = cpuOf(pid); err == nil {
			if used-last < nothing {
				return nil
			}
			last = used
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d never rests", pid)
		}
	}
	return err
}
