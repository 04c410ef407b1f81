package snapshot

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

// addWindow is how many files' adds are held at a time when all are read.
const addWindow = 1 << 15

// AllAdds yields every file with its add action, in order of directory and
// name.
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
// read from the log: each commit file and each checkpoint once.
func (s *Snapshot) Adds(ctx context.Context, files ...File) ([]*action.Add, error) {
	adds, err := s.life.adds(ctx, files)
	return adds, s.table.fault(err)
}

// adds returns the add of each file.
func (n *incarnation) adds(ctx context.Context, files []File) ([]*action.Add, error) {
	if err := n.alive(); err != nil {
		return nil, err
	}
	out := make([]*action.Add, len(files))
	commits := map[int64][]int{}
	rows := map[int64]map[int64][]int{}
	for i, f := range files {
		v := f.origin.version()
		row, ok := f.origin.row()
		if !ok {
			commits[v] = append(commits[v], i)
			continue
		}
		if rows[v] == nil {
			rows[v] = map[int64][]int{}
		}
		rows[v][row] = append(rows[v][row], i)
	}
	for v, wanted := range commits {
		if err := n.addsOfCommit(ctx, v, files, wanted, out); err != nil {
			return nil, err
		}
	}
	for v, wanted := range rows {
		if err := n.addsOfCheckpoint(ctx, v, files, wanted, out); err != nil {
			return nil, err
		}
	}
	for i, add := range out {
		if add == nil {
			return nil, fault.New(ErrNoVersion, "the log no longer holds the add action of the file").
				AtVersion(files[i].Version).InFile(files[i].Path).WithHint("look at the table again")
		}
	}
	return out, nil
}

// addsOfCommit finds the adds of one commit: of several for a file the last.
func (n *incarnation) addsOfCommit(ctx context.Context, v int64, files []File, wanted []int, out []*action.Add) error {
	byPath := map[string][]int{}
	for _, i := range wanted {
		byPath[files[i].Path] = append(byPath[files[i].Path], i)
	}
	return n.readCommit(ctx, v, func(a action.Action) error {
		if add, ok := a.(*action.Add); ok {
			for _, i := range byPath[add.Path] {
				if add.DVID() == files[i].DV {
					out[i] = add
				}
			}
		}
		return nil
	})
}

// addsOfCheckpoint finds the adds in the rows of a checkpoint. The version may
// have several; the one that was loaded has the files in these rows.
func (n *incarnation) addsOfCheckpoint(ctx context.Context, v int64, files []File, rows map[int64][]int, out []*action.Add) error {
	var failed error
	for _, c := range n.log().checkpointsUpTo(v) {
		if c.version != v {
			break
		}
		same := true
		failed = c.adds(ctx, n.table.store, slices.Sorted(maps.Keys(rows)), func(row int64, add *action.Add) bool {
			for _, i := range rows[row] {
				if same = add != nil && add.Path == files[i].Path && add.DVID() == files[i].DV; !same {
					break
				}
				out[i] = add
			}
			return same
		})
		if failed == nil && same {
			return nil
		}
	}
	return failed
}
