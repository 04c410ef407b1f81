package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// outsider commits to the log as another engine would, past the mount.
type outsider struct {
	*actor
	live map[string]int64
	// next is the version that is probably free.
	next int64
}

func commitForever(ctx context.Context, a *actor) error {
	o := &outsider{a, map[string]int64{}, 0}
	for a.pause(ctx, 500*time.Millisecond) {
		var err error
		if len(o.live) < 20 || a.random.IntN(2) == 0 {
			err = o.change(0)
		} else {
			err = o.change(2 + a.random.IntN(4))
		}
		if err != nil {
			return err // its own mistake: nothing was learned about the mount
		}
	}
	return nil
}

// change commits a new file and removes some others.
func (o *outsider) change(removed int) error {
	file := o.newFile()
	name := fmt.Sprintf("%s/%s-%d.parquet", o.somePartition(), o.who(), file)
	start := time.Now()
	lines := []string{fmt.Sprintf(`{"commitInfo":{"timestamp":%d,"operation":"WRITE","operationParameters":{},"engineInfo":"soak"}}`, start.UnixMilli())}
	names := slices.Sorted(maps.Keys(o.live))
	o.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:removed]
	for _, n := range names {
		lines = append(lines, fmt.Sprintf(`{"remove":{"path":%q,"deletionTimestamp":%d,"dataChange":true}}`, n, start.UnixMilli()))
	}
	add, err := o.write(name, file)
	if err != nil {
		return err
	}
	if err := o.commit(strings.Join(append(lines, add), "\n") + "\n"); err != nil {
		return err
	}
	o.log.write(event{Op: opAdd, Name: name, File: file, Start: start})
	for _, n := range names {
		o.log.write(event{Op: opRemove, Name: n, File: o.live[n], Start: start})
		delete(o.live, n)
	}
	o.live[name] = file
	return nil
}

// write makes the data file and returns its add action.
func (o *outsider) write(name string, file int64) (string, error) {
	data := contentOf(file)
	path := filepath.Join(o.table, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return "", err
	}
	add, err := json.Marshal(map[string]any{"add": map[string]any{
		"path": name, "partitionValues": map[string]string{"day": strings.TrimPrefix(filepath.Dir(name), "day=")},
		"size": len(data), "modificationTime": time.Now().UnixMilli(), "dataChange": true,
		"stats": fmt.Sprintf(`{"numRecords":%d}`, len(rowsOf(file))),
	}})
	return string(add), err
}

// commit puts the entry under the first free version. Whoever was faster can
// have changed nothing that it rests on: it adds, and removes its own.
func (o *outsider) commit(text string) error {
	log := filepath.Join(o.table, "_delta_log")
	draft := filepath.Join(log, ".outside-draft")
	if err := os.WriteFile(draft, []byte(text), 0o644); err != nil {
		return err
	}
	defer os.Remove(draft)
	for ; ; o.next++ {
		err := os.Link(draft, filepath.Join(log, fmt.Sprintf("%020d.json", o.next)))
		if err == nil {
			o.next++
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}
