package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

func (b *bench) wide() string { return filepath.Join(b.keep, "wide") }

func (b *bench) makeWide() error {
	sayMaking(b.wide(), "the table of %d files in one directory", tables.WideFiles)
	return tables.MakeWide(b.wide())
}

// walk compares what walks over a directory of 100,000 files: for the first
// time in a new mount, with the kernel's names and inodes dropped, and again.
func (b *bench) walk() error {
	trees := []tree{
		{"deltafs", "@v1", func() (*mount, error) { return b.mountTable(b.wide(), "") }},
		{"bindfs", "", func() (*mount, error) { return b.startMount("bindfs", "-f", b.wide()) }},
		{fileSystem(b.wide()), "", nil},
	}
	for _, op := range []struct {
		what string
		run  func(dir string) error
	}{
		{"find", found},
		{"ls -l", silent("ls", "-l")},
		{"readdir and stat of each", statAll},
	} {
		var again [3][]float64
		var contenders []contender
		for i, t := range trees {
			contenders = append(contenders, contender{t.name, func() (float64, error) {
				first, second, err := b.twice(t, op.run)
				again[i] = append(again[i], second)
				return first, err
			}})
		}
		first, err := alternately(b.runs, contenders...)
		if err != nil {
			return err
		}
		for i := 1; i < len(trees); i++ {
			b.report.add(op.what+", first time", milliseconds, first[0], trees[i].name, first[i])
		}
		for i := 1; i < len(trees); i++ {
			b.report.add(op.what+", again", milliseconds, median(again[0]), trees[i].name, median(again[i]))
		}
	}
	return nil
}

// tree is one way to the same directory.
type tree struct {
	name, under string
	// mount mounts it; nil for the plain directory.
	mount func() (*mount, error)
}

// open mounts the tree and returns the directory in it.
func (t tree) open(b *bench) (dir string, stop func() error, err error) {
	if t.mount == nil {
		return b.wide(), func() error { return nil }, nil
	}
	m, err := t.mount()
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(m.point, t.under), m.stop, nil
}

// twice measures the first and the second run of an operation in a new mount,
// which has loaded the table's log already.
func (b *bench) twice(t tree, run func(dir string) error) (first, second float64, err error) {
	dir, stop, err := t.open(b)
	if err != nil {
		return 0, 0, err
	}
	if _, err = os.Lstat(filepath.Join(dir, tables.WideFile(0))); err == nil {
		err = dropNames()
	}
	if err == nil {
		if first, err = took(func() error { return run(dir) }); err == nil {
			second, err = took(func() error { return run(dir) })
		}
	}
	if stopped := stop(); err == nil {
		err = stopped
	}
	return first, second, err
}

// dropNames empties the kernel's caches of names and inodes, not of pages.
func dropNames() error { return os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0) }

func found(dir string) error {
	n, err := countFiles(dir)
	if err == nil && n < tables.WideFiles {
		err = fmt.Errorf("find found %d files in %s", n, dir)
	}
	return err
}

// silent runs a command on a directory, its output going nowhere.
func silent(command string, args ...string) func(dir string) error {
	return func(dir string) error { return exec.Command(command, append(args, dir)...).Run() }
}

func statAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := e.Info(); err != nil {
			return err
		}
	}
	return nil
}
