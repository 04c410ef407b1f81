package metacache

import (
	"cmp"
	"strings"
	"unique"
)

// record is a File in little memory: the directory is shared, and the strings
// lie in one text, which begins with the add action and mostly contains the
// path, which in turn mostly contains the name. Records are immutable but for
// refs and older, which Memory.mu guards.
type record struct {
	dir  unique.Handle[string]
	text string

	addLen, pathAt, pathLen, nameAt, nameLen, dvAt uint32
	// refs counts the runs' uses of the record.
	refs int32

	id                     FileID
	size, modTime, records int64
	// older is another record of the same id, as when statistics changed.
	older *record
}

func newRecord(f File, id FileID) *record {
	r := &record{
		dir: unique.Make(f.Dir), id: id,
		size: f.Size, modTime: f.ModTime, records: f.Records,
		addLen: uint32(len(f.Add)), pathLen: uint32(len(f.Path)), nameLen: uint32(len(f.Name)),
	}
	text := string(f.Add)
	place := func(s string) uint32 {
		at := strings.Index(text, s)
		if at < 0 {
			at = len(text)
			text += s
		}
		return uint32(at)
	}
	r.pathAt = place(f.Path)
	r.nameAt = place(f.Name)
	r.dvAt = uint32(len(text))
	r.text = text + f.DV
	return r
}

func (r *record) path() string { return r.text[r.pathAt:][:r.pathLen] }
func (r *record) name() string { return r.text[r.nameAt:][:r.nameLen] }
func (r *record) dv() string   { return r.text[r.dvAt:] }
func (r *record) add() string  { return r.text[:r.addLen] }

// file returns the record as a File of its own memory, except for strings.
func (r *record) file() File {
	return File{
		Key: Key{Dir: r.dir.Value(), Name: r.name(), Path: r.path()},
		DV:  r.dv(), ID: r.id,
		Size: r.size, ModTime: r.modTime, Records: r.records,
		Add: []byte(r.add()),
	}
}

// holds reports whether the record is of this file, but for its ID.
func (r *record) holds(f File) bool {
	return r.size == f.Size && r.modTime == f.ModTime && r.records == f.Records &&
		r.add() == string(f.Add) && r.path() == f.Path && r.name() == f.Name &&
		r.dv() == f.DV && r.dir.Value() == f.Dir
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
