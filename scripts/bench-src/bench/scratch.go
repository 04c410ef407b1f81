package main

import (
	"io/fs"
	"os"
	"path/filepath"
)

// scratch is a copy of a kept table to write to, and the function that removes
// it. Files are linked where nobody writes into them, so that a long log is
// copied at once.
func (b *bench) scratch(table string) (string, func(), error) {
	parent, err := os.MkdirTemp(b.keep, "scratch-")
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
