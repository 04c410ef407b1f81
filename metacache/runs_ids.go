package metacache

import (
	"cmp"
	"context"
	"slices"
)

// assignIDs gives the files of a new base, for version v, the IDs that they
// have in other runs, and new ones to the others. It returns the last ID. The
// caller holds writing.
func (x *Runs) assignIDs(ctx context.Context, b *heapBase, v int64) (last FileID, err error) {
	views := x.views(nil)
	slices.SortStableFunc(views, func(a, b view) int { return cmp.Compare(a.distance(v), b.distance(v)) })
	k := knownIDs{base: b, ids: make([]FileID, b.slots*min(len(views), 1)), left: b.count()}
	for _, v := range views {
		defer v.release()
		if err := x.failed(ctx, v, k.lookIn(ctx, v)); err != nil && ctx.Err() != nil {
			return 0, err
		}
	}
	last = x.LastID()
	if k.left == b.count() {
		b.firstID = last + 1
		return last + FileID(b.count()), nil
	}
	for _, slot := range b.order {
		if k.ids[slot] == 0 {
			last++
			k.ids[slot] = last
		}
	}
	b.setIDs(k.ids)
	return last, nil
}

// distance is how far a version is from the run of the view: runs that are
// near have more files in common.
func (v view) distance(version int64) int64 {
	return max(v.run.first-version, version-v.version, 0)
}

// knownIDs are the IDs that files of a base have in other runs.
type knownIDs struct {
	base *heapBase
	// ids are by slot, 0 for those not known.
	ids []FileID
	// left is how many are not known.
	left int
}

// scanCost is how many files of a run can be read in order in the time of one
// lookup.
const scanCost = 16

// lookIn takes the IDs that a run knows: it looks up the files if they are few,
// else it reads all of the run.
func (k *knownIDs) lookIn(ctx context.Context, v view) error {
	if k.left > v.base.count()/scanCost {
		return v.identities(ctx, k.take)
	}
	for _, slot := range k.base.order {
		if k.left == 0 {
			break
		}
		if k.ids[slot] != 0 {
			continue
		}
		id, err := v.idOf(ctx, k.base.path(int(slot)), k.base.dv(int(slot)))
		if err != nil {
			return err
		}
		if id != 0 {
			k.ids[slot] = id
			k.left--
		}
	}
	return nil
}

// take takes the ID of a file, if the base has it.
func (k *knownIDs) take(f *File) {
	slot, ok := k.base.paths.find(f.Path, k.base.path)
	if !ok || k.ids[slot] != 0 || k.base.dv(slot) != f.DV {
		return
	}
	k.ids[slot] = f.ID
	k.left--
}
