package snapshot

import (
	"net/url"
	"path"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
)

// logDir is the directory of the log in a table.
const logDir = "_delta_log"

// CanonicalPath turns a path of the log (protocol section "Add File and
// Remove File": a URI, relative to the root or absolute) into the one form
// under which differently spelled paths of one file are equal: decoded, clean,
// relative to the root if it lies inside, else absolute.
func CanonicalPath(raw, root string) string {
	if _, plain := plainBase(raw); plain {
		return raw
	}
	scheme, rest, absolute := splitScheme(raw)
	if !absolute {
		return path.Clean(decodePath(raw))
	}
	p := decodePath(rest)
	if scheme == "" || strings.EqualFold(scheme, "file") {
		p = path.Clean(stripAuthority(p))
	} else {
		p = strings.ToLower(scheme) + ":" + p
	}
	if inner, ok := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/"); ok && inner != "" {
		return path.Clean(inner)
	}
	return p
}

// plainBase returns the base name of a path of the log that is canonical as it
// is: relative, clean, without an escape or a scheme. Almost all are.
func plainBase(raw string) (base string, ok bool) {
	if strings.IndexByte(raw, '%') >= 0 || strings.IndexByte(raw, ':') >= 0 {
		return "", false
	}
	for {
		i := strings.IndexByte(raw, '/')
		part := raw
		if i >= 0 {
			part = raw[:i]
		}
		if part == "" || part == "." || part == ".." {
			return "", false
		}
		if i < 0 {
			return raw, true
		}
		raw = raw[i+1:]
	}
}

// decodePath decodes a URI path exactly once. Some old writers did not encode
// at all: what is no valid encoding is taken as it is. A plus sign is a plus
// sign.
func decodePath(raw string) string {
	if decoded, err := url.PathUnescape(raw); err == nil {
		return decoded
	}
	return raw
}

// splitScheme recognises absolute paths: a leading slash, or a scheme followed
// by ":/". A bare "a:b.parquet" is relative.
func splitScheme(raw string) (scheme, rest string, absolute bool) {
	if strings.HasPrefix(raw, "/") {
		return "", raw, true
	}
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || !isScheme(scheme) || !strings.HasPrefix(rest, "/") {
		return "", raw, false
	}
	return scheme, rest, true
}

// isScheme follows RFC 3986, section 3.1.
func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		other := c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return s != ""
}

// stripAuthority turns ///a, //localhost/a and /a into /a.
func stripAuthority(p string) string {
	rest, ok := strings.CutPrefix(p, "//")
	if !ok {
		return p
	}
	if _, after, ok := strings.Cut(rest, "/"); ok {
		return "/" + after
	}
	return p
}

// storeName is the name in the table's storage of a file with this canonical
// path. ErrOutside when it leads out of the table or into its log.
func storeName(canonical string) (string, error) {
	refuse := func(hint, format string, args ...any) (string, error) {
		return "", fault.New(ErrOutside, format, args...).InFile(canonical).WithHint("%s", hint)
	}
	_, _, absolute := splitScheme(canonical)
	first, _, _ := strings.Cut(canonical, "/")
	switch {
	case absolute:
		return refuse("files outside the table are served only from places that were allowed when mounting",
			"the log names a file outside the table")
	case first == "..":
		return refuse("the log is damaged or was tampered with", "the path leaves the table's directory")
	case first == logDir:
		return refuse("the log is damaged or was tampered with", "the path leads into the table's log")
	case canonical == "." || strings.ContainsRune(canonical, 0):
		return refuse("the log is damaged or was tampered with", "the path names no file")
	}
	return canonical, nil
}
