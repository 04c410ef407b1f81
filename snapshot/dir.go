package snapshot

import (
	"context"
	"iter"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
)

// Every file lies as many directories deep as the table has partition columns,
// so a directory holds either subdirectories or files.
//
// Files that share a visible name in one directory form a group. A group of
// one is shown under its visible name, the files of a larger one each with a
// hash of their path. Entries are ordered by visible name, then path.

// Dir yields subdirectories and files of a directory ("" = root), in order of
// name, after the given name. A directory that holds no file yields
// ErrNotExist; the root always exists.
func (s *Snapshot) Dir(ctx context.Context, dir, after string) iter.Seq2[DirEntry, error] {
	return func(yield func(DirEntry, error) bool) {
		entries := s.subdirEntries
		if s.holdsFiles(dir) {
			entries = s.fileEntries
		}
		found := dir == ""
		for e, err := range entries(ctx, dir, after) {
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

// holdsFiles reports whether dir is as deep as files lie.
func (s *Snapshot) holdsFiles(dir string) bool {
	depth := 0
	if dir != "" {
		depth = strings.Count(dir, "/") + 1
	}
	return depth == len(s.PartitionFields())
}

func (s *Snapshot) notExist(name string) error {
	return fault.New(ErrNotExist, "no such name").AtTable(s.table.name).AtVersion(s.Version()).InFile(name)
}

func (s *Snapshot) subdirEntries(ctx context.Context, dir, after string) iter.Seq2[DirEntry, error] {
	return func(yield func(DirEntry, error) bool) {
		for name, err := range s.subdirs(ctx, dir, after) {
			if !yield(DirEntry{Name: name}, err) || err != nil {
				return
			}
		}
	}
}

func (s *Snapshot) fileEntries(ctx context.Context, dir, after string) iter.Seq2[DirEntry, error] {
	return func(yield func(DirEntry, error) bool) {
		show := &showing{Snapshot: s}
		// What was shown last may stand in the middle of a group.
		group, at, err := s.find(ctx, dir, after)
		if err != nil {
			yield(DirEntry{}, err)
			return
		}
		if at >= 0 {
			after = group[at].Name
			if !show.group(group, at+1, yield) {
				return
			}
		}
		for group, err := range groups(s.files(ctx, dir, after)) {
			if err != nil {
				yield(DirEntry{}, err)
				return
			}
			if !show.group(group, 0, yield) {
				return
			}
		}
	}
}

// showing makes the Files of a listing, some at a time.
type showing struct {
	*Snapshot
	slab []File
}

// slabFiles bounds what somebody keeps who keeps one File of a listing.
const slabFiles = 16

// group yields the members of a group from a place on.
func (s *showing) group(group []metacache.File, from int, yield func(DirEntry, error) bool) bool {
	for i := from; i < len(group); i++ {
		if len(s.slab) == 0 {
			s.slab = make([]File, slabFiles)
		}
		f := &s.slab[0]
		s.slab = s.slab[1:]
		*f = s.show(group, i)
		if !yield(DirEntry{Name: f.Name, File: f}, nil) {
			return false
		}
	}
	return true
}

// show makes the File of a group's member.
func (s *Snapshot) show(group []metacache.File, at int) File {
	f := group[at]
	name := f.Name
	if len(group) > 1 {
		name = collisionName(f.Name, f.Path)
	}
	return s.life.file(f, name, s.Version(), s.ordinal)
}

// Lookup finds a name in a directory, by the name that Dir shows. ErrNotExist;
// ErrAmbiguous for the bare name of several files.
func (s *Snapshot) Lookup(ctx context.Context, dir, name string) (DirEntry, error) {
	if !s.holdsFiles(dir) {
		isDir, err := s.isDir(ctx, joinDir(dir, name))
		if err == nil && !isDir {
			err = s.notExist(joinDir(dir, name))
		}
		return DirEntry{Name: name}, err
	}
	group, err := s.group(ctx, dir, name)
	at := 0
	if err == nil && len(group) == 0 {
		group, at, err = s.find(ctx, dir, name)
	} else if len(group) > 1 {
		err = fault.New(ErrAmbiguous, "%d files share this name", len(group)).
			AtTable(s.table.name).AtVersion(s.Version()).InFile(joinDir(dir, name)).
			WithHint("use the name with a hash that the directory lists, such as %s", collisionName(name, group[0].Path))
	}
	if err == nil && at < 0 {
		err = s.notExist(joinDir(dir, name))
	}
	if err != nil {
		return DirEntry{}, err
	}
	f := s.show(group, at)
	return DirEntry{Name: name, File: &f}, nil
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
			if len(group) > 1 && shortHash(f.Path, collisionHash) == hash && collisionName(f.Name, f.Path) == shown {
				return group, i, nil
			}
		}
	}
	return nil, -1, nil
}

// namesLike returns the visible names that begin with stem and end in ext: the
// stem of a long name was cut to make room for the hash.
func (s *Snapshot) namesLike(ctx context.Context, dir, stem, ext string) ([]string, error) {
	if stem == "" {
		return nil, nil
	}
	var names []string
	// Start at a name that sorts before every name with this stem.
	for group, err := range groups(s.files(ctx, dir, stem[:len(stem)-1])) {
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

// groups collects neighbours of one directory and visible name. A group is
// valid until the next step.
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
				group = group[:0]
			}
			group = append(group, f)
		}
		if len(group) > 0 {
			yield(group, nil)
		}
	}
}

func (s *Snapshot) files(ctx context.Context, dir, after string) fileSeq {
	return coveredSeq(ctx, s, func() fileSeq { return s.life.opened().Dir(ctx, s.Version(), dir, after) })
}

func (s *Snapshot) subdirs(ctx context.Context, dir, after string) iter.Seq2[string, error] {
	return coveredSeq(ctx, s, func() iter.Seq2[string, error] {
		return s.life.opened().Subdirs(ctx, s.Version(), dir, after)
	})
}

func (s *Snapshot) group(ctx context.Context, dir, name string) ([]metacache.File, error) {
	return covered(ctx, s, func() ([]metacache.File, error) {
		return s.life.opened().Lookup(ctx, s.Version(), dir, name)
	})
}

// isDir reports whether the directory holds a file at any depth.
func (s *Snapshot) isDir(ctx context.Context, dir string) (bool, error) {
	if s.holdsFiles(dir) {
		for _, err := range s.files(ctx, dir, "") {
			return err == nil, s.table.fault(err)
		}
		return false, nil
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
