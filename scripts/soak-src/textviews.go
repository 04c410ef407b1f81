package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
)

// A table whose text views are read: versions 1 to largeFiles add a file each.
const (
	largeFiles = 10
	largeRows  = 1_000_000 // a file
)

// largeMemory is what the mount and its SQL worker may use while they stream, in
// kB: what the worker is allowed to, and as much again.
const largeMemory = 2 << 20

// textTools are commands on the text views and what they print.
func textTools() []struct{ command, want string } {
	rows := largeFiles * largeRows
	half := largeFiles / 2
	return []struct{ command, want string }{
		{"wc -l < @v10.csv", strconv.Itoa(rows + 1)},
		{"wc -l < current.jsonl", strconv.Itoa(rows)},
		{"head -n 1 @v10.csv", "id,name"},
		{"head -n 3 @v10.jsonl | wc -l", "3"},
		{"grep -c 'name-77777[0-9]$' @v10.csv", "10"},
		{"grep -c '\"id\":999999[0-9],' @v10.jsonl", "10"},
		{fmt.Sprintf("diff @v%d.csv @v%d.csv | grep -c '^>'", half-1, half), strconv.Itoa(largeRows)},
		{"tail -n +2 @v10.csv | cut -d, -f1 | awk '{s += $1} END {printf \"%.0f\", s}'", fmt.Sprint(int64(rows) * int64(rows-1) / 2)},
	}
}

// checkTextViews reads the text views of a table of ten million rows with the
// usual tools, and looks at the memory that this takes.
func (s *soak) checkTextViews(ctx context.Context, c *checker) error {
	table, point := filepath.Join(s.work, "large"), filepath.Join(s.work, "large-mnt")
	if err := makeLarge(table); err != nil {
		return err
	}
	if err := os.MkdirAll(point, 0o755); err != nil {
		return err
	}
	m, err := startProcess(s.deltafs, "mount", "--read-only", "--log-file", s.mountLog(), table, point)
	if err != nil {
		return err
	}
	defer unmount(point)
	if err := ready(point); err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	peak := watchMemory(watched, m.cmd.Process.Pid)
	for _, t := range textTools() {
		start := time.Now()
		cmd := exec.CommandContext(ctx, "bash", "-c", t.command)
		cmd.Dir = point
		cmd.WaitDelay = time.Minute // what it started may outlive it
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != t.want {
			c.find("%s: %.200s (%v), want %s", t.command, got, err, t.want)
		}
		fmt.Printf("%-110s %6.1f s\n", t.command, time.Since(start).Seconds())
	}
	stop()
	used := <-peak
	fmt.Printf("text views of %d rows: at most %d MB in the mount and its worker\n", largeFiles*largeRows, used>>10)
	if used > largeMemory {
		c.find("text views took %d MB", used>>10)
	}
	return m.stop(time.Minute)
}

func makeLarge(dir string) error {
	t, err := fixture.Create(dir, fixture.Spec{})
	if err != nil {
		return err
	}
	for i := range int64(largeFiles) {
		if err := t.Add(fmt.Sprintf("part-%d.parquet", i), fixture.Rows(i*largeRows, largeRows)); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until a mount answers.
func ready(point string) error {
	for range 1000 {
		if _, err := os.Readlink(filepath.Join(point, "latest")); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the mount does not come up")
}

// watchMemory sends, when the context ends, the most memory that a process and
// its children used at once, in kB.
func watchMemory(ctx context.Context, pid int) <-chan int64 {
	out := make(chan int64, 1)
	go func() {
		var most int64
		defer func() { out <- most }()
		for {
			most = max(most, memoryOfFamily(pid))
			select {
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return out
}

// memoryOfFamily is what a process and its children use now; one that ends
// meanwhile does not count.
func memoryOfFamily(pid int) int64 {
	_, total, _ := memoryOf(pid)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		data, _ := os.ReadFile(t)
		for _, child := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(child); err == nil {
				total += memoryOfFamily(n)
			}
		}
	}
	return total
}
