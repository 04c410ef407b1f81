package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// mostFiles is how many files a writer lets live.
const mostFiles = 60

// writer is a process that writes through the mount, under names of its own, so
// that it knows what each of them means.
type writer struct {
	*actor
	live map[string]int64
}

func writeForever(ctx context.Context, a *actor) error {
	w := &writer{a, map[string]int64{}}
	for round := 0; a.pause(ctx, 100*time.Millisecond); round++ {
		w.step()
		if round%50 == 0 {
			w.checkListing()
		}
	}
	return nil
}

// step is one operation.
func (w *writer) step() {
	what := w.random.IntN(100)
	switch {
	case len(w.live) == 0 || what < 45 && len(w.live) < mostFiles:
		w.put(w.newName(), w.random.IntN(4) == 0)
	case what < 65:
		w.put(w.someName(), w.random.IntN(2) == 0)
	case what < 85:
		for range min(len(w.live), 1+w.random.IntN(5)) {
			w.unlink(w.someName())
		}
	case what < 90:
		name := w.someName()
		w.unlink(name)
		w.put(name, false)
	case what < 95:
		w.putAgain(w.someName())
	default:
		w.putBroken(w.newName())
	}
}

func (w *writer) newName() string {
	return fmt.Sprintf("%s/%s-%d.parquet", w.somePartition(), w.who(), w.made+1)
}

func (w *writer) someName() string {
	names := slices.Sorted(maps.Keys(w.live))
	return names[w.random.IntN(len(names))]
}

// put writes a new file under a name, which may have one; renamed says to write
// it under a scratch name first.
func (w *writer) put(name string, renamed bool) {
	file, old := w.newFile(), w.live[name]
	target := w.current(name)
	if renamed {
		target = filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".tmp")
	}
	start := time.Now()
	err := w.write(target, contentOf(file))
	if err == nil && renamed {
		err = os.Rename(target, w.current(name))
	}
	if err != nil {
		w.find("writing file %d as %s, renamed %v: %v", file, name, renamed, err)
		return
	}
	w.live[name] = file
	w.log.write(event{Op: opAdd, Name: name, File: file, Old: old, Start: start})
	w.expect(name, file)
}

// write makes the file, in one or several writes.
func (w *writer) write(path string, data []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for len(data) > 0 && err == nil {
		n := len(data)
		if n > 1 && w.random.IntN(2) == 0 {
			n = 1 + w.random.IntN(n-1)
		}
		_, err = f.Write(data[:n])
		data = data[n:]
	}
	return errors.Join(err, f.Close())
}

// expect reads a name back.
func (w *writer) expect(name string, file int64) {
	got, err := fileOf(w.current(name))
	if err != nil || got != file {
		w.find("%s reads as file %d (%v) after file %d was written", name, got, err, file)
	}
}

// putAgain writes the same bytes again, which commits nothing.
func (w *writer) putAgain(name string) {
	if err := w.write(w.current(name), contentOf(w.live[name])); err != nil {
		w.find("writing %s again: %v", name, err)
		return
	}
	w.expect(name, w.live[name])
}

// putBroken writes part of a file, which has to fail and leave no name.
func (w *writer) putBroken(name string) {
	file := w.newFile()
	data := contentOf(file)
	err := w.write(w.current(name), data[:len(data)-1-w.random.IntN(len(data)-1)])
	if !errors.Is(err, syscall.EINVAL) {
		w.find("part of file %d as %s ended with %v", file, name, err)
		return
	}
	w.log.write(event{Op: opRefused, Name: name, File: file})
}

// unlink removes a name, which is gone at once.
func (w *writer) unlink(name string) {
	start := time.Now()
	if err := os.Remove(w.current(name)); err != nil {
		w.find("unlinking %s: %v", name, err)
		return
	}
	w.log.write(event{Op: opRemove, Name: name, File: w.live[name], Start: start})
	delete(w.live, name)
	if _, err := os.Lstat(w.current(name)); !errors.Is(err, fs.ErrNotExist) {
		w.find("after unlinking %s: %v", name, err)
	}
}

// checkListing looks whether exactly the writer's live names are listed.
func (w *writer) checkListing() {
	var listed []string
	for i := range partitions {
		entries, err := os.ReadDir(w.current(partitionDir(i)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.find("listing %s of current: %v", partitionDir(i), err)
			return
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), w.who()+"-") {
				listed = append(listed, filepath.Join(partitionDir(i), e.Name()))
			}
		}
	}
	slices.Sort(listed)
	if live := slices.Sorted(maps.Keys(w.live)); !slices.Equal(listed, live) {
		w.find("current lists %v, live are %v", listed, live)
	}
}
