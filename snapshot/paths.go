package snapshot

import (
	"context"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
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

// outsidePath is the absolute local path of a file whose canonical path leads out
// of the table; false if it does not, or to no local path.
func outsidePath(canonical, root string) (string, bool) {
	first, _, _ := strings.Cut(canonical, "/")
	switch {
	case strings.ContainsRune(canonical, 0):
		return "", false
	case first == "..":
		return path.Join(root, canonical), true
	}
	return canonical, first == ""
}

// openOutside opens a file outside the table, in one of the places that were
// allowed. The table's own directory is one of them, as the log may spell it
// otherwise, but no place for data is a log.
func (t *Table) openOutside(ctx context.Context, canonical, away string) (store.Object, error) {
	if slices.Contains(strings.Split(away, "/"), logDir) {
		return nil, fault.New(ErrOutside, "the path leads into a table's log").InFile(canonical).
			WithHint("the log is damaged or was tampered with")
	}
	object, err := t.places.Open(ctx, away)
	if errors.Is(err, store.ErrOutside) {
		return nil, fault.New(ErrOutside, "the log names a file outside the table, in no directory that was allowed").InFile(canonical).
			WithHint("mount with --allow-path %s to show it", path.Dir(away))
	}
	return object, err
}

// storeName is the name in the table's storage of a file with this canonical
// path. ErrOutside when it leads out of the table or into its log.
func storeName(canonical string) (string, error) {
	refuse := func(hint, format string, args ...any) (string, error) {
		return "", fault.New(ErrOutside, format, args...).InFile(canonical).WithHint("%s", hint)
	}
	scheme, _, absolute := splitScheme(canonical)
	first, _, _ := strings.Cut(canonical, "/")
	switch {
	case absolute && scheme != "":
		return refuse("only files of the local file system are served", "the log names a file in another storage")
	case absolute:
		return refuse("mount with --allow-path to show it", "the log names a file outside the table")
	case first == "..":
		return refuse("the log is damaged or was tampered with", "the path leaves the table's directory")
	case first == logDir:
		return refuse("the log is damaged or was tampered with", "the path leads into the table's log")
	case canonical == "." || strings.ContainsRune(canonical, 0):
		return refuse("the log is damaged or was tampered with", "the path names no file")
	}
	return canonical, nil
}
