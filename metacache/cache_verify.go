package metacache

import (
	"context"
	"errors"
)

// Verify reads all of a cached run and checks that it holds together. It
// returns what is wrong with it, a line for each finding, and changes nothing.
func (c *Cache) Verify(ctx context.Context, r CachedRun) error {
	if r.Err != nil {
		return r.Err
	}
	s := &slot{}
	run, err := s.openRun(c, r.Dir)
	if err != nil {
		return err
	}
	run.log.close()
	b := run.base.(*diskBase)
	defer b.close()
	v := verifier{base: b, seal: b.seal}
	var found []error
	for _, check := range []func(context.Context) error{v.files, v.paths, v.ids} {
		found = append(found, check(ctx))
		if _, err := b.state(); err != nil {
			break // which all others would say again
		}
	}
	return errors.Join(found...)
}

// verifier compares the parts of a base with each other.
type verifier struct {
	base *diskBase
	seal *seal
}

// files looks at each file from all sides.
func (v *verifier) files(ctx context.Context) error {
	var sum Totals
	var before File
	var d baseDir
	rank, dirs := 0, 0
	for f, err := range v.base.scan(ctx, 0, v.seal.count()) {
		if err != nil {
			return err
		}
		if rank > 0 && before.Compare(f.Key) >= 0 {
			return damaged(nil, "the files %d and %d are not in order", rank-1, rank)
		}
		if rank == 0 || f.Dir != before.Dir {
			if rank != d.end() {
				return damaged(nil, "the directory %d ends at %d, not at %d", dirs-1, d.end(), rank)
			}
			if d, _, err = v.base.dir(ctx, dirs); err != nil {
				return err
			}
			dirs++
		}
		if err := v.file(ctx, f, rank, d); err != nil {
			return err
		}
		sum.Files++
		sum.Bytes += f.Size
		if f.DV != "" {
			sum.DVs++
		}
		before = f
		rank++
	}
	if sum != v.seal.Totals || dirs != v.seal.Dirs {
		return damaged(nil, "it has %+v in %d directories, not %+v in %d", sum, dirs, v.seal.Totals, v.seal.Dirs)
	}
	return nil
}

// file finds a file by its path and its ID.
func (v *verifier) file(ctx context.Context, f File, rank int, d baseDir) error {
	if d.path != f.Dir || rank < d.first || rank >= d.end() {
		return damaged(nil, "the file %d is not in its directory", rank)
	}
	byPath, ok, err := v.base.byPath(ctx, f.Path)
	if err != nil {
		return err
	}
	if !ok || byPath != rank {
		return damaged(nil, "the file %d is not found by its path", rank)
	}
	byID, ok, err := v.base.byID(ctx, f.ID)
	if err != nil {
		return err
	}
	if !ok || byID != rank || f.ID > v.seal.LastID {
		return damaged(nil, "the file %d is not found by its ID", rank)
	}
	return nil
}

// paths counts the path hashes: one for each file, each in its bucket.
func (v *verifier) paths(ctx context.Context) error {
	count := 0
	for n := range 1 << v.seal.PathBits {
		bucket, err := v.base.pairs(ctx, pathsKind, n)
		if err != nil {
			return err
		}
		for i := range bucket.count() {
			if v.seal.bucket(bucket.key(i)) != n {
				return damaged(nil, "a path is in the wrong bucket %d", n)
			}
		}
		count += bucket.count()
	}
	if count != v.seal.count() {
		return damaged(nil, "it has %d paths for %d files", count, v.seal.count())
	}
	return nil
}

// ids counts the IDs, if there is a list of them.
func (v *verifier) ids(ctx context.Context) error {
	if !v.seal.OwnIDs || v.seal.count() == 0 {
		return nil
	}
	root, err := v.base.pairs(ctx, idRootKind, 0)
	if err != nil {
		return err
	}
	count := 0
	for n := range root.count() {
		ids, err := v.base.pairs(ctx, idsKind, n)
		if err != nil {
			return err
		}
		count += ids.count()
	}
	if count != v.seal.count() {
		return damaged(nil, "it has %d IDs for %d files", count, v.seal.count())
	}
	return nil
}
