package writer

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// Committed looks for the ids in the commits after a version, and if some of
// those were cleaned up, among the files of the newest version.
func (b *tableBackend) Committed(ctx context.Context, since int64, ids map[string]bool) (map[string]bool, bool, error) {
	if err := b.Refresh(ctx); err != nil {
		return nil, false, err
	}
	found := map[string]bool{}
	latest, sure := b.w.table.Latest(), true
	for v := since + 1; v <= latest && len(found) < len(ids); v++ {
		err := b.searchCommit(ctx, v, ids, found)
		if errors.Is(err, store.ErrNotExist) {
			sure = false
		} else if err != nil {
			return nil, false, err
		}
	}
	if sure || len(found) == len(ids) {
		return found, true, nil
	}
	s, err := b.w.table.At(ctx, latest)
	if err != nil {
		return nil, false, err
	}
	for f, err := range s.Files(ctx) {
		if err != nil {
			return nil, false, err
		}
		if id, _, ok := dataID([]byte(f.Path)); ok && ids[id] {
			found[id] = true
		}
	}
	return found, false, nil
}

// searchCommit marks the ids that a commit file names. Nobody else knows them,
// so that it does not matter in which action. The text is not parsed: a mount
// that had a file open for long may have a hundred thousand commits to read.
func (b *tableBackend) searchCommit(ctx context.Context, v int64, ids, found map[string]bool) error {
	object, err := b.w.table.Store().Open(ctx, snapshot.CommitName(v))
	if err != nil {
		return err
	}
	defer object.Close()
	return searchText(io.NewSectionReader(object, 0, object.Info().Size), ids, found)
}

// searchText marks the ids of data files that a text names.
func searchText(text io.Reader, ids, found map[string]bool) error {
	const overlap = len(dataPrefix) + idLen - 1
	buf := make([]byte, 64<<10)
	kept := 0
	for {
		n, err := io.ReadAtLeast(text, buf[kept:], len(buf)-kept)
		part := buf[:kept+n]
		for id, rest, ok := dataID(part); ok; id, rest, ok = dataID(rest) {
			if ids[id] {
				found[strings.Clone(id)] = true
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		kept = copy(buf, part[max(0, len(part)-overlap):])
	}
}
