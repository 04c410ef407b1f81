package snapshot

import (
	"context"
	"errors"
	"io"
	"math"
	"path"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
)

// readActions calls visit for every action of a log file, in order, until it
// returns an error.
func readActions(ctx context.Context, st store.Store, name string, visit func(action.Action) error) error {
	object, err := st.Open(ctx, name)
	if err != nil {
		return err
	}
	defer object.Close()
	return scanActions(ctx, object, visit)
}

func scanActions(ctx context.Context, object store.Object, visit func(action.Action) error) error {
	in := &cancelReader{ctx, io.NewSectionReader(object, 0, math.MaxInt64)}
	for r := action.NewReader(in); ; {
		a, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(a)
		}
		if err != nil {
			return err
		}
	}
}

// cancelReader stops a long read when its context ends.
type cancelReader struct {
	ctx context.Context
	in  io.Reader
}

func (r *cancelReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// readCommit reads the actions of one commit file. A line that does not parse
// is ErrCorrupt; a file that vanished is store.ErrNotExist.
func readCommit(ctx context.Context, object store.Object, v int64, visit func(action.Action) error) error {
	count := 0
	err := scanActions(ctx, object, func(a action.Action) error {
		count++
		return visit(a)
	})
	name := path.Base(CommitName(v))
	var bad *action.LineError
	switch {
	case errors.As(err, &bad):
		return fault.Wrap(ErrCorrupt, err, "the commit file does not parse").AtVersion(v).InFile(name).
			WithHint("restore the file; earlier versions are not affected")
	case err == nil && count == 0:
		return fault.New(ErrCorrupt, "the commit file is empty").AtVersion(v).InFile(name).
			WithHint("restore the file; earlier versions are not affected")
	}
	return err
}

// readCommit reads a commit file that was listed. One that was replaced since
// is refused, because it may belong to another table.
func (n *incarnation) readCommit(ctx context.Context, v int64, visit func(action.Action) error) error {
	object, err := n.table.store.Open(ctx, CommitName(v))
	if err != nil {
		return err
	}
	defer object.Close()
	if listed, ok := n.log().commit(v); !ok || listed.info.Identity != object.Info().Identity {
		return fault.Wrap(ErrCorrupt, errReplaced, "cannot replay the log").AtVersion(v).InFile(path.Base(CommitName(v)))
	}
	return readCommit(ctx, object, v, visit)
}

// errReplaced: a commit file is not the one that was listed.
var errReplaced = errors.New("the commit file was replaced")

// failLog says that the log up to v misses what every table has.
func failLog(err error, v int64) error {
	return fault.Wrap(ErrCorrupt, err, "the log does not describe a table").AtVersion(v).InFile(path.Base(CommitName(v)))
}

// change is what one commit does to the version before it.
type change struct {
	header *header
	gone   []metacache.Gone
	added  []metacache.File
}

// readChange reads commit v on top of base, which is nil for version 0.
func (n *incarnation) readChange(ctx context.Context, base *header, v int64) (*change, error) {
	b := newHeaderBuilder(base, v)
	root := n.table.store.Root()
	out := &change{}
	var adds []*action.Add
	if err := n.readCommit(ctx, v, func(a action.Action) error {
		switch a := a.(type) {
		case *action.Add:
			adds = append(adds, a)
		case *action.Remove:
			out.gone = append(out.gone, metacache.Gone{Path: CanonicalPath(a.Path, root), DV: a.DVID()})
		default:
			b.apply(a)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	h, err := b.finish()
	if err != nil {
		return nil, failLog(err, v)
	}
	out.header = h
	// Only now is the metadata known that names the partition columns: the
	// order of actions in a commit means nothing.
	out.added, err = indexFiles(adds, h, root)
	return out, err
}

// indexFiles makes index entries, the last one for each path.
func indexFiles(adds []*action.Add, h *header, root string) ([]metacache.File, error) {
	out := make([]metacache.File, 0, len(adds))
	at := make(map[string]int, len(adds))
	for _, add := range adds {
		f, err := indexFile(add, fromCommit(h.version), h, root)
		if err != nil {
			return nil, err
		}
		if i, again := at[f.Path]; again {
			out[i] = f
			continue
		}
		at[f.Path] = len(out)
		out = append(out, f)
	}
	return out, nil
}

// indexFile makes the index entry of an add.
func indexFile(add *action.Add, from origin, h *header, root string) (metacache.File, error) {
	if add.Size < 0 {
		return metacache.File{}, fault.New(ErrCorrupt, "an add has the size %d", add.Size).
			AtVersion(h.version).InFile(add.Path)
	}
	canonical := CanonicalPath(add.Path, root)
	raw := add.Path
	if raw == canonical {
		raw = ""
	}
	return metacache.File{
		Key: metacache.Key{
			Dir:  PartitionDir(h.shape.partitions, add.PartitionValues),
			Name: visibleName(value(add.Tags[TagName]), path.Base(canonical), canonical),
			Path: canonical,
		},
		DV:      add.DVID(),
		Size:    add.Size,
		ModTime: modTime(add.ModificationTime, value(add.Tags[TagModTime])),
		Raw:     raw,
		Origin:  uint64(from),
	}, nil
}
