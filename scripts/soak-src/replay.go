package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// replay reads the log, commit by commit, and keeps what every version holds.
type replay struct {
	table string
	// prints has the fingerprint of each version.
	prints []fingerprint
	live   map[string]liveFile
	names  map[string]bool
	// added and removed say in which version a file came and went.
	added, removed map[int64]int64
	findings       []string
}

type liveFile struct {
	name       string
	size, file int64
}

func newReplay(table string) *replay {
	return &replay{table: table, live: map[string]liveFile{}, names: map[string]bool{}, added: map[int64]int64{}, removed: map[int64]int64{}}
}

// latest is the newest version read.
func (r *replay) latest() int64 { return int64(len(r.prints)) - 1 }

// catchUp reads the commits that are there.
func (r *replay) catchUp() error {
	for {
		data, err := os.ReadFile(filepath.Join(r.table, "_delta_log", fmt.Sprintf("%020d.json", len(r.prints))))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.commit(data); err != nil {
			return err
		}
	}
}

// logged is what is read of a line of a commit.
type logged struct {
	Add, Remove *struct {
		Path            string            `json:"path"`
		PartitionValues map[string]string `json:"partitionValues"`
		Size            int64             `json:"size"`
		Tags            map[string]string `json:"tags"`
	}
}

func (r *replay) commit(data []byte) error {
	version := int64(len(r.prints))
	var print fingerprint
	if version > 0 {
		print = r.prints[version-1]
	}
	var lines []logged
	for _, text := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var l logged
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("version %d: %w", version, err)
		}
		lines = append(lines, l)
	}
	// A commit's removes come before its adds, whatever their order.
	for _, l := range lines {
		if l.Remove != nil {
			r.remove(version, l.Remove.Path, &print)
		}
	}
	for _, l := range lines {
		if a := l.Add; a != nil {
			name := a.Tags["deltafs.name"]
			if name == "" {
				name = path.Base(a.Path)
			}
			r.add(version, a.Path, liveFile{name: "day=" + a.PartitionValues["day"] + "/" + name, size: a.Size}, &print)
		}
	}
	r.prints = append(r.prints, print)
	return nil
}

func (r *replay) remove(version int64, path string, print *fingerprint) {
	f, ok := r.live[path]
	if !ok {
		r.find("version %d removes %s, which is not live", version, path)
		return
	}
	print.remove(f.name, f.size, f.file)
	delete(r.live, path)
	delete(r.names, f.name)
	r.removed[f.file] = version
}

func (r *replay) add(version int64, path string, f liveFile, print *fingerprint) {
	if _, ok := r.live[path]; ok {
		r.find("version %d adds %s, which is live", version, path)
		return
	}
	if r.names[f.name] {
		r.find("version %d has two files named %s", version, f.name)
	}
	local, err := url.PathUnescape(path)
	if err == nil {
		f.file, err = fileOf(filepath.Join(r.table, local))
	}
	if err != nil {
		r.find("version %d adds %s: %v", version, path, err)
		return
	}
	if before, ok := r.added[f.file]; ok {
		r.find("file %d was added in version %d and again in version %d", f.file, before, version)
	}
	print.add(f.name, f.size, f.file)
	r.live[path], r.names[f.name], r.added[f.file] = f, true, version
}

func (r *replay) find(format string, args ...any) {
	r.findings = append(r.findings, fmt.Sprintf(format, args...))
}

// rows is what an engine has to read of the newest version.
func (r *replay) rows() engineResult {
	var ids []int64
	for _, f := range r.live {
		for _, row := range rowsOf(f.file) {
			ids = append(ids, row.ID)
		}
	}
	slices.Sort(ids)
	sum := sha256.New()
	for _, id := range ids {
		fmt.Fprintf(sum, "%d name-%d\n", id, id)
	}
	return engineResult{Rows: len(ids), Print: hex.EncodeToString(sum.Sum(nil))}
}
