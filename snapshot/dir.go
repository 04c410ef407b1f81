package snapshot

import (
	"context"
	"iter"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
)

// Files that share a visible name in one directory form a group. A group of
// one is shown under its visible name; of a larger one, or of one whose name a
// subdirectory has, each file is shown with a hash of its path. Entries are
// ordered by visible name, a subdirectory before the files of its name.

// Dir yields subdirectories and files of a directory ("" = root), in order of
// name, after the given name. A directory that holds no file yields
// ErrNotExist; the root always exists.
func (s *Snapshot) Dir(ctx context.Context, dir, after string) iter.Seq2[DirEntry, error] {
	return func(yield func(DirEntry, error) bool) {
		found := dir == ""
		for e, err := range s.entries(ctx, dir, after) {
			found = true
			if !yield(e, s.table.fault(err)) || err != nil {
				return
			}
		}
		if found {
			return
		}
		if exists, err := s.isDir(ctx, dir); err != nil {
			yield(DirEntry{}, err)
		} else if !exists {
			yield(DirEntry{}, s.notExist(dir))
		}
	}
}

func (s *Snapshot) notExist(name string) error {
	return fault.New(ErrNotExist, "no such name").AtTable(s.table.name).AtVersion(s.Version()).InFile(name)
}

// entries merges subdirectories and groups of files.
func (s *Snapshot) entries(ctx context.Context, dir, after string) iter.Seq2[DirEntry, error] {
	return func(yield func(DirEntry, error) bool) {
		start, rest, err := s.resume(ctx, dir, after)
		if err != nil {
			yield(DirEntry{}, err)
			return
		}
		if len(rest) > 0 && !s.yieldGroup(rest, true, yield) {
			return
		}
		nextDir, stopDirs := iter.Pull2(s.subdirs(ctx, dir, start))
		defer stopDirs()
		sub, err, more := nextDir()
		for group, groupErr := range groups(s.files(ctx, dir, start)) {
			if groupErr != nil {
				yield(DirEntry{}, groupErr)
				return
			}
			shared := len(group) > 1
			for ; more && err == nil && sub <= group[0].Name; sub, err, more = nextDir() {
				shared = shared || sub == group[0].Name
				if !yield(DirEntry{Name: sub}, nil) {
					return
				}
			}
			if more && err != nil {
				break
			}
			if !s.yieldGroup(group, shared, yield) {
				return
			}
		}
		for ; more; sub, err, more = nextDir() {
			if !yield(DirEntry{Name: sub}, err) || err != nil {
				return
			}
		}
	}
}

func (s *Snapshot) yieldGroup(group []metacache.File, shared bool, yield func(DirEntry, error) bool) bool {
	for _, f := range group {
		shown, err := s.life.file(f, shownName(f, shared), s.Version())
		if !yield(DirEntry{Name: shown.Name, File: &shown}, err) || err != nil {
			return false
		}
	}
	return true
}

func shownName(f metacache.File, shared bool) string {
	if shared {
		return collisionName(f.Name, f.Path)
	}
	return f.Name
}

// resume finds where a listing goes on after a name that was shown: the
// visible name to start after, and what is left of that name's group.
func (s *Snapshot) resume(ctx context.Context, dir, after string) (start string, rest []metacache.File, err error) {
	if after == "" {
		return "", nil, nil
	}
	group, i, err := s.find(ctx, dir, after)
	if err != nil {
		return "", nil, err
	}
	if i >= 0 {
		return group[i].Name, group[i+1:], nil
	}
	// The name of a subdirectory, or one that was never shown: the files of
	// that name come after it.
	isDir, err := s.isSubdir(ctx, dir, after)
	if err != nil {
		return "", nil, err
	}
	group, err = s.group(ctx, dir, after)
	if !isDir && len(group) == 1 {
		group = nil
	}
	return after, group, err
}

// Lookup finds a name in a directory, by the name that Dir shows. ErrNotExist;
// ErrAmbiguous for the bare name of several files.
func (s *Snapshot) Lookup(ctx context.Context, dir, name string) (DirEntry, error) {
	isDir, err := s.isSubdir(ctx, dir, name)
	if err != nil {
		return DirEntry{}, err
	}
	if isDir {
		return DirEntry{Name: name}, nil
	}
	group, err := s.group(ctx, dir, name)
	if err != nil {
		return DirEntry{}, err
	}
	i := 0
	switch len(group) {
	case 0:
		if group, i, err = s.find(ctx, dir, name); err != nil {
			return DirEntry{}, err
		}
		if i < 0 {
			return DirEntry{}, s.notExist(joinDir(dir, name))
		}
	case 1:
	default:
		return DirEntry{}, fault.New(ErrAmbiguous, "%d files share this name", len(group)).
			AtTable(s.table.name).AtVersion(s.Version()).InFile(joinDir(dir, name)).
			WithHint("use the name with a hash that the directory lists, such as %s", collisionName(name, group[0].Path))
	}
	f, err := s.life.file(group[i], name, s.Version())
	return DirEntry{Name: name, File: &f}, err
}

// find resolves the listed name of a file that shares its visible name: the
// group and the place in it, -1 if it is no such name.
func (s *Snapshot) find(ctx context.Context, dir, shown string) (group []metacache.File, at int, err error) {
	stem, hash, ext, cut, ok := splitCollisionName(shown)
	if !ok {
		return nil, -1, nil
	}
	names := []string{stem + ext}
	if cut {
		if names, err = s.namesLike(ctx, dir, stem, ext); err != nil {
			return nil, -1, err
		}
	}
	for _, name := range names {
		if group, err = s.group(ctx, dir, name); err != nil {
			return nil, -1, err
		}
		for i, f := range group {
			if shortHash(f.Path, collisionHash) != hash || collisionName(f.Name, f.Path) != shown {
				continue
			}
			shared := len(group) > 1
			if !shared {
				shared, err = s.isSubdir(ctx, dir, name)
			}
			if shared || err != nil {
				return group, i, err
			}
		}
	}
	return nil, -1, nil
}

// namesLike returns the visible names that begin with stem and end in ext: the
// stem of a long name was cut to make room for the hash.
func (s *Snapshot) namesLike(ctx context.Context, dir, stem, ext string) ([]string, error) {
	var names []string
	if stem == "" {
		return nil, nil
	}
	// The greatest name that sorts before every name with this stem.
	before := stem[:len(stem)-1]
	for group, err := range groups(s.files(ctx, dir, before)) {
		if err != nil {
			return nil, err
		}
		name := group[0].Name
		if name > stem && !strings.HasPrefix(name, stem) {
			break
		}
		if strings.HasPrefix(name, stem) && strings.HasSuffix(name, ext) {
			names = append(names, name)
		}
	}
	return names, nil
}

// show makes Files of a whole group.
func (s *Snapshot) show(ctx context.Context, group []metacache.File) ([]File, error) {
	shared := len(group) > 1
	if !shared {
		var err error
		if shared, err = s.isSubdir(ctx, group[0].Dir, group[0].Name); err != nil {
			return nil, err
		}
	}
	out := make([]File, len(group))
	for i, f := range group {
		var err error
		if out[i], err = s.life.file(f, shownName(f, shared), s.Version()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// groups collects neighbours of one directory and visible name.
func groups(files fileSeq) iter.Seq2[[]metacache.File, error] {
	return func(yield func([]metacache.File, error) bool) {
		var group []metacache.File
		for f, err := range files {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(group) > 0 && (group[0].Dir != f.Dir || group[0].Name != f.Name) {
				if !yield(group, nil) {
					return
				}
				group = nil
			}
			group = append(group, f)
		}
		if len(group) > 0 {
			yield(group, nil)
		}
	}
}

func (s *Snapshot) files(ctx context.Context, dir, after string) fileSeq {
	return coveredSeq(ctx, s, func() fileSeq { return s.life.index.Dir(ctx, s.Version(), dir, after) })
}

func (s *Snapshot) subdirs(ctx context.Context, dir, after string) iter.Seq2[string, error] {
	return coveredSeq(ctx, s, func() iter.Seq2[string, error] {
		return s.life.index.Subdirs(ctx, s.Version(), dir, after)
	})
}

func (s *Snapshot) group(ctx context.Context, dir, name string) ([]metacache.File, error) {
	return covered(ctx, s, func() ([]metacache.File, error) {
		return s.life.index.Lookup(ctx, s.Version(), dir, name)
	})
}

// isSubdir reports whether dir has a subdirectory of the name.
func (s *Snapshot) isSubdir(ctx context.Context, dir, name string) (bool, error) {
	// All directories are partition directories, so most names cost nothing.
	if !strings.Contains(name, "=") {
		return false, nil
	}
	return s.isDir(ctx, joinDir(dir, name))
}

// isDir reports whether the directory holds a file at any depth.
func (s *Snapshot) isDir(ctx context.Context, dir string) (bool, error) {
	for _, err := range s.files(ctx, dir, "") {
		return err == nil, s.table.fault(err)
	}
	for _, err := range s.subdirs(ctx, dir, "") {
		return err == nil, s.table.fault(err)
	}
	return false, nil
}

func joinDir(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
