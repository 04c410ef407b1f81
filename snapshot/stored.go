package snapshot

import (
	"context"
	"path"
	"strings"
)

// ByStoredPath returns the live file that lies at a path in the table's storage.
func (s *Snapshot) ByStoredPath(ctx context.Context, path string) (File, bool, error) {
	return s.ByPath(ctx, encodePath(path))
}

// StoredDirs are the directories in the table's storage in which the version has
// data files or deletion vectors, and those that lead there.
func (s *Snapshot) StoredDirs(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	add := func(dir string) {
		for ; dir != "." && dir != "/" && !out[dir]; dir = path.Dir(dir) {
			out[dir] = true
		}
	}
	for f, err := range s.Files(ctx) {
		if err != nil {
			return nil, err
		}
		add(path.Dir(CanonicalPath(f.Path, s.table.store.Root())))
		add(path.Clean(dvPrefix(f.DV)))
	}
	return out, nil
}

// dvPrefix is the directory of a deletion vector with this id, if that is in a file
// named by a UUID in the table (protocol section "Deletion Vector Descriptor
// Schema"); "" else.
func dvPrefix(id string) string {
	const uuidLength = 20
	name, _, _ := strings.Cut(id, "@")
	name, ok := strings.CutPrefix(name, "u")
	if !ok || len(name) < uuidLength {
		return ""
	}
	return name[:len(name)-uuidLength]
}
