package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
)

const (
	magic          = "PAR1"
	encryptedMagic = "PARE"
	// minSize is the size of a file with an empty footer: magic, the footer's
	// length, magic.
	minSize = 12
	// maxFooter bounds the footer, which is decoded in memory.
	maxFooter = 128 << 20
)

// Check decides whether the size bytes of r are one complete Parquet file: the
// footer decodes, every page it counts is where it says and adds up, nothing
// overlaps, and what no page, index, bloom filter or footer claims is zeros.
//
// The errors are [ErrNotYet], [ErrBroken], or what r returned. Page data is
// not read, so a bit that flipped in it goes unnoticed.
func Check(r io.ReaderAt, size int64) (f *File, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fault.New(ErrBroken, "the footer makes no sense: %v", p)
		}
	}()
	foot, start, err := readFooter(r, size)
	if err != nil {
		return nil, err
	}
	f, err = check(r, size, foot, start)
	if err != nil && errors.Is(err, ErrBroken) {
		if at, ok := joined(r, foot, start); ok {
			return nil, fault.Wrap(ErrBroken, err, "two Parquet files joined: the last one begins at byte %d", at).
				WithHint("write each file under a name of its own")
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// check compares a footer that begins at start with the bytes before it.
func check(r io.ReaderAt, size int64, foot *footer, start int64) (*File, error) {
	f := &File{
		Size: size, NumRows: foot.numRows, CreatedBy: foot.createdBy,
		KeyValues: foot.keyValues, RowGroups: foot.rowGroups,
	}
	if foot.encrypted {
		return nil, fault.New(ErrBroken, "the file is encrypted").WithHint("write it without encryption")
	}
	if err := f.schema(foot); err != nil {
		return nil, err
	}
	var rows int64
	for i := range f.RowGroups {
		g := &f.RowGroups[i]
		if g.NumRows < 0 || g.NumRows > math.MaxInt64-rows {
			return nil, fault.New(ErrBroken, "row group %d has %d rows", i, g.NumRows)
		}
		rows += g.NumRows
		if err := f.checkChunks(i, start); err != nil {
			return nil, err
		}
	}
	if rows != f.NumRows {
		return nil, fault.New(ErrBroken, "the row groups have %d rows, the file %d", rows, f.NumRows)
	}
	claims, err := f.claims(r, start)
	if err != nil {
		return nil, err
	}
	w := &window{r: r, end: start}
	for i := range f.RowGroups {
		for j := range f.RowGroups[i].Chunks {
			if err := f.walk(w, &f.RowGroups[i], j); err != nil {
				return nil, err
			}
		}
	}
	return f, checkGaps(r, claims)
}

// checkChunks compares the chunks of a row group with the schema.
func (f *File) checkChunks(group int, footerStart int64) error {
	g := &f.RowGroups[group]
	if len(g.Chunks) != len(f.columns) {
		return fault.New(ErrBroken, "row group %d has %d columns, the schema %d", group, len(g.Chunks), len(f.columns))
	}
	for i := range g.Chunks {
		c, leaf := &g.Chunks[i], f.columns[i]
		broken := func(format string, args ...any) error {
			return fault.New(ErrBroken, format, args...).OnColumn(pathOf(leaf))
		}
		switch start := c.start(); {
		case c.external:
			return broken("its data is in another file")
		case c.encrypted:
			return broken("the column is encrypted")
		case !c.hasMetaData:
			return broken("row group %d does not say where its data is", group)
		case c.physical != leaf.Physical:
			return broken("row group %d holds %v, the schema says %v", group, c.physical, leaf.Physical)
		case c.path != strings.Join(leaf.Path, "."):
			return broken("row group %d holds column %q in its place", group, c.path)
		case c.dictionaryPage < 0 || c.dictionaryPage > 0 && c.dictionaryPage > c.dataPage && c.NumValues > 0:
			return broken("row group %d has its dictionary at byte %d and its data at byte %d", group, c.dictionaryPage, c.dataPage)
		case c.NumValues < 0 || c.NumValues < g.NumRows || leaf.MaxRepetition == 0 && c.NumValues != g.NumRows:
			return broken("row group %d has %d rows and %d values", group, g.NumRows, c.NumValues)
		case c.size < 0 || c.size > 0 && (start < int64(len(magic)) || start > footerStart || c.size > footerStart-start):
			return broken("row group %d lies at bytes %d to %d, outside of the data (bytes %d to %d)", group, start, start+c.size, len(magic), footerStart)
		}
	}
	return nil
}

// start is where the chunk begins: at its dictionary, if it says that it has
// one. Zero means absent (parquet-mr wrote it so), and file_offset has meant
// several things and is not used.
func (c *Chunk) start() int64 {
	if c.dictionaryPage > 0 {
		return c.dictionaryPage
	}
	return c.dataPage
}

// readFooter reads and decodes the footer and returns where it begins.
func readFooter(r io.ReaderAt, size int64) (*footer, int64, error) {
	if size < minSize {
		return nil, 0, fault.New(ErrNotYet, "%d bytes are too few for a Parquet file", size)
	}
	var head, tail [8]byte
	if err := readFull(r, head[:4], 0); err != nil {
		return nil, 0, err
	}
	if err := readFull(r, tail[:], size-8); err != nil {
		return nil, 0, err
	}
	switch first, last := string(head[:4]), string(tail[4:]); {
	case first == encryptedMagic && last == encryptedMagic:
		return nil, 0, fault.New(ErrBroken, "the file is encrypted").WithHint("write it without encryption")
	case first != magic:
		return nil, 0, fault.New(ErrNotYet, "not a Parquet file: it begins with %q instead of %q", first, magic)
	case last != magic:
		return nil, 0, fault.New(ErrNotYet, "the file does not end like a Parquet file: the end is missing")
	}
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	if length == 0 || length > size-minSize {
		return nil, 0, fault.New(ErrNotYet, "a footer of %d bytes does not fit into %d bytes", length, size)
	}
	if length > maxFooter {
		return nil, 0, fault.New(ErrBroken, "a footer of %d bytes is larger than %d", length, int64(maxFooter))
	}
	b := make([]byte, length)
	start := size - 8 - length
	if err := readFull(r, b, start); err != nil {
		return nil, 0, err
	}
	d := newDecoder(b)
	foot := d.footer()
	if d.err != nil {
		return nil, 0, fault.Wrap(ErrNotYet, d.err, "the footer does not decode")
	}
	// A plain footer of an encrypted file is followed by its signature.
	if d.read() != len(b) && !foot.encrypted {
		return nil, 0, fault.New(ErrNotYet, "the footer does not decode: %d bytes are left over", len(b)-d.read())
	}
	return &foot, start, nil
}

// joined looks for the seam of two files joined, where the first one's last
// magic meets the second one's first. All that foot claims lies in the second
// file, relative to its beginning, and little else before its footer: padding,
// and copies of metadata.
func joined(r io.ReaderAt, foot *footer, start int64) (int64, bool) {
	const slack = 64 << 10
	end := int64(len(magic))
	for _, g := range foot.rowGroups {
		for _, c := range g.Chunks {
			for _, s := range []span{{c.start(), c.size}, c.offsetIndex, c.columnIndex, c.bloom} {
				if s.offset > 0 && s.length > 0 && s.offset < start && s.length <= start-s.offset {
					end = max(end, s.offset+s.length)
				}
			}
		}
	}
	last := start - end
	if last < minSize {
		return 0, false
	}
	first := max(0, last-slack)
	b := make([]byte, last+int64(len(magic))-first)
	if err := readFull(r, b, first); err != nil {
		return 0, false
	}
	i := bytes.LastIndex(b, []byte(magic+magic))
	return first + int64(i+len(magic)), i >= 0
}

// readFull fills p from off; r ending early is an error of r.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(p), off, err)
}

func pathOf(n *Node) string { return strings.Join(n.Path, ".") }
