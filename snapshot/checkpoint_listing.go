package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"unsafe"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
	"github.com/parquet-go/parquet-go"
)

// files yields the index entries of the checkpoint's files, of those that are
// to be kept; all if keep is nil. Their strings are valid until the next one.
// Another goroutine decodes ahead.
func (c *checkpointFile) files(ctx context.Context, st store.Store, h *header, keep func(*metacache.File) bool) fileSeq {
	return func(yield func(metacache.File, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		decoded, free := make(chan *fileBatch), make(chan *fileBatch, batchesAhead)
		var failed error
		go func() {
			defer close(decoded)
			failed = c.decodeFiles(ctx, st, h, free, decoded)
		}()
		defer func() {
			cancel()
			for b := range decoded {
				b.release()
			}
		}()
		for range batchesAhead {
			free <- &fileBatch{}
		}
		for b := range decoded {
			more := b.yield(keep, yield)
			b.release()
			if !more {
				return
			}
			free <- b
		}
		if failed != nil {
			yield(metacache.File{}, failed)
		}
	}
}

// decodeFiles decodes the files batch by batch, taking batches from free and
// sending them to decoded.
func (c *checkpointFile) decodeFiles(ctx context.Context, st store.Store, h *header, free <-chan *fileBatch, decoded chan<- *fileBatch) error {
	dirs := newDirNames(h.shape.partitions)
	lines := &fileLines{version: c.version, root: st.Root(), dirs: dirs, free: free, decoded: decoded}
	err := c.visit(ctx, st, checkpointVisitor{
		rowGroup: func(p *checkpointPart, number int, first int64) (bool, error) {
			columns := fileColumns{
				dirs: dirs, root: st.Root(), budget: &p.budget, rows: p.file.RowGroups()[number].NumRows(),
				origin: func(row int64) (origin, error) { return fromCheckpoint(c.version, first+row) },
			}
			return true, columns.decode(ctx, p, number, free, decoded)
		},
		line: func(_ *action.Reader, a action.Action, row int64) (bool, error) { return true, lines.put(ctx, a, row) },
	})
	lines.flush()
	return err
}

// fileLines makes batches of the adds of a JSON file.
type fileLines struct {
	version int64
	root    string
	dirs    *dirNames
	free    <-chan *fileBatch
	decoded chan<- *fileBatch
	// batch is the one that is being filled, nil before the first add.
	batch *fileBatch
}

func (l *fileLines) put(ctx context.Context, a action.Action, row int64) error {
	add, ok := a.(*action.Add)
	if !ok {
		return nil
	}
	from, err := fromCheckpoint(l.version, row)
	if err != nil {
		return err
	}
	f, err := indexFile(add, from, l.dirs.ofMap(add.PartitionValues), l.root)
	if err != nil {
		return err
	}
	if l.batch == nil {
		select {
		case l.batch = <-l.free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if l.batch.files = append(l.batch.files, f); len(l.batch.files) == batchRows {
		l.flush()
	}
	return nil
}

// flush sends what was filled.
func (l *fileLines) flush() {
	if l.batch != nil {
		l.decoded <- l.batch
		l.batch = nil
	}
}

// fileBatch is some files of a checkpoint, with the pages and the text whose
// memory they borrow.
type fileBatch struct {
	files []metacache.File
	pages []parquet.Page
	text  []byte

	paths, dvKinds, dvPaths    [][]byte
	sizes, modified, dvOffsets []long
}

const (
	// batchRows is how many rows of a checkpoint are decoded at a time: so many
	// that it costs little to wake the other goroutine for each.
	batchRows = 4096
	// batchesAhead is how many batches there are: one is read while others are
	// decoded.
	batchesAhead = 3
)

// grow makes room for so many rows.
func (b *fileBatch) grow(rows int) {
	for _, texts := range []*[][]byte{&b.paths, &b.dvKinds, &b.dvPaths} {
		*texts = slices.Grow((*texts)[:0], rows)[:rows]
	}
	for _, longs := range []*[]long{&b.sizes, &b.modified, &b.dvOffsets} {
		*longs = slices.Grow((*longs)[:0], rows)[:rows]
	}
	b.files = slices.Grow(b.files, rows)
}

func (b *fileBatch) yield(keep func(*metacache.File) bool, yield func(metacache.File, error) bool) bool {
	for i := range b.files {
		if f := &b.files[i]; keep == nil || keep(f) {
			if !yield(*f, nil) {
				return false
			}
		}
	}
	return true
}

// release gives back the memory that the files borrow.
func (b *fileBatch) release() {
	releasePages(b.pages)
	b.files, b.pages, b.text = b.files[:0], b.pages[:0], b.text[:0]
}

// fileColumns reads from a row group what a listing shows of its adds, and
// nothing else of them.
type fileColumns struct {
	columns                  *rowGroupColumns
	path, size, modified     *column
	dvKind, dvPath, dvOffset *column
	values, tags             *mapColumn

	dirs *dirNames
	root string
	// origin makes the origin of a row of the row group.
	origin func(row int64) (origin, error)
	// budget is how many bytes the adds may still take.
	budget *int64
	// row is the number of the next row, rows how many there are.
	row, rows int64
}

// open opens the columns.
func (c *fileColumns) open(g *rowGroupColumns) error {
	c.columns = g
	c.path, c.size, c.modified = g.text("add", "path"), g.long("add", "size"), g.long("add", "modificationTime")
	c.dvKind, c.dvPath = g.text("add", "deletionVector", "storageType"), g.text("add", "deletionVector", "pathOrInlineDv")
	c.dvOffset = g.long("add", "deletionVector", "offset")
	c.values, c.tags = g.mapping("add", "partitionValues"), g.mapping("add", "tags")
	// A checkpoint without files has the columns all the same: without them,
	// files that are there would go unseen.
	if g.err == nil && (c.path == nil || c.size == nil) {
		return errors.New("it has no columns add.path and add.size")
	}
	return g.err
}

// decode decodes the files of a row group batch by batch.
func (c *fileColumns) decode(ctx context.Context, p *checkpointPart, number int, free <-chan *fileBatch, decoded chan<- *fileBatch) error {
	return p.rowGroup(number, func(g *rowGroupColumns) error {
		if err := c.open(g); err != nil {
			return err
		}
		for c.row < c.rows {
			select {
			case b := <-free:
				if err := c.next(b); err != nil {
					return err
				}
				decoded <- b
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
}

// next puts the files of the next rows into b, which was released.
func (c *fileColumns) next(b *fileBatch) error {
	n := int(min(batchRows, c.rows-c.row))
	b.grow(n)
	if err := errors.Join(
		c.path.texts(b.paths), c.size.longs(b.sizes), c.modified.longs(b.modified),
		c.dvKind.texts(b.dvKinds), c.dvPath.texts(b.dvPaths), c.dvOffset.longs(b.dvOffsets),
		c.values.read(n), c.tags.read(n),
	); err != nil {
		return err
	}
	for i := range n {
		if b.paths[i] == nil && !b.sizes[i].valid {
			continue
		}
		b.files = b.files[:len(b.files)+1]
		if err := c.file(&b.files[len(b.files)-1], b, i); err != nil {
			return err
		}
	}
	c.row += int64(n)
	for _, column := range c.columns.open {
		b.pages = column.lend(b.pages)
	}
	return nil
}

// file makes f the index entry of row i of the batch.
func (c *fileColumns) file(f *metacache.File, b *fileBatch, i int) (err error) {
	raw, size := borrowed(b.paths[i]), b.sizes[i]
	values, tags := c.values.row(i), c.tags.row(i)
	switch *c.budget -= int64(len(raw)) + values.bytes() + tags.bytes(); {
	case raw == "":
		return errors.New("an add has no path")
	case !size.valid:
		return errors.New("an add has no size")
	case size.n < 0:
		return fmt.Errorf("the add of %s has the size %d", raw, size.n)
	case *c.budget < 0:
		return errInflated
	}
	from, err := c.origin(c.row + int64(i))
	base, plain := plainBase(raw)
	f.Path, f.Raw = raw, ""
	if !plain {
		f.Path = CanonicalPath(raw, c.root)
		base = path.Base(f.Path)
		if f.Path != raw {
			f.Raw = raw
		}
	}
	f.Dir, f.Name, f.DV = c.dirs.of(values), visibleName(tags.text(TagName), base, f.Path), b.vector(i)
	f.Size, f.ModTime, f.Origin = size.n, modTime(b.modified[i].n, tags.text(TagModTime)), uint64(from)
	return err
}

// vector returns the id of the deletion vector of row i, as
// action.DeletionVector.ID does.
func (b *fileBatch) vector(i int) string {
	if b.dvKinds[i] == nil {
		return ""
	}
	from := len(b.text)
	b.text = append(append(b.text, b.dvKinds[i]...), b.dvPaths[i]...)
	if offset := b.dvOffsets[i]; offset.valid {
		b.text = strconv.AppendInt(append(b.text, '@'), offset.n, 10)
	}
	return borrowed(b.text[from:])
}

// bytesOf returns s as bytes that share its memory and must not be changed;
// never nil.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// borrowed returns b as a string that shares its memory.
func borrowed(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
