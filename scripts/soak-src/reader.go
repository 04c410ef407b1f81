package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// readForever reads versions and current/ in turn, each at random.
func readForever(ctx context.Context, a *actor) error {
	newest := int64(-1)
	for a.pause(ctx, 100*time.Millisecond) {
		newest = a.readLatest(newest)
		if newest < 0 {
			continue
		}
		if a.random.IntN(2) == 0 {
			a.readVersion(a.someVersion(newest))
		} else {
			a.readCurrent(a.somePartition())
		}
	}
	return nil
}

// readLatest returns the newest version, which never goes back.
func (a *actor) readLatest(before int64) int64 {
	link, err := os.Readlink(filepath.Join(a.mount, "latest"))
	if err != nil {
		a.find("readlink of latest: %v", err)
		return before
	}
	v, err := strconv.ParseInt(strings.TrimPrefix(link, "@v"), 10, 64)
	if err != nil || v < before {
		a.find("latest is %q after @v%d", link, before)
		return before
	}
	return v
}

// someVersion prefers the newest versions, as people do.
func (a *actor) someVersion(newest int64) int64 {
	if a.random.IntN(3) == 0 {
		return a.random.Int64N(newest + 1)
	}
	return max(0, newest-a.random.Int64N(20))
}

// readVersion reads every row of a version and reports what it saw.
func (a *actor) readVersion(v int64) {
	root := filepath.Join(a.mount, fmt.Sprintf("@v%d", v))
	var print fingerprint
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		file, err := fileOf(path)
		print.add(name, info.Size(), file)
		return err
	})
	if err != nil {
		a.find("version %d: %v", v, err)
		return
	}
	a.log.write(event{Op: opSample, Version: v, Print: print.String(), Count: int(print.files)})
}

// readCurrent reads some files of a partition of current/. A name that was
// unlinked since the listing is missing, or means a file that is being written;
// the checker looks whether it was.
func (a *actor) readCurrent(dir string) {
	listed := time.Now()
	entries, err := os.ReadDir(a.current(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return // a partition without files
	}
	if err != nil {
		a.find("listing %s of current: %v", dir, err)
		return
	}
	if a.random.IntN(4) == 0 {
		a.reportListing(dir, entries, listed)
	}
	read := 0
	for range min(10, len(entries)) {
		name := filepath.Join(dir, entries[a.random.IntN(len(entries))].Name())
		_, err := fileOf(a.current(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			a.log.write(event{Op: opMissing, Name: name, Start: listed})
		case err != nil:
			a.log.write(event{Op: opPartial, Name: name, Start: listed, Text: err.Error()})
		default:
			read++
		}
	}
	a.log.write(event{Op: opRead, Name: dir, Count: read, Start: listed})
}

func (a *actor) reportListing(dir string, entries []os.DirEntry, listed time.Time) {
	e := event{Op: opListing, Name: dir, Start: listed, End: time.Now()}
	for _, entry := range entries {
		e.Names = append(e.Names, entry.Name())
	}
	a.log.write(e)
}
