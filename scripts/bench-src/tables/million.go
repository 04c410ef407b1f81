package tables

// The shape of the table of a million files.
const (
	MillionFiles      = 1_000_000
	MillionPartitions = 2_000
	// MillionLatest is its latest version, 40 commits after a checkpoint.
	MillionLatest = 10_040
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
		w, err := newLogWriter(dir, shape{
			partitions: MillionPartitions,
			live:       func(v int64) int64 { return v * MillionFiles / MillionLatest },
			removed:    5,
			checkpoint: func(v int64) bool {
				return v > 0 && (v%1000 == 0 || v%100 == 0 && v > MillionLatest-1000)
			},
		})
		if err != nil {
			return Million{}, err
		}
		counts := map[int64][]int{}
		for v := int64(0); v <= MillionLatest; v++ {
			if err := w.commit(v); err != nil {
				return Million{}, err
			}
			for _, measured := range MillionVersions {
				if v == measured {
					counts[v] = w.partitionSizes()
				}
			}
		}
		return describeMillion(w.names, counts), nil
	})
}

// partitionSizes counts the live files of each partition.
func (w *logWriter) partitionSizes() []int {
	sizes := make([]int, w.partitions)
	for _, f := range w.files {
		sizes[f.partition]++
	}
	return sizes
}

func describeMillion(names fileNames, counts map[int64][]int) Million {
	best := 0
	latest := counts[MillionLatest]
	for p, n := range latest {
		if abs(n-partitionFiles) < abs(latest[best]-partitionFiles) {
			best = p
		}
	}
	out := Million{Partition: names.directory(best), Files: map[int64]int{}}
	for v, sizes := range counts {
		out.Files[v] = sizes[best]
	}
	return out
}

func abs(n int) int { return max(n, -n) }
