package metacache

import (
	"cmp"
	"strings"
)

// Compare orders keys: by directory, visible name, path.
func (k Key) Compare(other Key) int {
	if k.Dir != other.Dir {
		return CompareDirs(k.Dir, other.Dir)
	}
	if k.Name != other.Name {
		return strings.Compare(k.Name, other.Name)
	}
	return strings.Compare(k.Path, other.Path)
}

// CompareDirs orders directories by path element, so that everything below a
// directory follows it at once. A slash sorts before every other byte.
func CompareDirs(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}

// firstAfter is the smallest name after s, and, for a directory, the smallest
// that is not below it.
func firstAfter(s string) string { return s + "\x00" }

// firstBelow is a directory that sorts before all those below dir, and after
// dir itself.
func firstBelow(dir string) string { return dir + "/" }

// childOf returns the name of the directory directly below dir on the way to
// a directory at any depth, "" if it is not below dir.
func childOf(dir, descendant string) string {
	rest := descendant
	if dir != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(descendant, dir+"/"); !ok {
			return ""
		}
	}
	child, _, _ := strings.Cut(rest, "/")
	return child
}

// join returns the directory called name below dir.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
