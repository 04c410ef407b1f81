package tables

// historyLive is the number of files that are live all the time.
const historyLive = 10

// MakeHistory makes a table of one partition that has the latest version given
// and ten live files: its log alone. Every commit adds a file and removes one.
// There is a checkpoint every hundred versions near the end. It returns the
// name of the partition directory.
func MakeHistory(dir string, latest int64) (partition string, err error) {
	return making(dir, func(dir string) (string, error) {
		w, err := newLogWriter(dir, shape{
			partitions: 1,
			live:       func(v int64) int64 { return min(v*historyLive, historyLive) },
			removed:    1,
			checkpoint: func(v int64) bool { return v > 0 && v%100 == 0 && latest-v < 1000 },
		})
		if err != nil {
			return "", err
		}
		for v := int64(0); v <= latest; v++ {
			if err := w.commit(v); err != nil {
				return "", err
			}
		}
		return w.names.directory(0), nil
	})
}
