package tables

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// shape is what the log of a table is like.
type shape struct {
	partitions int
	// live is the number of live files at a version.
	live func(v int64) int64
	// removed files go with every commit, and as many more come.
	removed int
	// checkpoint says whether a version has one.
	checkpoint func(v int64) bool
}

// retention is how long a checkpoint keeps tombstones.
const retention = 7 * 24 * time.Hour

// logWriter writes a log, version by version, for data files that nobody makes.
type logWriter struct {
	shape
	log     string
	names   fileNames
	picks   *rand.Rand
	files   []file
	removed []tombstone
	made    int64
}

// newLogWriter makes an empty log in dir, without version 0.
func newLogWriter(dir string, s shape) (*logWriter, error) {
	w := &logWriter{
		shape: s,
		log:   filepath.Join(dir, "_delta_log"),
		names: newFileNames(s.partitions),
		picks: rand.New(rand.NewPCG(1, 2)),
	}
	return w, os.MkdirAll(w.log, 0o755)
}

// commitTime is when a version was committed: one a minute.
func commitTime(v int64) time.Time {
	return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(v) * time.Minute)
}

// commit writes version v, and its checkpoint if it has one.
func (w *logWriter) commit(v int64) error {
	path := filepath.Join(w.log, fmt.Sprintf("%020d.json", v))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<16)
	at := commitTime(v)
	if v == 0 {
		fmt.Fprintf(out, `{"commitInfo":{"timestamp":%d,"operation":"CREATE TABLE","operationParameters":{}}}`+"\n", at.UnixMilli())
		fmt.Fprintf(out, `{"protocol":%s}`+"\n"+`{"metaData":%s}`+"\n", protocolJSON, metaDataJSON(w.names.schema(), w.names.partitionColumns(), at))
	} else {
		w.change(out, v, at)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := os.Chtimes(path, at, at); err != nil {
		return err
	}
	if !w.checkpoint(v) {
		return nil
	}
	return writeCheckpoint(w.log, v, w.names, w.files, w.unexpired(at))
}

// change removes some files and adds as many as the version needs.
func (w *logWriter) change(out *bufio.Writer, v int64, at time.Time) {
	fmt.Fprintf(out, `{"commitInfo":{"timestamp":%d,"operation":"MERGE","operationParameters":{},"engineInfo":"bench"}}`+"\n", at.UnixMilli())
	adds := w.live(v) - w.live(v-1)
	var line []byte
	if v > 1 {
		for range w.shape.removed {
			line = w.remove(at).appendRemove(line[:0])
			out.Write(line)
			adds++
		}
	}
	for range adds {
		f := w.names.file(w.made)
		w.made++
		w.files = append(w.files, f)
		line = f.appendAdd(line[:0])
		out.Write(line)
	}
}

// remove takes a file at random out of the live ones.
func (w *logWriter) remove(at time.Time) tombstone {
	i, last := w.picks.IntN(len(w.files)), len(w.files)-1
	gone := tombstone{w.files[i], at}
	w.files[i] = w.files[last]
	w.files = w.files[:last]
	w.removed = append(w.removed, gone)
	return gone
}

// unexpired returns the tombstones that a checkpoint still has.
func (w *logWriter) unexpired(at time.Time) []tombstone {
	for len(w.removed) > 0 && at.Sub(w.removed[0].at) > retention {
		w.removed = w.removed[1:]
	}
	return w.removed
}
