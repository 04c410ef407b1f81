package writer

import (
	"crypto/rand"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// dataPath makes a new unique name for a data file: disk is relative to the
// table root, addPath is what add.path says. dir is the hive-escaped partition
// directory ("" = none), config the table's configuration, codec the one
// compression codec of the file as Parquet names it, "" if it has several.
// The directory is decoration, so that delta.randomizeFilePrefixes may replace
// it.
func dataPath(dir string, config map[string]string, codec string) (disk, addPath string) {
	if isTrue(config, "delta.randomizeFilePrefixes") {
		dir = randomPrefix(config)
	}
	disk = path.Join(dir, "part-00000-"+uuid.NewString()+".c000"+codecSuffix(codec)+".parquet")
	return disk, encodePath(disk)
}

// codecSuffix is the part of a file name that Spark derives from the codec.
func codecSuffix(codec string) string {
	switch strings.ToUpper(codec) {
	case "SNAPPY":
		return ".snappy"
	case "GZIP":
		return ".gz"
	case "ZSTD":
		return ".zstd"
	case "BROTLI":
		return ".br"
	case "LZ4":
		return ".lz4hadoop"
	case "LZ4_RAW":
		return ".lz4raw"
	}
	return ""
}

// randomPrefix is a directory name that spreads the files of a table over the
// key space of an object store. Lower case alone, so that it is the same
// directory on every file system.
func randomPrefix(config map[string]string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	n := 2
	if text, ok := property(config, "delta.randomPrefixLength"); ok {
		if given, err := strconv.Atoi(text); err == nil && given > 0 {
			n = min(given, 64)
		}
	}
	b := make([]byte, n)
	rand.Read(b)
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}

// encodePath turns a path on disk into an add.path: the URI encoding that
// Spark applies (protocol section "Add File and Remove File"). What a URI path
// may hold stays, and so do printable characters outside ASCII.
func encodePath(disk string) string {
	var b strings.Builder
	for i := 0; i < len(disk); {
		r, size := utf8.DecodeRuneInString(disk[i:])
		if mustEncode(r, size) {
			for _, c := range []byte(disk[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(disk[i : i+size])
		}
		i += size
	}
	return b.String()
}

func mustEncode(r rune, size int) bool {
	if r == utf8.RuneError && size == 1 {
		return true // not UTF-8, and JSON has no other way to say it
	}
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Z) ||
		strings.ContainsRune("\"#%<>?[\\]^`{|}", r)
}

// property returns a table property. Engines store the canonical spelling,
// people do not.
func property(config map[string]string, key string) (string, bool) {
	if v, ok := config[key]; ok {
		return v, true
	}
	for k, v := range config {
		if strings.EqualFold(k, key) {
			return v, true
		}
	}
	return "", false
}

// isTrue reports whether a boolean table property is set to true.
func isTrue(config map[string]string, key string) bool {
	v, ok := property(config, key)
	return ok && strings.EqualFold(strings.TrimSpace(v), "true")
}
