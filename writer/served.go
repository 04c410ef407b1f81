package writer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

// A version as it is served is a table: whoever has the files of a log that is made
// here beside the data files that a mount shows. However many there are, a few are
// in memory at a time.

// WriteServed writes the checkpoint of the version.
func WriteServed(ctx context.Context, t *snapshot.ServedTable, file *os.File) error {
	out := bufio.NewWriterSize(file, 1<<20)
	return guarded(func() error {
		e := newCheckpointEncoder(out, checkpointLayout{statsText: true}, defaultCheckpointLimits)
		for a, err := range servedActions(ctx, t) {
			if err != nil {
				return err
			}
			if err := e.write(a); err != nil {
				return err
			}
		}
		return errors.Join(e.close(), out.Flush())
	})
}

// servedActions yields what a checkpoint of the version holds. An action is valid
// until the next step.
func servedActions(ctx context.Context, t *snapshot.ServedTable) iter.Seq2[action.Action, error] {
	return func(yield func(action.Action, error) bool) {
		state := []action.Action{t.Protocol, t.Metadata}
		for _, app := range slices.Sorted(maps.Keys(t.Txns)) {
			state = append(state, t.Txns[app])
		}
		for _, a := range state {
			if !yield(a, nil) {
				return
			}
		}
		for add, err := range t.Adds(ctx) {
			if !yield(add, err) || err != nil {
				return
			}
		}
	}
}

// WriteServedHint writes the _last_checkpoint that points to the checkpoint.
func WriteServedHint(ctx context.Context, t *snapshot.ServedTable, file *os.File) error {
	files, err := t.Files(ctx)
	if err != nil {
		return err
	}
	rows := files + int64(len([]action.Action{t.Protocol, t.Metadata})+len(t.Txns))
	_, err = fmt.Fprintf(file, `{"version":%d,"size":%d,"numOfAddFiles":%d}`, t.Version(), rows, files)
	return err
}

// WriteServedCommit writes the commit of the version, which the checkpoint stands
// in for: it describes the commit and does nothing.
func WriteServedCommit(ctx context.Context, t *snapshot.ServedTable, file *os.File) error {
	return writeCommit(ctx, t, file, func(func(action.Action, error) bool) {})
}

// WriteServedWhole writes a commit with the whole version.
func WriteServedWhole(ctx context.Context, t *snapshot.ServedTable, file *os.File) error {
	return writeCommit(ctx, t, file, servedActions(ctx, t))
}

func writeCommit(ctx context.Context, t *snapshot.ServedTable, file *os.File, actions iter.Seq2[action.Action, error]) error {
	info, err := t.CommitInfo(ctx)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 256<<10)
	put := func(a action.Action) error {
		line, err := action.Encode(a)
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		return err
	}
	if err := put(info); err != nil {
		return err
	}
	for a, err := range actions {
		if err != nil {
			return err
		}
		if err := put(a); err != nil {
			return err
		}
	}
	return out.Flush()
}
