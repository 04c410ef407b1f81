package tables

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// The shape of the table of a million files.
const (
	MillionFiles      = 1_000_000
	MillionPartitions = 2_000
	// MillionLatest is its latest version, 40 commits after a checkpoint.
	MillionLatest = 10_040
	// removedPerCommit files go with every commit, and as many more come.
	removedPerCommit = 5
	// partitionFiles is the size of the partition that is listed: one of the
	// middle, of which most queries ask.
	partitionFiles = 1_179
)

// Million describes the table of a million live files: its log alone, as no
// data file exists. It has a checkpoint every thousand versions, and every
// hundred among the last thousand, so that each measured version is 40 commits
// after one.
type Million struct {
	// Partition is the name of a partition directory of about 1,179 files.
	Partition string `json:"partition"`
	// Files are the files in Partition, for the versions that are measured.
	Files map[int64]int `json:"files"`
}

// MillionVersions are the versions that are measured: the latest, 500 and
// 5,000 commits back.
var MillionVersions = []int64{MillionLatest, MillionLatest - 500, MillionLatest - 5_000}

// MakeMillion makes the table in dir, and its description beside it.
func MakeMillion(dir string) (Million, error) {
	return making(dir, func(dir string) (Million, error) {
		m := millionWriter{
			log:     filepath.Join(dir, "_delta_log"),
			names:   newFileNames(MillionPartitions),
			picks:   rand.New(rand.NewPCG(1, 2)),
			perPart: map[int64][]int{},
		}
		if err := os.MkdirAll(m.log, 0o755); err != nil {
			return Million{}, err
		}
		for v := int64(0); v <= MillionLatest; v++ {
			if err := m.commit(v); err != nil {
				return Million{}, err
			}
		}
		return m.describe(), nil
	})
}

// millionWriter writes the log version by version.
type millionWriter struct {
	log     string
	names   fileNames
	picks   *rand.Rand
	live    []file
	removed []tombstone
	made    int64
	// perPart counts the live files of each partition at measured versions.
	perPart map[int64][]int
}

type tombstone struct {
	file
	at time.Time
}

func commitTime(v int64) time.Time {
	return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(v) * time.Minute)
}

func (m *millionWriter) commit(v int64) error {
	path := filepath.Join(m.log, fmt.Sprintf("%020d.json", v))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	at := commitTime(v)
	if v == 0 {
		fmt.Fprintf(w, `{"commitInfo":{"timestamp":%d,"operation":"CREATE TABLE","operationParameters":{}}}`+"\n", at.UnixMilli())
		fmt.Fprintf(w, `{"protocol":%s}`+"\n"+`{"metaData":%s}`+"\n", protocolJSON, metaDataJSON(m.names.schema(), m.names.partitionColumns(), at))
	} else {
		m.write(w, v, at)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := os.Chtimes(path, at, at); err != nil {
		return err
	}
	m.count(v)
	if !hasCheckpoint(v) {
		return nil
	}
	return writeCheckpoint(m.log, v, m.names, m.live, m.removed)
}

// write adds so many files that the latest version has a million.
func (m *millionWriter) write(w *bufio.Writer, v int64, at time.Time) {
	fmt.Fprintf(w, `{"commitInfo":{"timestamp":%d,"operation":"MERGE","operationParameters":{},"engineInfo":"bench"}}`+"\n", at.UnixMilli())
	adds := v*MillionFiles/MillionLatest - (v-1)*MillionFiles/MillionLatest
	var line []byte
	if v > 1 {
		adds += removedPerCommit
		for range removedPerCommit {
			i := m.picks.IntN(len(m.live))
			gone := tombstone{m.live[i], at}
			m.live[i] = m.live[len(m.live)-1]
			m.live = m.live[:len(m.live)-1]
			m.removed = append(m.removed, gone)
			line = gone.appendRemove(line[:0])
			w.Write(line)
		}
	}
	for range adds {
		f := m.names.file(m.made)
		m.made++
		m.live = append(m.live, f)
		line = f.appendAdd(line[:0])
		w.Write(line)
	}
}

func (m *millionWriter) count(v int64) {
	for _, measured := range MillionVersions {
		if v != measured {
			continue
		}
		counts := make([]int, MillionPartitions)
		for _, f := range m.live {
			counts[f.partition]++
		}
		m.perPart[v] = counts
	}
}

func (m *millionWriter) describe() Million {
	best := 0
	latest := m.perPart[MillionLatest]
	for p, n := range latest {
		if abs(n-partitionFiles) < abs(latest[best]-partitionFiles) {
			best = p
		}
	}
	out := Million{Partition: m.names.directory(best), Files: map[int64]int{}}
	for v, counts := range m.perPart {
		out.Files[v] = counts[best]
	}
	return out
}

func hasCheckpoint(v int64) bool {
	return v > 0 && (v%1000 == 0 || v%100 == 0 && v > MillionLatest-1_000)
}

func abs(n int) int { return max(n, -n) }
