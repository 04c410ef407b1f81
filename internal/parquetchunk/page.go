package parquetchunk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

const (
	readAhead = 128 << 10
	// maxPage bounds a page, and what is made of one.
	maxPage = 1 << 30
	// maxEntries bounds the entries of a page whose levels are decoded, a byte
	// each.
	maxEntries = 1 << 27
	// maxLevel is the highest level that fits into a byte.
	maxLevel = 255
)

var (
	errPage   = errors.New("malformed page")
	errLevels = errors.New("levels in the obsolete encoding BIT_PACKED")
	errLarge  = errors.New("too large")
)

// pages reads the pages of a chunk one after the other.
type pages struct {
	s    *Source
	r    io.ReaderAt
	buf  *bufio.Reader
	left int64

	unpacker unpacker
	// body is the page as it lies in the file, raw what it unpacks to.
	body, raw []byte
}

func newPages(s *Source, r io.ReaderAt) *pages {
	return &pages{
		s: s, r: r, left: s.Length,
		buf:      bufio.NewReaderSize(io.NewSectionReader(r, s.Offset, s.Length), int(min(readAhead, max(s.Length, 16)))),
		unpacker: unpacker{codec: s.Codec},
	}
}

// at is the position of the next page in the file.
func (p *pages) at() int64 { return p.s.Offset + p.s.Length - p.left }

// page is a page whose content is at hand.
type page struct {
	header
	// raw is the whole content, with values that are not compressed.
	raw []byte
	// rep and def are the levels as hybrids, values the rest.
	rep, def, values []byte
}

// header reads the next page's header; io.EOF says that there is no page.
func (p *pages) header() (header, error) {
	if p.left <= 0 {
		return header{}, io.EOF
	}
	h, n, err := readHeader(p.buf)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return h, err
	}
	p.left -= int64(n)
	if int64(h.compressed) > p.left {
		return h, fmt.Errorf("%w: it is %d bytes long, its chunk ends after %d", errPage, h.compressed, p.left)
	}
	return h, nil
}

// skip passes over the content of the page whose header was read.
func (p *pages) skip(h header) error {
	_, err := p.buf.Discard(h.compressed)
	p.left -= int64(h.compressed)
	return err
}

// load reads the content of the page whose header was read. What it returns is
// valid until the next load. Without values, a data page V2 has its levels only.
func (p *pages) load(h header, values bool) (page, error) {
	g := page{header: h}
	levels := 0
	if h.kind == format.DataPageV2 {
		levels = h.defBytes + h.repBytes
		if levels > h.compressed || levels > h.uncompressed {
			return g, fmt.Errorf("%w: its levels are longer than the page", errPage)
		}
	}
	if h.compressed > maxPage || h.uncompressed > maxPage {
		return g, fmt.Errorf("%w: a page of %d bytes", errLarge, max(h.compressed, h.uncompressed))
	}
	if int64(h.uncompressed) > p.s.room() {
		return g, fmt.Errorf("%w: it says that it unpacks to %d bytes, the footer that all pages do to %d", errPage, h.uncompressed, p.s.Uncompressed)
	}
	if h.kind == format.DataPageV2 && !values {
		if err := p.read(levels); err != nil {
			return g, err
		}
		h.compressed -= levels
		g.raw = p.body
		if err := g.split(p.s); err != nil {
			return g, err
		}
		return g, p.skip(h)
	}
	if err := p.read(h.compressed); err != nil {
		return g, err
	}
	switch {
	case p.s.Codec == format.Uncompressed || h.kind == format.DataPageV2 && h.plain:
		if h.compressed != h.uncompressed {
			return g, errUnpack
		}
		g.raw = p.body
	default:
		raw, err := p.unpacker.unpack(append(p.raw[:0], p.body[:levels]...), p.body[levels:], h.uncompressed-levels)
		if err != nil {
			return g, err
		}
		g.raw, p.raw = raw, raw
	}
	return g, g.split(p.s)
}

// read reads n bytes into body. A length that the file does not bear out is found
// before it is allocated.
func (p *pages) read(n int) error {
	if n > cap(p.body) && n > 8<<20 {
		var last [1]byte
		if n, err := p.r.ReadAt(last[:], p.at()+int64(n)-1); n == 0 {
			return err
		}
	}
	p.body = grow(p.body[:0], n)[:n]
	if _, err := io.ReadFull(p.buf, p.body); err != nil {
		return err
	}
	p.left -= int64(n)
	return nil
}

// split finds the levels of a data page.
func (g *page) split(s *Source) error {
	switch g.kind {
	case format.DataPage:
		var err error
		g.values = g.raw
		if s.MaxRepetition > 0 {
			if g.rep, g.values, err = prefixed(g.values, g.repEncoding); err != nil {
				return err
			}
		}
		if s.MaxDefinition > 0 {
			if g.def, g.values, err = prefixed(g.values, g.defEncoding); err != nil {
				return err
			}
		}
	case format.DataPageV2:
		g.rep = g.raw[:g.repBytes]
		g.def = g.raw[g.repBytes : g.repBytes+g.defBytes]
		g.values = g.raw[g.repBytes+g.defBytes:]
	}
	return nil
}

// prefixed splits off levels that their length precedes.
func prefixed(b []byte, encoding format.Encoding) (levels, rest []byte, err error) {
	if encoding == format.BitPacked {
		return nil, nil, errLevels
	}
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("%w: no levels", errPage)
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, fmt.Errorf("%w: its levels are longer than the page", errPage)
	}
	return b[4 : 4+n], b[4+n:], nil
}

// levels decodes n levels into dst.
func levels(dst, hybrid []byte, n, highest int) ([]byte, error) {
	if n > maxEntries {
		return nil, fmt.Errorf("%w: a page of %d values and nulls", errLarge, n)
	}
	dst = grow(dst[:0], n)[:n]
	return dst, decodeLevels(dst, hybrid, bits.Len(uint(highest)))
}

// room is how long pages may claim to be together.
func (s *Source) room() int64 {
	if s.Codec == format.Uncompressed {
		return max(s.Uncompressed, s.Length)
	}
	return s.Uncompressed
}
