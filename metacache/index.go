package metacache

import (
	"context"
	"errors"
	"iter"
)

// ErrNotCovered says that an index does not hold the wanted version.
var ErrNotCovered = errors.New("version is not in the index")

// ErrTooLarge says that a version has more files than an index can hold.
var ErrTooLarge = errors.New("too many files for the index")

// FileID names one (path, deletion vector) pair for as long as one of the
// versions that have it is covered. One that was dropped and is loaded again
// may have another. It is never 0, never means another pair, and fits 40 bits.
type FileID uint64

// Key orders the files of a version. Dir compares by path element: all of
// "a/b" sorts between "a" and "a-b".
type Key struct {
	// Dir is the visible partition directory, "" for the root, else
	// "col=value/col=value" in hive escaping.
	Dir string
	// Name is the visible base name, not necessarily unique in Dir.
	Name string
	// Path is the canonical path: decoded, relative to the root if inside it.
	Path string
}

// File is one live file of a version.
type File struct {
	Key
	// DV is the deletion vector's id ("" without one).
	DV string
	// ID is assigned by the index; it is ignored on the way in.
	ID FileID
	// Size is add.size in bytes.
	Size int64
	// ModTime is the time to show, in milliseconds since the epoch.
	ModTime int64
	// Raw is the path as the log spells it, "" if that is Path.
	Raw string
	// Origin says where in the log the file's add action is; an index only
	// keeps it.
	Origin uint64
}

// Gone names a file that a commit removes.
type Gone struct {
	Path string
	DV   string
}

// Totals sums up a version.
type Totals struct {
	Files int64
	Bytes int64
	// DVs is the number of files with a deletion vector.
	DVs int64
}

// add counts a file in, or out if sign is -1.
func (t *Totals) add(f *File, sign int64) {
	t.Files += sign
	t.Bytes += sign * f.Size
	if f.DV != "" {
		t.DVs += sign
	}
}

// Span is an inclusive range of versions.
type Span struct{ First, Last int64 }

// Index is a multi-version ordered map of live files. It is safe for
// concurrent use.
type Index interface {
	// Load makes version v known from its complete set of files, in any
	// order. A failed or cancelled load leaves the index as it was. The
	// strings of a file are borrowed: they are valid until the next one.
	// note is kept with the version, see Note.
	Load(ctx context.Context, v int64, note []byte, files iter.Seq2[File, error]) error
	// Apply makes version v known from version v-1, which must be covered:
	// first the removes, then the adds. Adding a live path replaces it.
	// Applying a covered version again changes nothing.
	Apply(ctx context.Context, v int64, note []byte, gone []Gone, added []File) error
	// Coverage returns the covered versions as disjoint ascending spans.
	Coverage() []Span
	// Note returns what was kept with a covered version. The caller must not
	// change it.
	Note(ctx context.Context, v int64) ([]byte, error)

	// Dir yields the files of one directory, in key order, starting after the
	// given visible name ("" = from the first).
	Dir(ctx context.Context, v int64, dir, after string) iter.Seq2[File, error]
	// Subdirs yields the names of the directories directly below dir that
	// hold a file at any depth, in order, starting after the given name.
	Subdirs(ctx context.Context, v int64, dir, after string) iter.Seq2[string, error]
	// Lookup returns all files with this visible name in dir.
	Lookup(ctx context.Context, v int64, dir, name string) ([]File, error)
	// Files yields every file of the version in key order.
	Files(ctx context.Context, v int64) iter.Seq2[File, error]
	// ByPath returns the live file with this canonical path.
	ByPath(ctx context.Context, v int64, path string) (File, bool, error)
	// ByID returns the file that an ID names, in whatever covered version it
	// lived.
	ByID(ctx context.Context, id FileID) (File, bool, error)
	// LastID is the greatest ID assigned so far, 0 before the first. Load and
	// Apply assign ascending IDs, so what lies between two calls of LastID was
	// first seen in between.
	LastID() FileID
	// Totals sums up version v, from counters.
	Totals(ctx context.Context, v int64) (Totals, error)
	Close() error
}
