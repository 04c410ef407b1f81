package snapshot

import "time"

// STUB: pure naming logic, tested without a table.

// TagName and TagModTime are the add.tags keys that keep a dropped file's name
// and the modification time its writer gave it (RFC 3339, nanoseconds, UTC).
const (
	TagName    = "deltafs.name"
	TagModTime = "deltafs.mtime"
)

// ParseTime parses every spelling of a timestamp that may follow "@" in a
// directory name. A spelling without a zone is taken in loc.
func ParseTime(text string, loc *time.Location) (time.Time, error) { return time.Time{}, errStub }

// FormatTime is the listed spelling: UTC, milliseconds, no colons.
func FormatTime(t time.Time) string { return "" }

// EscapeHive and UnescapeHive convert a partition column or value to and from
// a directory name part, as Hive does.
func EscapeHive(s string) string { return "" }

// UnescapeHive undoes EscapeHive.
func UnescapeHive(s string) string { return "" }

// PartitionDir is the visible directory of a file with these partition values:
// logical names in the order of the partition columns, hive-escaped, null and
// empty as __HIVE_DEFAULT_PARTITION__.
func PartitionDir(fields []Field, values map[string]*string) string { return "" }

// ParsePartition parses one "column=value" directory name against the wanted
// partition field: the column matches case-insensitively, the value must be
// valid for the field's type and is returned in Delta's serialisation (nil for
// null).
func ParsePartition(f Field, name string) (value *string, err error) { return nil, errStub }
