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
	f := folding{before: before, gone: make(map[Gone]bool, len(gone))}
	for _, g := range gone {
		f.gone[g] = true
	}
	b, err := build(ctx, newHeapBuilder(), x.withRoom(v, f.files(ctx, added)))
	if err != nil {
		return err
	}
	// As for a load, which finds the IDs of very many files by reading whole runs.
	lastID, err := x.assignIDs(ctx, b, v)
	if err != nil {
		return err
	}
	x.insert(b, versionInfo{note: bytes.Clone(note), totals: b.totals()}, v, lastID)
	x.dropUnread(before.run)
	return nil
}

// folding is a commit on its way into a base.
type folding struct {
	before view
	gone   map[Gone]bool
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
			if !yield(file, nil) {
				return
			}
		}
	}
}
