package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

const visibleCommits = 100

// visible measures how long a commit that another process makes takes to show
// in current/, and the CPU time that the mount spends on it.
func (b *bench) visible() error {
	about, err := tables.MakeMillion(b.million())
	if err != nil {
		return err
	}
	table, remove, err := b.scratch(b.million())
	if err != nil {
		return err
	}
	defer remove()
	cache, err := b.newDir("cache")
	if err != nil {
		return err
	}
	m, err := b.mountTable(table, cache)
	if err != nil {
		return err
	}
	defer m.stop()
	dir := filepath.Join(m.point, "current", about.Partition)
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	if err := waitIdle(m.pid); err != nil {
		return err
	}
	w := otherWriter{table: table, partition: about.Partition, next: tables.MillionLatest + 1}
	times, err := w.seen(dir)
	if err != nil {
		return err
	}
	b.report.alone("commit to stat of the new name, median of 100", milliseconds, median(times))
	b.report.alone("the slowest of them", milliseconds, times[len(times)-1])
	spent, err := w.cpu(m.pid)
	if err != nil {
		return err
	}
	b.report.alone("CPU time of the mount for a commit", milliseconds, spent)
	_, err = os.Lstat(filepath.Join(dir, w.name()))
	return err
}

// otherWriter commits to the log, past the mount.
type otherWriter struct {
	table, partition string
	// next is the version that the next commit gets.
	next int64
}

// name is the file of the newest commit.
func (w *otherWriter) name() string { return fmt.Sprintf("other-%d.parquet", w.next-1) }

func (w *otherWriter) commit() error {
	w.next++
	return tables.CommitFile(w.table, w.next-1, w.partition, w.name())
}

// seen measures each commit until its file can be looked up in dir.
func (w *otherWriter) seen(dir string) ([]float64, error) {
	var times []float64
	for range visibleCommits {
		if err := w.commit(); err != nil {
			return nil, err
		}
		d, err := took(func() error { return waitFor(filepath.Join(dir, w.name())) })
		if err != nil {
			return nil, err
		}
		times = append(times, d)
		time.Sleep(20 * time.Millisecond)
	}
	return times, nil
}

// cpu makes commits that nobody asks for, and returns the CPU milliseconds that
// the process used for one.
func (w *otherWriter) cpu(pid int) (float64, error) {
	if err := waitIdle(pid); err != nil {
		return 0, err
	}
	before, err := cpuOf(pid)
	if err != nil {
		return 0, err
	}
	for range visibleCommits {
		if err := w.commit(); err != nil {
			return 0, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := waitIdle(pid); err != nil {
		return 0, err
	}
	after, err := cpuOf(pid)
	return inMilliseconds(after-before) / visibleCommits, err
}

func waitFor(path string) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := os.Lstat(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not visible after a minute", path)
		}
	}
}
