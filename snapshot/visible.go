package snapshot

import (
	"path"
	"strings"
	"time"
)

// visibleName is the name under which a file appears: the name it was dropped
// with, which the log keeps in a tag ("" without one), if that is sane, else the
// base name of its canonical path. It may share the memory of either.
func visibleName(tag, base, canonical string) string {
	if saneName(tag) {
		return tag
	}
	if saneName(base) {
		return base
	}
	name := strings.NewReplacer("\x00", "_", "/", "_").Replace(base)
	if len(name) > maxName || saneName(name) {
		return suffixed(name, shortHash(canonical, collisionHash))
	}
	return "file~" + shortHash(canonical, collisionHash)
}

// saneName reports whether a directory entry may have the name.
func saneName(name string) bool {
	switch name {
	case "", ".", "..", logDir, ".delta":
		return false
	}
	return len(name) <= maxName && strings.IndexByte(name, '/') < 0 && strings.IndexByte(name, 0) < 0
}

// modTime is the modification time to show: that of the tag (""
// without one), else the log's. Both are in milliseconds since the epoch.
func modTime(logged int64, tag string) int64 {
	if tag != "" {
		if t, err := time.Parse(time.RFC3339Nano, tag); err == nil {
			return t.UnixMilli()
		}
	}
	return logged
}

// collisionHash is the number of hex digits that tell files with one visible
// name apart.
const collisionHash = 8

// collisionName is the listed name of one of several files that share a
// visible name: name~1a2b3c4d.parquet, with a hash of the path.
func collisionName(name, canonical string) string {
	return suffixed(name, shortHash(canonical, collisionHash))
}

// suffixed puts "~hash" before the extension, and cuts the stem if the result
// would be too long for a directory entry.
func suffixed(name, hash string) string {
	stem, ext := splitExt(name)
	return cutName(stem, maxName-1-len(hash)-len(ext)) + "~" + hash + ext
}

// splitExt splits off the extension; one of unusual length is part of the
// stem.
func splitExt(name string) (stem, ext string) {
	ext = path.Ext(name)
	if len(ext) > 16 || ext == name {
		return name, ""
	}
	return strings.TrimSuffix(name, ext), ext
}

// splitCollisionName undoes collisionName. cut says that name may be only the
// beginning of the visible name's stem, with ext after it.
func splitCollisionName(shown string) (stem, hash, ext string, cut, ok bool) {
	stem, ext = splitExt(shown)
	tilde := len(stem) - collisionHash - 1
	if tilde < 0 || stem[tilde] != '~' || !isLowerHex(stem[tilde+1:]) {
		return "", "", "", false, false
	}
	// cutName drops at most five bytes beyond the limit.
	return stem[:tilde], stem[tilde+1:], ext, len(shown) > maxName-6, true
}
