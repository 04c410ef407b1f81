package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// scratches is where this process keeps its copies, beside the tables, so that
// files can be linked.
func (b *bench) scratches() string {
	return filepath.Join(b.keep, fmt.Sprintf("scratch-%d", os.Getpid()))
}

// removeScratchesOnSignal leaves no copies behind when the run is interrupted.
func (b *bench) removeScratchesOnSignal() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		os.RemoveAll(b.scratches())
		os.Exit(1)
	}()
}

// scratch is a copy of a kept table to write to, and the function that removes
// it. Files are linked where nobody writes into them, so that a long log is
// copied at once.
func (b *bench) scratch(table string) (string, func(), error) {
	if err := os.MkdirAll(b.scratches(), 0o755); err != nil {
		return "", nil, err
	}
	parent, err := os.MkdirTemp(b.scratches(), "")
	if err != nil {
		return "", nil, err
	}
	remove := func() { os.RemoveAll(parent) }
	copied := filepath.Join(parent, filepath.Base(table))
	err = filepath.WalkDir(table, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(table, path)
		if err != nil {
			return err
		}
		target := filepath.Join(copied, relative)
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o755)
		case e.Name() == "_last_checkpoint":
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(target, data, 0o644)
		default:
			return os.Link(path, target)
		}
	})
	if err != nil {
		remove()
		return "", nil, err
	}
	return copied, remove, nil
}
