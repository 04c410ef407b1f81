package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// nullPartition stands for null and for the empty string in a directory name.
const nullPartition = "__HIVE_DEFAULT_PARTITION__"

const upperHex = "0123456789ABCDEF"

// hiveEscaped reports whether Hive and Spark write the byte as %XX in a
// partition directory.
func hiveEscaped(b byte) bool {
	return b < 0x20 || b == 0x7f || strings.IndexByte("\"#%'*/:=?\\{[]^", b) >= 0
}

// EscapeHive and UnescapeHive convert a partition column or value to and from
// a directory name part, as Hive does.
func EscapeHive(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; hiveEscaped(c) {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// UnescapeHive undoes EscapeHive. What is no escape stays as it is.
func UnescapeHive(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b.WriteByte(c[0])
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// PartitionDir is the visible directory of a file with these partition values:
// logical names in the order of the partition columns, hive-escaped, null and
// empty as __HIVE_DEFAULT_PARTITION__. Values are looked up by the column's
// physical name when it has one, then by its own in any case. A part that is too long for a directory name
// is cut and ends in a hash of the whole.
func PartitionDir(fields []Field, values map[string]*string) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		text := nullPartition
		if v := partitionValue(f, values); v != nil && *v != "" {
			text = EscapeHive(*v)
		}
		parts[i] = shortenPart(EscapeHive(f.Name) + "=" + text)
	}
	return strings.Join(parts, "/")
}

func partitionValue(f Field, values map[string]*string) *string {
	if v, ok := values[f.PhysicalName()]; ok {
		return v
	}
	if v, ok := values[f.Name]; ok {
		return v
	}
	// Column names are not case-sensitive, and a value that differs in case
	// alone must not pass for null.
	for name, v := range values {
		if strings.EqualFold(name, f.Name) {
			return v
		}
	}
	return nil
}

// partHash is the number of hex digits that end a shortened directory name.
const partHash = 16

func shortenPart(part string) string {
	if len(part) <= maxName {
		return part
	}
	return cutName(part, maxName-1-partHash) + "~" + shortHash(part, partHash)
}

// isShortenedPart reports whether shortenPart may have made the name, whose
// value then cannot be read back.
func isShortenedPart(name string) bool {
	const slack = utf8.UTFMax - 1 + len("%X")
	tilde := len(name) - partHash - 1
	return len(name) >= maxName-slack && name[tilde] == '~' && isLowerHex(name[tilde+1:])
}

// cutName returns at most n bytes of s and never half a character or escape.
func cutName(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := 0; back < 3 && n > 0; back++ {
		if utf8.RuneStart(s[n]) {
			break
		}
		n--
	}
	for _, i := range []int{n - 1, n - 2} {
		if i >= 0 && s[i] == '%' {
			n = i
			break
		}
	}
	return s[:n]
}

// shortHash returns n hex digits of a hash of s.
func shortHash(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:n]
}

func isLowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
