package snapshot

// TagName and TagModTime are the add.tags keys that keep a dropped file's name
// and the modification time its writer gave it (RFC 3339, nanoseconds, UTC).
const (
	TagName    = "deltafs.name"
	TagModTime = "deltafs.mtime"
)

// maxName is the longest name of a directory entry on Linux, in bytes.
const maxName = 255
