package tables

import "fmt"

// addLine is the add action of a file of an unpartitioned table.
func addLine(path string, size int64, rows int) string {
	return fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":%d,"modificationTime":%d,"dataChange":true,"stats":"{\"numRecords\":%d}"}}`,
		path, size, commitTime(1).UnixMilli(), rows)
}
