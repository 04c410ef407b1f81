package parquetview

import (
	"context"
	"io"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetfile"
)

// planner makes the row groups of a served file, in order.
type planner struct {
	r       io.ReaderAt
	foot    *parquetfile.Footer
	schema  *schema
	deleted *roaring64.Bitmap
	// repeated is the innermost repeated group around a node, if there is one.
	repeated map[*parquetfile.Node]*parquetfile.Node

	// tail is what follows the data of the file.
	tail layout
	// live are the ranges of the file that the new footer refers to.
	live   []span
	groups [][]byte
	// made is the size of constants and groups.
	made    int64
	numRows int64
}

// part is a row group at hand.
type part struct {
	encoded []parquetfile.Field
	chunks  []chunk
	// firstRow and rows are those of the file; left is how many are served.
	firstRow, rows, left int64
	// counts are the numbers of values of columns by the repeated group around
	// them, where they had to be counted.
	counts map[*parquetfile.Node]int64
}

// served is a chunk of a served file.
type served struct {
	encoded                          []byte
	offset, compressed, uncompressed int64
}

// group plans row group i, which begins at firstRow.
func (p *planner) group(ctx context.Context, i int, firstRow int64) error {
	g := part{firstRow: firstRow, rows: p.foot.RowGroups[i].NumRows}
	g.left = g.rows - removed(p.deleted, firstRow, g.rows)
	var err error
	if g.encoded, err = parquetfile.Fields(p.foot.RowGroups[i].Encoded); err != nil {
		return broken(err, i)
	}
	for _, f := range g.encoded {
		if f.ID == 1 {
			if g.chunks, err = chunks(p.foot, i, f); err != nil {
				return err
			}
		}
	}
	if g.left == 0 {
		return nil
	}
	all := make([]served, len(p.schema.columns))
	for j, c := range p.schema.columns {
		switch {
		case c.source != nil && g.left == g.rows && c.convert.Kind == parquetchunk.Keep:
			all[j] = p.keep(&g, c)
		case c.source != nil, c.anchor != nil:
			all[j], err = p.render(ctx, &g, c)
		default:
			all[j] = p.constant(&g, c)
		}
		if err != nil {
			return err
		}
	}
	encoded := p.encode(&g, all)
	if p.made += int64(len(encoded)); p.made > maxMade {
		return fault.New(ErrUnsupported, "what is added to the file would take more than %d bytes of memory", maxMade)
	}
	p.groups = append(p.groups, encoded)
	p.numRows += g.left
	return nil
}

// maxMade bounds the bytes of constants and of the footer: a small footer of many
// row groups becomes a large one if many columns are added to each.
const maxMade = 256 << 20

// removed counts the deleted rows among rows from first on.
func removed(deleted *roaring64.Bitmap, first, rows int64) int64 {
	if deleted == nil || rows == 0 {
		return 0
	}
	n := deleted.Rank(uint64(first + rows - 1))
	if first > 0 {
		n -= deleted.Rank(uint64(first - 1))
	}
	return int64(n)
}

// keep leaves a chunk where it is.
func (p *planner) keep(g *part, c *column) served {
	chunk := &g.chunks[c.source.Column]
	p.live = append(p.live, chunk.data, chunk.offsetIndex, chunk.columnIndex, chunk.bloom)
	return served{
		encoded: chunk.renamed(c.path, !wrongBounds(p.foot, c.source)), offset: chunk.data.offset,
		compressed: chunk.data.length, uncompressed: chunk.uncompressed,
	}
}

// constant appends a chunk of equal values or nulls.
func (p *planner) constant(g *part, c *column) served {
	made := constantChunk(c, g.left)
	s := served{offset: p.tail.end, compressed: int64(len(made.bytes)), uncompressed: made.uncompressed}
	p.tail.bytes(made.bytes)
	p.made += s.compressed
	m := metaData{
		column: c, encodings: made.encodings, codec: made.codec, numValues: g.left,
		length: s.compressed, uncompressed: s.uncompressed, dataPage: s.offset + int64(made.dataPage),
		statistics: func(w *structWriter) { constantStatistics(w, c, g.left) },
	}
	if made.dataPage > 0 {
		m.dictionaryPage = s.offset
	}
	s.encoded = m.encode()
	return s
}

// render makes a region for a chunk that is made anew.
func (p *planner) render(ctx context.Context, g *part, c *column) (served, error) {
	job := p.job(g, c)
	if err := job.Measure(ctx, p.r); err != nil {
		return served{}, err
	}
	values, err := p.count(ctx, g, c, job)
	if err != nil {
		return served{}, err
	}
	layout, err := job.Layout(values)
	if err != nil {
		return served{}, err
	}
	s := served{offset: p.tail.end, compressed: layout.Length, uncompressed: layout.Length}
	p.tail.chunk(job, layout.Length)
	m := metaData{
		column: c, codec: layout.Codec, numValues: layout.NumValues,
		length: s.compressed, uncompressed: s.uncompressed, dataPage: s.offset,
	}
	for _, e := range layout.Encodings {
		m.encodings = append(m.encodings, encodedInts(int32(e))...)
	}
	if c.source != nil {
		m.statistics = convertedStatistics(g, c)
	}
	s.encoded = m.encode()
	return s, nil
}

// count is the number of values of a chunk that is made anew. Columns with the
// same repeated group around them have the same, which is counted once, in the
// column that costs the least to read.
func (p *planner) count(ctx context.Context, g *part, c *column, job *parquetchunk.Job) (int64, error) {
	inside := c.source
	if inside == nil {
		inside = c.anchor
	}
	group := p.repeated[inside]
	if group == nil || g.left == g.rows && job.Source.MaxRepetition == group.MaxRepetition {
		return job.CountValues(ctx, p.r) // which reads nothing
	}
	if n, ok := g.counts[group]; ok {
		return n, nil
	}
	leaf := donor(g, group)
	probe := parquetchunk.Job{Source: g.chunks[leaf.Column].source(leaf, g.firstRow, g.rows), Deleted: job.Deleted}
	if leaf.MaxRepetition > group.MaxRepetition {
		probe.Nulls = &parquetchunk.Nulls{
			Definition: group.MaxDefinition, Repetition: group.MaxRepetition,
			MaxDefinition: group.MaxDefinition + 1, MaxRepetition: group.MaxRepetition, Physical: format.Int32,
		}
	}
	n, err := probe.CountValues(ctx, p.r)
	if err != nil {
		return 0, err
	}
	if g.counts == nil {
		g.counts = map[*parquetfile.Node]int64{}
	}
	g.counts[group] = n
	return n, nil
}

// repeatedAround finds for each node the innermost repeated one at or above it.
func repeatedAround(root *parquetfile.Node) map[*parquetfile.Node]*parquetfile.Node {
	found := map[*parquetfile.Node]*parquetfile.Node{}
	var walk func(n, around *parquetfile.Node)
	walk = func(n, around *parquetfile.Node) {
		if n.Repeated() {
			around = n
		}
		if around != nil {
			found[n] = around
		}
		for _, c := range n.Children {
			walk(c, around)
		}
	}
	walk(root, nil)
	return found
}

func (p *planner) job(g *part, c *column) *parquetchunk.Job {
	job := &parquetchunk.Job{Convert: c.convert}
	if g.left < g.rows {
		job.Deleted = p.deleted
	}
	leaf := c.source
	if leaf == nil {
		leaf = donor(g, c.anchor)
		job.Nulls = &parquetchunk.Nulls{
			Definition: c.anchor.MaxDefinition, Repetition: c.anchor.MaxRepetition,
			MaxDefinition: c.maxDefinition, MaxRepetition: c.maxRepetition,
			Physical: c.stored.physical, TypeLength: int(c.stored.length),
		}
	}
	job.Source = g.chunks[leaf.Column].source(leaf, g.firstRow, g.rows)
	return job
}

// donor is the column below a group whose levels cost the least to read: those
// of lists deeper inside say more than is wanted, and how much has to be read.
func donor(g *part, group *parquetfile.Node) *parquetfile.Node {
	cost := func(n *parquetfile.Node) [2]int64 {
		return [2]int64{int64(n.MaxRepetition), g.chunks[n.Column].data.length}
	}
	return slices.MinFunc(group.Leaves(), func(a, b *parquetfile.Node) int {
		x, y := cost(a), cost(b)
		return slices.Compare(x[:], y[:])
	})
}

// encode makes the RowGroup.
func (p *planner) encode(g *part, all []served) []byte {
	encoded := make([][]byte, len(all))
	var compressed, uncompressed int64
	for i, s := range all {
		encoded[i] = s.encoded
		compressed += s.compressed
		uncompressed += s.uncompressed
	}
	// Some readers give a row group to the task that has its middle, which they
	// take to be half its size behind its first column.
	compressed = min(compressed, 2*(p.tail.end-1-all[0].offset))
	var w structWriter
	w.list(1, thrift.STRUCT, encoded)
	w.i64(2, uncompressed)
	w.i64(3, g.left)
	if sorting := p.sorting(g); len(sorting) > 0 {
		w.list(4, thrift.STRUCT, sorting)
	}
	w.i64(5, all[0].offset)
	w.i64(6, max(0, compressed))
	if len(p.groups) <= maxOrdinal {
		w.i16(7, int16(len(p.groups)))
	}
	return w.end()
}

const maxOrdinal = 1<<15 - 1

// sorting are the sorting columns as far as they are served as they were.
func (p *planner) sorting(g *part) (sorting [][]byte) {
	for _, f := range g.encoded {
		if f.ID != 4 {
			continue
		}
		columns, err := f.Structs()
		if err != nil {
			return nil
		}
		for _, b := range columns {
			column, ok := p.sortingColumn(b)
			if !ok {
				return sorting
			}
			sorting = append(sorting, column)
		}
	}
	return sorting
}

func (p *planner) sortingColumn(b []byte) ([]byte, bool) {
	fields, err := parquetfile.Fields(b)
	if err != nil {
		return nil, false
	}
	var w structWriter
	found := false
	for _, f := range fields {
		if f.ID != 1 {
			w.raw(f.ID, f.Type, f.Value)
			continue
		}
		i := slices.IndexFunc(p.schema.columns, func(c *column) bool {
			return c.source != nil && int64(c.source.Column) == f.Int() && c.convert.Kind == parquetchunk.Keep
		})
		if found = i >= 0; found {
			w.i32(1, int32(i))
		}
	}
	return w.end(), found
}

// metaData is what the footer says of a chunk that does not lie in the file.
type metaData struct {
	column    *column
	encodings [][]byte
	codec     format.CompressionCodec
	numValues int64
	// length and uncompressed are in bytes, with the headers of pages.
	length, uncompressed int64
	dataPage             int64
	// dictionaryPage is 0 if none is named.
	dictionaryPage int64
	// statistics appends field 12; nil appends nothing.
	statistics func(w *structWriter)
}

// encode makes the ColumnChunk.
func (m *metaData) encode() []byte {
	var w structWriter
	w.i64(2, 0)
	w.structure(3, func(w *structWriter) {
		w.i32(1, int32(m.column.stored.physical))
		w.list(2, thrift.I32, m.encodings)
		w.list(3, thrift.BINARY, encodedStrings(m.column.path))
		w.i32(4, int32(m.codec))
		w.i64(5, m.numValues)
		w.i64(6, m.uncompressed)
		w.i64(7, m.length)
		w.i64(9, m.dataPage)
		if m.dictionaryPage > 0 {
			w.i64(11, m.dictionaryPage)
		}
		if m.statistics != nil {
			m.statistics(w)
		}
	})
	return w.end()
}
