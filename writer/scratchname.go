package writer

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// isData reports whether a file of this name becomes data of the table: it
// ends in ".parquet" in any letter case and is no temporary name.
func isData(name string) bool {
	return strings.EqualFold(path.Ext(name), ".parquet") && !isTemporary(name)
}

// isScratch reports whether a file of this name never becomes data: temporary
// names of the many tools that write beside and rename, markers such as
// _SUCCESS, and names without a data extension.
func isScratch(name string) bool {
	return !isData(name) && !isForeign(name)
}

// isForeign reports whether the name promises data of a format that is not
// loaded. Keeping such a file as scratch would tell its user that it was.
func isForeign(name string) bool {
	if isTemporary(name) {
		return false
	}
	name = strings.ToLower(name)
	packed := false
	if ext := path.Ext(name); slices.Contains(packedExtensions, ext) {
		name, packed = strings.TrimSuffix(name, ext), true
	}
	ext := path.Ext(name)
	return slices.Contains(foreignExtensions, ext) || packed && ext == ".parquet"
}

var (
	packedExtensions  = []string{".gz", ".zst", ".bz2", ".xz"}
	foreignExtensions = []string{
		".csv", ".tsv", ".json", ".jsonl", ".ndjson",
		".parq", ".pq", ".orc", ".avro", ".arrow", ".feather",
	}
)

// isScratchDir reports whether a directory of this name holds scratch: what
// engines and tools make beside the data while they work.
func isScratchDir(name string) bool { return isTemporary(name) }

// isTemporary recognises the temporary and hidden names of the tools that
// people write files with.
func isTemporary(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{".", "_", "tmp_", "#", "~"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, suffix := range temporarySuffixes {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return strings.Contains(name, ".inprogress") || temporaryTail.MatchString(name) || name == "thumbs.db"
}

var temporarySuffixes = []string{
	"~", "#", ".tmp", ".temp", ".part", ".partial", ".crdownload", ".download", ".filepart",
	".swp", ".swx", "._copying_", "_.gstmp", ".part.minio", ".crc",
}

// temporaryTail matches what object_store ("x.parquet#1") and aws s3 cp
// ("x.parquet.A1b2C3d4") append, in lower case.
var temporaryTail = regexp.MustCompile(`#[0-9]+$|\.parquet\.[0-9a-z]{6,8}$`)

// isReserved reports whether no file or directory of this name may be made,
// because engines give it a meaning of its own.
func isReserved(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "_delta_log", "_change_data", "_delta_index", ".deltafs", ".delta":
		return true
	}
	return strings.HasPrefix(lower, "deletion_vector_") && strings.HasSuffix(lower, ".bin")
}
