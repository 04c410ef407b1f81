package snapshot

import (
	"cmp"
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
	return scanActions(newActionReader(ctx, object), visit)
}

func newActionReader(ctx context.Context, object store.Object) *action.Reader {
	return action.NewReader(&cancelReader{ctx, io.NewSectionReader(object, 0, math.MaxInt64)}, object.Info().Size)
}

func scanActions(r *action.Reader, visit func(action.Action) error) error {
	for {
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
func readCommit(r *action.Reader, v int64, visit func(action.Action) error) error {
	count := 0
	err := scanActions(r, func(a action.Action) error {
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

// openCommit opens a commit file that was listed. One that was replaced since
// is refused, because it may belong to another table.
func (n *incarnation) openCommit(ctx context.Context, l *listing, v int64) (store.Object, error) {
	object, err := n.table.store.Open(ctx, CommitName(v))
	if err != nil {
		return nil, err
	}
	if listed, ok := l.commit(v); !ok || listed.info.Identity != object.Info().Identity {
		object.Close()
		return nil, fault.Wrap(ErrCorrupt, errReplaced, "cannot replay the log").AtVersion(v).InFile(path.Base(CommitName(v)))
	}
	return object, nil
}

// readCommit reads the actions of a commit file that was listed, and returns
// which one that is. Of adds and removes it reads what a listing needs.
func (n *incarnation) readCommit(ctx context.Context, v int64, visit func(action.Action) error) (logFile, error) {
	object, err := n.openCommit(ctx, n.log(), v)
	if err != nil {
		return logFile{}, err
	}
	defer object.Close()
	r := newActionReader(ctx, object)
	r.Brief = true
	info := object.Info()
	return logFile{CommitName(v), info.Identity, info.Changed}, readCommit(r, v, visit)
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
	// state is what it says of the header, and from is its commit file.
	state []action.Action
	from  []logFile
	gone  []metacache.Gone
	added []metacache.File
}

// readChange reads commit v on top of base, which is nil for version 0.
func (r *fileReplay) readChange(ctx context.Context, base *header, v int64) (*change, error) {
	c, sure, err := r.scanChange(ctx, base, v, nil)
	if err != nil || sure {
		return c, err
	}
	c, _, err = r.scanChange(ctx, base, v, c.header.shape)
	return c, err
}

// scanChange reads a commit whose metadata has this shape; nil if that is not
// known yet, as the order of actions in a commit means nothing. Then the result
// is not sure if an add came before a metaData action that moves it.
func (r *fileReplay) scanChange(ctx context.Context, base *header, v int64, known *shape) (c *change, sure bool, err error) {
	b := newHeaderBuilder(base, v)
	adds := addedFiles{replay: r, version: v, at: map[string]int{}}
	c = &change{}
	sure = true
	file, err := r.readCommit(ctx, v, func(a action.Action) error {
		switch a := a.(type) {
		case *action.Add:
			s := cmp.Or(known, b.next.shape)
			if s == nil {
				sure = false
				return nil
			}
			return adds.put(a, s)
		case *action.Remove:
			c.gone = append(c.gone, metacache.Gone{Path: CanonicalPath(a.Path, r.table.store.Root()), DV: a.DVID()})
		case *action.Protocol, *action.Metadata, *action.Txn, *action.DomainMetadata:
			c.state = append(c.state, a)
			b.apply(a)
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	c.from = []logFile{file}
	if c.header, err = b.finish(); err != nil {
		return nil, false, failLog(err, v)
	}
	c.added = adds.files
	return c, sure && adds.laidOutAs(c.header.shape), nil
}

// addedFiles are the files that a commit adds, the last one for each path.
type addedFiles struct {
	replay  *fileReplay
	version int64
	files   []metacache.File
	at      map[string]int
	// shape is that of the file added last.
	shape *shape
	// mixed says that not all files have the same layout.
	mixed bool
}

func (l *addedFiles) put(add *action.Add, s *shape) error {
	l.mixed = l.mixed || l.shape != nil && !l.shape.sameLayout(s)
	l.shape = s
	dir := l.replay.dirsOf(s).ofMap(add.PartitionValues)
	f, err := indexFile(add, fromCommit(l.version), dir, l.replay.table.store.Root())
	if err != nil {
		return err
	}
	if i, again := l.at[f.Path]; again {
		l.files[i] = f
		return nil
	}
	l.at[f.Path] = len(l.files)
	l.files = append(l.files, f)
	return nil
}

// laidOutAs reports whether all files have the directories of this shape.
func (l *addedFiles) laidOutAs(s *shape) bool {
	return l.shape == nil || !l.mixed && l.shape.sameLayout(s)
}

// indexFile makes the index entry of an add that appears in dir.
func indexFile(add *action.Add, from origin, dir, root string) (metacache.File, error) {
	if add.Size < 0 {
		return metacache.File{}, fault.New(ErrCorrupt, "an add has the size %d", add.Size).
			AtVersion(from.version()).InFile(add.Path)
	}
	canonical := CanonicalPath(add.Path, root)
	raw := add.Path
	if raw == canonical {
		raw = ""
	}
	return metacache.File{
		Key: metacache.Key{
			Dir:  dir,
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
