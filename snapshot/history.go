package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
)

// History yields the commits from the newest to the oldest, also those that
// can no longer be rebuilt. A commit whose commitInfo does not read has a nil
// Info; a version that is known from a checkpoint alone is listed too.
func (t *Table) History(ctx context.Context) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		life, err := t.current()
		if err != nil {
			yield(Commit{}, err)
			return
		}
		l := life.log()
		for _, v := range slices.Backward(l.known()) {
			if err := ctx.Err(); err != nil {
				yield(Commit{}, err)
				return
			}
			c, err := t.historyEntry(ctx, life, l, v)
			if !yield(c, t.fault(err)) || err != nil {
				return
			}
		}
	}
}

func (t *Table) historyEntry(ctx context.Context, life *incarnation, l *listing, v int64) (Commit, error) {
	c := Commit{Version: v, Readable: l.check(v) == nil}
	var err error
	if c.Time, _, err = life.commitTime(ctx, v); err != nil {
		return c, err
	}
	if _, ok := l.commit(v); ok {
		c.Info, err = t.commitInfo(ctx, v)
	}
	if err != nil && ctx.Err() == nil {
		t.log.Warn("commitInfo does not read", "op", "history", "table", t.name, "version", v, "err", err)
		err = nil
	}
	return c, err
}

// known returns the versions of which the log has a commit or a complete
// checkpoint, ascending.
func (l *listing) known() []int64 {
	out := make([]int64, 0, len(l.commits.all)+len(l.checkpoints))
	for _, c := range l.commits.all {
		out = append(out, c.version)
	}
	for _, c := range l.checkpoints {
		out = append(out, c.version)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// commitInfo returns the commitInfo of a commit, nil if it has none. It
// decodes that one line and reads no further.
func (t *Table) commitInfo(ctx context.Context, v int64) (*action.CommitInfo, error) {
	return t.commitInfoWithin(ctx, v, math.MaxInt)
}

// leadingCommitInfo is commitInfo if it is the first action of the commit, as
// one with an in-commit timestamp must be (protocol section "In-Commit
// Timestamps"). The rest of the commit is not read.
func (t *Table) leadingCommitInfo(ctx context.Context, v int64) (*action.CommitInfo, error) {
	return t.commitInfoWithin(ctx, v, 1)
}

// commitInfoWithin looks for the commitInfo in so many lines.
func (t *Table) commitInfoWithin(ctx context.Context, v int64, lines int) (*action.CommitInfo, error) {
	object, err := t.store.Open(ctx, CommitName(v))
	if err != nil {
		return nil, err
	}
	defer object.Close()
	in := bufio.NewReaderSize(&cancelReader{ctx, io.NewSectionReader(object, 0, math.MaxInt64)}, 16<<10)
	for ; lines > 0; lines-- {
		line, more, err := commitInfoLine(in)
		if err != nil || line == nil && !more {
			return nil, err
		}
		if line == nil {
			continue
		}
		a, err := action.Decode(line)
		if err != nil {
			return nil, err
		}
		if info, ok := a.(*action.CommitInfo); ok {
			return info, nil
		}
	}
	return nil, nil
}

// commitInfoLine reads one line and returns it if it begins as a commitInfo
// does. A line of another kind is passed over without being kept.
func commitInfoLine(in *bufio.Reader) (line []byte, more bool, err error) {
	keep, first, length := false, true, 0
	for {
		part, err := in.ReadSlice('\n')
		if first {
			keep, first = startsCommitInfo(part), false
		}
		if keep {
			line = append(line, part...)
		}
		if length += len(part); length > action.DefaultMaxLine {
			return nil, false, fmt.Errorf("a line is longer than %d bytes", action.DefaultMaxLine)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return line, false, nil
		default:
			return line, err == nil, err
		}
	}
}

func startsCommitInfo(line []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t\r"), []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte(`"commitInfo"`))
}
