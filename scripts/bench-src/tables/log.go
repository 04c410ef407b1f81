package tables

import (
	"fmt"
	"os"
	"path/filepath"
)

// addLine is the add action of a file of an unpartitioned table.
func addLine(path string, size int64, rows int) string {
	return fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":%d,"modificationTime":%d,"dataChange":true,"stats":"{\"numRecords\":%d}"}}`,
		path, size, commitTime(1).UnixMilli(), rows)
}

// CommitFile commits version v of the table in dir as another writer would,
// with one new file in a partition directory of its column date. The file is
// not made. The commit is there whole or not at all.
func CommitFile(dir string, v int64, partition, name string) error {
	text := fmt.Sprintf(`{"commitInfo":{"timestamp":%d,"operation":"WRITE","operationParameters":{}}}`+"\n"+
		`{"add":{"path":"%s/%s","partitionValues":{"date":%q},"size":1000,"modificationTime":%d,"dataChange":true,"stats":"{\"numRecords\":10}"}}`+"\n",
		commitTime(v).UnixMilli(), partition, name, partition[len("date="):], commitTime(v).UnixMilli())
	path := filepath.Join(dir, "_delta_log", fmt.Sprintf("%020d.json", v))
	draft := filepath.Join(dir, "_delta_log", fmt.Sprintf(".%020d.draft", v))
	if err := os.WriteFile(draft, []byte(text), 0o644); err != nil {
		return err
	}
	defer os.Remove(draft)
	return os.Link(draft, path)
}
