package metacache

import (
	"context"
	"iter"
)

// base is the complete set of files of one version, in key order: an immutable
// value. The rank of a file is its place in that order, from 0. Changes of
// later versions lie above it, in a delta.
//
// It is safe for concurrent use. The strings of a File that it returns may
// share memory with it and stay valid.
type base interface {
	// count is the number of files.
	count() int
	// totals sums up the files.
	totals() Totals
	// seekDir returns the number of the first directory at or after dir, which
	// is the number of directories if there is none.
	seekDir(ctx context.Context, dir string) (int, error)
	// dir returns the directory with this number; false at the end.
	dir(ctx context.Context, number int) (baseDir, bool, error)
	// seekName returns the rank of the first file in d whose visible name is
	// at or after name; d.end() if there is none.
	seekName(ctx context.Context, d baseDir, name string) (int, error)
	// file returns the file with a rank.
	file(ctx context.Context, rank int) (File, error)
	// scan yields the files of the ranks from first up to, not including, end.
	scan(ctx context.Context, first, end int) iter.Seq2[File, error]
	// byPath returns the rank of the file with this canonical path.
	byPath(ctx context.Context, path string) (rank int, ok bool, err error)
	// byID returns the rank of the file with this ID, with no long search for
	// one that it has not: every base of an index is asked.
	byID(ctx context.Context, id FileID) (rank int, ok bool, err error)
	// bytes is about what the base holds on the heap.
	bytes() int64
	// close gives up what the base holds; nobody uses it any more.
	close()
}

// baseDir is a directory that holds files of a base itself.
type baseDir struct {
	path string
	// first is the rank of its first file, files their number.
	first, files int
}

func (d baseDir) end() int { return d.first + d.files }
