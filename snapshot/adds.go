package snapshot

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

// addWindow is how many files' adds are held at a time when all are read. For
// each window all pages of a checkpoint may have to be decoded, as its rows are
// in no order; a window with statistics takes some tens of megabytes.
const addWindow = 1 << 17

// AllAdds yields every file with its add action, in order of directory and
// name. The adds share memory: callers must not change them.
func (s *Snapshot) AllAdds(ctx context.Context) iter.Seq2[FileAdd, error] {
	return func(yield func(FileAdd, error) bool) {
		var window []File
		flush := func() bool {
			adds, err := s.Adds(ctx, window...)
			if err != nil {
				yield(FileAdd{}, err)
				return false
			}
			for i, f := range window {
				if !yield(FileAdd{f, adds[i]}, nil) {
					return false
				}
			}
			window = window[:0]
			return true
		}
		for f, err := range s.Files(ctx) {
			if err != nil {
				yield(FileAdd{}, err)
				return
			}
			if window = append(window, f); len(window) == addWindow && !flush() {
				return
			}
		}
		flush()
	}
}

// Adds returns the add actions of files of this snapshot's table, which are
// read from the log: each commit file and each checkpoint once. They share
// memory: callers must not change them. What a file's add was read from may
// have been cleaned up since; then it is looked for in what the log holds.
func (s *Snapshot) Adds(ctx context.Context, files ...File) ([]*action.Add, error) {
	adds, err := s.life.adds(ctx, files)
	return adds, s.table.fault(err)
}

// adds returns the add of each file.
func (n *incarnation) adds(ctx context.Context, files []File) ([]*action.Add, error) {
	if err := n.alive(); err != nil {
		return nil, err
	}
	w := newWantedAdds(n.table.store.Root(), files)
	for from := range w.byOrigin() {
		if err := n.addsFrom(ctx, from, w); err != nil && !passable(err) {
			return nil, err
		}
	}
	if w.missing == 0 {
		return w.found, nil
	}
	if err := n.addsAnywhere(ctx, w); err != nil {
		return nil, err
	}
	return w.found, w.check()
}

// passable reports whether an error says no more than that a file of the log
// is not what it was.
func passable(err error) bool { return logChanged(err) || errors.Is(err, errCheckpoint) }

// wantedAdds are files and the adds that were found for them.
type wantedAdds struct {
	root  string
	files []File
	found []*action.Add
	// missing is how many were not found.
	missing int
}

func newWantedAdds(root string, files []File) *wantedAdds {
	return &wantedAdds{root, files, make([]*action.Add, len(files)), len(files)}
}

// put takes the add of file i; false if it is not that. A path may be added
// again for another file.
func (w *wantedAdds) put(i int, add *action.Add) bool {
	f := &w.files[i]
	if add == nil || CanonicalPath(add.Path, w.root) != CanonicalPath(f.Path, w.root) || add.DVID() != f.DV ||
		add.Size != f.logged || modTime(add.ModificationTime, value(add.Tags[TagModTime])) != f.ModTime.UnixMilli() {
		return false
	}
	if w.found[i] == nil {
		w.missing--
	}
	w.found[i] = add
	return true
}

// byOrigin yields the files that are in one version of the log, in a commit or
// in a checkpoint, ordered by row.
func (w *wantedAdds) byOrigin() iter.Seq[[]int] {
	order := make([]int, len(w.files))
	for i := range order {
		order[i] = i
	}
	at := func(i int) origin { return w.files[i].origin }
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(at(a), at(b)) })
	return func(yield func([]int) bool) {
		for len(order) > 0 {
			first := at(order[0])
			_, inRow := first.row()
			n := slices.IndexFunc(order, func(i int) bool {
				_, row := at(i).row()
				return row != inRow || at(i).version() != first.version()
			})
			if n < 0 {
				n = len(order)
			}
			if !yield(order[:n]) {
				return
			}
			order = order[n:]
		}
	}
}

// check says which add was not found.
func (w *wantedAdds) check() error {
	for i, add := range w.found {
		if add == nil {
			f := w.files[i]
			return fault.New(ErrNoVersion, "the log no longer holds the add action of the file").
				AtVersion(f.Version).InFile(f.Path).
				WithHint("it was cleaned up; look at a version that the log still has, such as the latest")
		}
	}
	return nil
}

// addsFrom finds the adds of files that have one origin but for the row.
func (n *incarnation) addsFrom(ctx context.Context, from []int, w *wantedAdds) error {
	v, l := w.files[from[0]].origin.version(), n.log()
	if _, ok := w.files[from[0]].origin.row(); !ok {
		return n.addsOfCommit(ctx, l, v, from, w)
	}
	// The version may have several checkpoints; the one that was loaded has the
	// files in these rows.
	var failed error
	for _, c := range l.checkpointsUpTo(v) {
		if c.version != v {
			break
		}
		if failed = n.addsOfCheckpoint(ctx, &c, from, w); failed == nil {
			return nil
		}
		if !passable(failed) {
			break
		}
	}
	return failed
}

// addsOfCommit finds the adds of one commit: of several for a file the last.
func (n *incarnation) addsOfCommit(ctx context.Context, l *listing, v int64, wanted []int, w *wantedAdds) error {
	byPath := map[string][]int{}
	for _, i := range wanted {
		byPath[w.files[i].Path] = append(byPath[w.files[i].Path], i)
	}
	object, err := n.openCommit(ctx, l, v)
	if err != nil {
		return err
	}
	defer object.Close()
	r := newActionReader(ctx, object)
	r.Brief = true
	return readCommit(r, v, func(a action.Action) error {
		brief, ok := a.(*action.Add)
		if !ok || len(byPath[brief.Path]) == 0 {
			return nil
		}
		whole, err := r.Whole()
		if add, ok := whole.(*action.Add); ok && err == nil {
			for _, i := range byPath[brief.Path] {
				w.put(i, add)
			}
		}
		return err
	})
}

// errRows: a checkpoint does not have the files in the rows where they were.
var errRows = errors.New("the checkpoint was replaced")

// addsOfCheckpoint finds the adds in the rows of a checkpoint.
func (n *incarnation) addsOfCheckpoint(ctx context.Context, c *checkpointFile, wanted []int, w *wantedAdds) error {
	rows := make([]int64, 0, len(wanted))
	for _, i := range wanted {
		if row, _ := w.files[i].origin.row(); len(rows) == 0 || row != rows[len(rows)-1] {
			rows = append(rows, row)
		}
	}
	same := true
	err := c.adds(ctx, n.table.store, rows, func(row int64, add *action.Add) bool {
		for ; same && len(wanted) > 0; wanted = wanted[1:] {
			if at, _ := w.files[wanted[0]].origin.row(); at != row {
				break
			}
			same = w.put(wanted[0], add)
		}
		return same
	})
	if err == nil && !same {
		err = errors.Join(errRows, errCheckpoint)
	}
	return err
}
