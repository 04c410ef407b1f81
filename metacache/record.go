package metacache

import (
	"cmp"
	"strings"
	"unique"
)

// record is a File in little memory: the directory is shared, and the strings
// lie in one text, which begins with the path, which mostly contains the name.
// Records are immutable but for refs and older, which Memory.mu guards.
type record struct {
	dir  unique.Handle[string]
	text string

	pathLen, nameAt, nameLen, rawAt, dvAt uint32
	// refs counts the runs' uses of the record.
	refs int32

	id            FileID
	size, modTime int64
	origin        uint64
	// older is another record of the same id, as when the name changed.
	older *record
}

func newRecord(f File, id FileID) *record {
	r := &record{
		dir: unique.Make(f.Dir), id: id,
		size: f.Size, modTime: f.ModTime, origin: f.Origin,
		pathLen: uint32(len(f.Path)), nameLen: uint32(len(f.Name)),
	}
	text := f.Path
	at := strings.LastIndex(text, f.Name)
	if at < 0 {
		at = len(text)
		text += f.Name
	}
	r.nameAt = uint32(at)
	r.rawAt = uint32(len(text))
	r.dvAt = r.rawAt + uint32(len(f.Raw))
	var own strings.Builder // the strings of f are borrowed
	own.Grow(len(text) + len(f.Raw) + len(f.DV))
	own.WriteString(text)
	own.WriteString(f.Raw)
	own.WriteString(f.DV)
	r.text = own.String()
	return r
}

func (r *record) path() string { return r.text[:r.pathLen] }
func (r *record) name() string { return r.text[r.nameAt:][:r.nameLen] }
func (r *record) raw() string  { return r.text[r.rawAt:r.dvAt] }
func (r *record) dv() string   { return r.text[r.dvAt:] }

// file returns the record as a File.
func (r *record) file() File {
	return File{
		Key: Key{Dir: r.dir.Value(), Name: r.name(), Path: r.path()},
		DV:  r.dv(), ID: r.id, Size: r.size, ModTime: r.modTime, Raw: r.raw(), Origin: r.origin,
	}
}

// holds reports whether the record is of this file, but for its ID.
func (r *record) holds(f File) bool {
	f.ID = r.id
	return r.file() == f
}

// compareKeys orders records as their keys, without building these.
func compareKeys(a, b *record) int {
	if a.dir != b.dir {
		return CompareDirs(a.dir.Value(), b.dir.Value())
	}
	return cmp.Or(strings.Compare(a.name(), b.name()), strings.Compare(a.path(), b.path()))
}

// pivot is a record to seek with: nothing but a key.
func pivot(k Key) *record { return newRecord(File{Key: k}, 0) }
