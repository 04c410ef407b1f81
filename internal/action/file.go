package action

import (
	"strconv"
	"strings"
)

// ID is the unique id of the deletion vector (protocol section "Deletion
// Vectors"), "" for nil.
func (d *DeletionVector) ID() string {
	if d == nil {
		return ""
	}
	id := d.StorageType + d.PathOrInlineDV
	if d.Offset != nil {
		id += "@" + strconv.FormatInt(*d.Offset, 10)
	}
	return id
}

// DVID is the id of the file's deletion vector, "" without one. Together with
// the path it identifies a logical file.
func (a *Add) DVID() string { return a.DeletionVector.ID() }

// DVID is the id of the removed file's deletion vector, "" without one.
func (r *Remove) DVID() string { return r.DeletionVector.ID() }

// ToRemove returns the action that removes the file: the path byte for byte,
// the extended file metadata, the deletion vector and the row ids. The two
// share memory. deletionTimestamp is in milliseconds since the epoch.
func (a *Add) ToRemove(deletionTimestamp int64, dataChange bool) *Remove {
	extended, size := true, a.Size
	values := a.PartitionValues
	if values == nil {
		values = map[string]*string{}
	}
	return &Remove{
		Path:                    a.Path,
		DeletionTimestamp:       &deletionTimestamp,
		DataChange:              dataChange,
		ExtendedFileMetadata:    &extended,
		PartitionValues:         values,
		Size:                    &size,
		Stats:                   a.Stats,
		Tags:                    a.Tags,
		DeletionVector:          a.DeletionVector,
		BaseRowID:               a.BaseRowID,
		DefaultRowCommitVersion: a.DefaultRowCommitVersion,
	}
}

// NumRecords is the number of physical rows that the statistics state, rows
// in the deletion vector included; -1 when they state none. It reads no
// further than the number.
func (a *Add) NumRecords() int64 {
	const member = "numRecords"
	if rest, ok := strings.CutPrefix(a.Stats, `{"`+member+`":`); ok {
		if end := strings.IndexAny(rest, ",}"); end > 0 {
			if n, err := strconv.ParseInt(rest[:end], 10, 64); err == nil && n >= 0 {
				return n
			}
		}
	}
	for name, value := range Members([]byte(a.Stats)) {
		if name == member && value.Kind() == '0' {
			if n, ok := exactInt(value); ok && n >= 0 {
				return n
			}
		}
	}
	return -1
}
