package metacache

import (
	"bytes"
	"context"
	"iter"
)

// fold covers a version by the base of a new run, made of the version before and
// what the commit changes. The run of the one before stays for its versions. The
// caller holds writing.
func (x *Runs) fold(ctx context.Context, before view, v int64, note []byte, gone []Gone, added []File) error {
	f := folding{index: x, before: before, gone: make(map[Gone]bool, len(gone)), lastID: x.LastID()}
	for _, g := range gone {
		f.gone[g] = true
	}
	builder := newHeapBuilder()
	builder.keepsIDs = true
	b, err := build(ctx, builder, f.files(ctx, added))
	if err != nil {
		return err
	}
	x.insert(b, versionInfo{note: bytes.Clone(note), totals: b.totals()}, v, f.lastID)
	x.dropUnread(before.run)
	return nil
}

// folding is a commit on its way into a base.
type folding struct {
	index  *Runs
	before view
	gone   map[Gone]bool
	lastID FileID
}

// files yields those that the commit leaves and those that it adds. Of a path
// that is in both the later one counts.
func (f *folding) files(ctx context.Context, added []File) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for file, err := range f.before.scan(ctx, f.before.all()) {
			if err == nil && f.gone[Gone{Path: file.Path, DV: file.DV}] {
				continue
			}
			if !yield(file, err) || err != nil {
				return
			}
		}
		for _, file := range added {
			var err error
			if file.ID, err = f.id(ctx, &file); !yield(file, err) || err != nil {
				return
			}
		}
	}
}

// id returns the ID of an added file: the one it has in any run, or a new one.
func (f *folding) id(ctx context.Context, file *File) (FileID, error) {
	id, err := f.before.idOf(ctx, file.Path, file.DV)
	if id == 0 && err == nil {
		id, err = f.index.idElsewhere(ctx, f.before.run, file)
	}
	if id == 0 && err == nil {
		f.lastID++
		id = f.lastID
	}
	return id, err
}
