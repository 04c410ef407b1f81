package snapshot

import (
	"context"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
)

// addsAnywhere looks for the adds that are not where they were: log cleanup
// deletes commits and checkpoints that newer checkpoints stand in for. What it
// finds is in the checkpoints that are left, or in the commits that one of
// those that are gone stood for.
func (n *incarnation) addsAnywhere(ctx context.Context, w *wantedAdds) error {
	// The log may have checkpoints that nobody looked for. The listing at hand
	// stays what it is: whoever lists for it holds refreshing, which comes before
	// loading.
	l, err := list(ctx, n.table.store)
	if err != nil {
		return err
	}
	if !l.continues(n.log()) {
		return fault.New(ErrNoVersion, "the table was deleted and made again")
	}
	for _, c := range l.checkpointsUpTo(l.latest) {
		if err := n.addsByPath(ctx, &c, w); err != nil && !passable(err) {
			return err
		}
		if w.missing == 0 {
			return nil
		}
	}
	i, _ := l.find(w.newestRow() + 1)
	for ; i > 0 && w.missing > 0; i-- {
		if err := n.addsOfCommit(ctx, l, l.commits.all[i-1].version, w.left(), w); err != nil && !passable(err) {
			return err
		}
	}
	return nil
}

// left are the files without an add.
func (w *wantedAdds) left() (out []int) {
	for i, add := range w.found {
		if add == nil {
			out = append(out, i)
		}
	}
	return out
}

// newestRow is the newest version whose checkpoint had an add that is missing,
// -1 if there is none.
func (w *wantedAdds) newestRow() int64 {
	newest := int64(-1)
	for _, i := range w.left() {
		if from := w.files[i].origin; newest < from.version() {
			if _, ok := from.row(); ok {
				newest = from.version()
			}
		}
	}
	return newest
}

// addsByPath finds adds in a checkpoint in whatever row they are.
func (n *incarnation) addsByPath(ctx context.Context, c *checkpointFile, w *wantedAdds) error {
	wanted := map[metacache.Gone][]int{}
	for _, i := range w.left() {
		f := w.files[i]
		key := metacache.Gone{Path: CanonicalPath(f.Path, w.root), DV: f.DV}
		wanted[key] = append(wanted[key], i)
	}
	at := map[int64][]int{}
	var rows []int64
	for f, err := range c.files(ctx, n.table.store, &header{shape: &shape{}}, nil) {
		if err != nil {
			return err
		}
		if files, ok := wanted[metacache.Gone{Path: f.Path, DV: f.DV}]; ok {
			row, _ := origin(f.Origin).row()
			at[row] = files
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return c.adds(ctx, n.table.store, rows, func(row int64, add *action.Add) bool {
		for _, i := range at[row] {
			w.put(i, add)
		}
		return true
	})
}
