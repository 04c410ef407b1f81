package snapshot

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// CommitName is the name in the table's storage of a version's commit file.
func CommitName(version int64) string { return fmt.Sprintf("%s/%020d.json", logDir, version) }

// CommitVersion is the version whose commit file has this base name.
func CommitVersion(base string) (int64, bool) {
	digits, ok := strings.CutSuffix(base, ".json")
	if !ok || len(digits) != 20 || !isDigits(digits) {
		return 0, false
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	return v, err == nil && v < math.MaxInt64
}

// LogHolds reports whether the file of a log with this base name tells nothing of
// versions after v: a commit, a checkpoint, a checksum or compacted commits. The
// pointer to the newest checkpoint, and what only writers use, it leaves out.
func LogHolds(base string, v int64) bool {
	if n, ok := newLogNames().parse(base); ok {
		return n.version <= v
	}
	if digits, ok := strings.CutSuffix(base, ".crc"); ok {
		of, ok := CommitVersion(digits + ".json")
		return ok && of <= v
	}
	if both, ok := strings.CutSuffix(base, ".compacted.json"); ok {
		first, last, _ := strings.Cut(both, ".")
		_, ok1 := CommitVersion(first + ".json")
		to, ok2 := CommitVersion(last + ".json")
		return ok1 && ok2 && to <= v
	}
	return false
}

// IsDeletionVectorFile reports whether the base name is that of a file with
// deletion vectors (protocol section "Deletion Vector Files").
func IsDeletionVectorFile(base string) bool {
	return strings.HasPrefix(base, "deletion_vector_") && strings.HasSuffix(base, ".bin")
}

// checkpointKind orders the forms of a checkpoint of one version by
// preference, the best last.
type checkpointKind int

const (
	classicCheckpoint checkpointKind = iota
	multiPartCheckpoint
	// uuidCheckpoint has a unique name and V2 content.
	uuidCheckpoint
)

// logName is what the name of a file in the log says.
type logName struct {
	version int64
	// commit is set for V.json; else the file is part number part of parts of
	// a checkpoint.
	commit      bool
	kind        checkpointKind
	part, parts int
}

// logNames recognises the files of the log that carry state (protocol section
// "File Types"), strictly: everything else in the directory is ignored, and so
// is a version that none could follow.
type logNames struct{ checkpoint *regexp.Regexp }

func newLogNames() logNames {
	const uuid = `[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`
	return logNames{regexp.MustCompile(
		`^(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})\.parquet|\.(` + uuid + `)\.(?:json|parquet)|\.parquet)$`)}
}

// parse takes a base name.
func (n logNames) parse(base string) (logName, bool) {
	if v, ok := CommitVersion(base); ok {
		return logName{version: v, commit: true}, true
	}
	m := n.checkpoint.FindStringSubmatch(base)
	if m == nil {
		return logName{}, false
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || v == math.MaxInt64 {
		return logName{}, false
	}
	out := logName{version: v, kind: classicCheckpoint, part: 1, parts: 1}
	switch {
	case m[2] != "":
		out.kind = multiPartCheckpoint
		var err1, err2 error
		out.part, err1 = strconv.Atoi(m[2])
		out.parts, err2 = strconv.Atoi(m[3])
		if err1 != nil || err2 != nil || out.part < 1 || out.part > out.parts {
			return logName{}, false
		}
	case m[4] != "":
		out.kind = uuidCheckpoint
	}
	return out, true
}
