package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/deltafs/deltafs/fsnode"
	"github.com/deltafs/deltafs/internal/fault"
)

// lakeSearch is how many directory entries are looked at for a table before a
// source is taken for a lake unseen.
const lakeSearch = 100_000

// checkSource refuses to mount what is neither a table nor a lake: it would be
// an empty mount, and a mistyped path is likelier. An empty directory is a
// lake whose tables are yet to come.
func checkSource(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fsnode.ErrNoSource, "no such table or directory").AtTable(path)
	case err != nil:
		return fault.Wrap(fsnode.ErrNoSource, err, "cannot be opened").AtTable(path)
	case !info.IsDir():
		return fault.New(fsnode.ErrNoSource, "not a directory").AtTable(path).WithHint("%s", tableHint)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fault.Wrap(fsnode.ErrNoSource, err, "cannot be read").AtTable(path)
	}
	if len(entries) > 0 && !hasTable(path) {
		return fault.New(fsnode.ErrNoSource, "neither a Delta table nor a directory with one below it").
			AtTable(path).WithHint("%s", tableHint)
	}
	return nil
}

const tableHint = "name the directory that holds _delta_log, or one above such directories"

func hasTable(root string) bool {
	found, seen := false, 0
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	// Links below the root are not followed, and hidden directories are no part of a lake.
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return fs.SkipDir
		case e.IsDir() && e.Name() == "_delta_log" || seen > lakeSearch:
			found = true
			return fs.SkipAll
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != root:
			return fs.SkipDir
		}
		return nil
	})
	return found
}
