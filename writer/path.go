package writer

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// dataPrefix is how the name of a data file begins; the unique id follows.
	dataPrefix = "part-00000-"
	// idLen is the length of an id, a UUID.
	idLen = 36
)

// codecSuffixes are the parts of a file name that Spark derives from the
// compression codec, by the codec's name in Parquet.
var codecSuffixes = map[string]string{
	"SNAPPY": ".snappy", "GZIP": ".gz", "ZSTD": ".zstd", "BROTLI": ".br", "LZ4": ".lz4hadoop", "LZ4_RAW": ".lz4raw",
}

// dataPath makes the name of the data file with a unique id: disk is relative
// to the table root, addPath is what add.path says. dir is the hive-escaped
// partition directory ("" = none), config the table's configuration, codec the
// one compression codec of the file as Parquet names it, "" if it has several.
// The directory is decoration, so that delta.randomizeFilePrefixes may replace
// it.
func dataPath(dir, id string, config map[string]string, codec string) (disk, addPath string) {
	if isTrue(config, "delta.randomizeFilePrefixes") {
		dir = randomPrefix(config)
	}
	disk = dataFile(dir, id, codecSuffixes[strings.ToUpper(codec)])
	return disk, encodePath(disk)
}

func dataFile(dir, id, suffix string) string {
	return path.Join(dir, dataPrefix+id+".c000"+suffix+".parquet")
}

// dataFiles are the names that dataPath may have given to the data file of an
// id in a directory.
func dataFiles(dir, id string) []string {
	out := []string{dataFile(dir, id, "")}
	for _, suffix := range codecSuffixes {
		out = append(out, dataFile(dir, id, suffix))
	}
	return out
}

// dataID finds the first id of a data file in a text, such as an add.path, and
// returns what follows it.
func dataID(text []byte) (id string, rest []byte, ok bool) {
	i := bytes.Index(text, []byte(dataPrefix))
	if i < 0 || len(text)-i < len(dataPrefix)+idLen {
		return "", nil, false
	}
	rest = text[i+len(dataPrefix):]
	return string(rest[:idLen]), rest, true
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
