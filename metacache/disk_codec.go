package metacache

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/klauspost/compress/s2"
)

// encoder appends to a value.
type encoder struct{ buf []byte }

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }
func (e *encoder) int(n int64)   { e.buf = binary.AppendVarint(e.buf, n) }
func (e *encoder) byte(b byte)   { e.buf = append(e.buf, b) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// optional appends s if it is wanted, and returns the bit that says so.
func (e *encoder) optional(bit byte, s string, wanted bool) byte {
	if !wanted {
		return 0
	}
	e.text(s)
	return bit
}

// decoder reads a value back. After the first failure everything reads as
// zero; err says what happened. Strings share memory with the value.
type decoder struct {
	rest string
	err  error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = damaged(nil, "a value ends early")
	}
	d.rest = ""
}

func (d *decoder) uint() uint64 {
	var n uint64
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen64; i++ {
		b := d.rest[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			d.rest = d.rest[i+1:]
			return n
		}
	}
	d.fail()
	return 0
}

func (d *decoder) int() int64 {
	n := d.uint()
	return int64(n>>1) ^ -int64(n&1)
}

func (d *decoder) byte() byte {
	if d.rest == "" {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) text() string {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

// optional reads what encoder.optional wrote.
func (d *decoder) optional(bit byte, otherwise string) string {
	if bit == 0 {
		return otherwise
	}
	return d.text()
}

// count is a number of things of which each takes at least one byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n)
}

// end fails if anything is left.
func (d *decoder) end() error {
	if d.err == nil && d.rest != "" {
		d.err = damaged(nil, "a value goes on behind its end")
	}
	return d.err
}

// What is written of a file beyond its path, size and times.
const (
	hasDir  = 1 << iota // its directory is another than that of the file before
	hasName             // its name is not the last element of its path
	hasRaw
	hasDV
)

// fileCoder encodes or decodes files one after the other, each relative to the
// one before.
type fileCoder struct {
	before File
	// ids says that each file has its ID with it.
	ids bool
}

func (c *fileCoder) encode(e *encoder, f File) {
	at := len(e.buf)
	e.byte(0)
	e.text(f.Path)
	has := e.optional(hasDir, f.Dir, f.Dir != c.before.Dir) |
		e.optional(hasName, f.Name, f.Name != lastElement(f.Path)) |
		e.optional(hasRaw, f.Raw, f.Raw != "") |
		e.optional(hasDV, f.DV, f.DV != "")
	e.buf[at] = has
	if c.ids {
		e.uint(uint64(f.ID))
	}
	e.int(f.Size)
	e.int(f.ModTime - c.before.ModTime)
	e.int(int64(f.Origin - c.before.Origin))
	c.before = f
}

func (c *fileCoder) decode(d *decoder) File {
	has := d.byte()
	f := File{Key: Key{Path: d.text()}}
	f.Dir = d.optional(has&hasDir, c.before.Dir)
	f.Name = d.optional(has&hasName, lastElement(f.Path))
	f.Raw = d.optional(has&hasRaw, "")
	f.DV = d.optional(has&hasDV, "")
	if c.ids {
		f.ID = FileID(d.uint())
	}
	f.Size = d.int()
	f.ModTime = c.before.ModTime + d.int()
	f.Origin = c.before.Origin + uint64(d.int())
	c.before = f
	return f
}

func lastElement(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// compress packs a value: names of data files are much alike. The result may
// lie in buf.
func compress(buf, value []byte) ([]byte, error) {
	if len(value) > maxValue {
		return nil, fmt.Errorf("%d bytes are too much for one value", len(value))
	}
	return s2.Encode(buf[:cap(buf)], value), nil
}

// decompress returns a decoder for a packed value.
func decompress(packed []byte) (*decoder, error) {
	n, err := s2.DecodedLen(packed)
	if err != nil || n > maxValue {
		return nil, damaged(err, "a value cannot be unpacked")
	}
	value, err := s2.Decode(make([]byte, n), packed)
	if err != nil {
		return nil, damaged(err, "a value cannot be unpacked")
	}
	return &decoder{rest: string(value)}, nil
}

// packPairs encodes pairs that are sorted by key so that they can be searched
// as they are: all keys, then all ranks. They are appended to a value.
func packPairs(value []byte, pairs []pair) []byte {
	for _, p := range pairs {
		value = binary.BigEndian.AppendUint64(value, p.key)
	}
	for _, p := range pairs {
		value = binary.BigEndian.AppendUint32(value, p.rank)
	}
	return value
}

// packedPairs is what packPairs made.
type packedPairs []byte

// check makes sure that reading the pairs cannot fail, and that each leads to
// one of so many files.
func (p packedPairs) check(files int) error {
	if len(p)%pairSize != 0 {
		return damaged(nil, "a list of pairs has %d bytes", len(p))
	}
	for i := range p.count() {
		if int(p.rank(i)) >= files || i > 0 && p.key(i) < p.key(i-1) {
			return damaged(nil, "a list of pairs makes no sense")
		}
	}
	return nil
}

func (p packedPairs) count() int        { return len(p) / pairSize }
func (p packedPairs) key(i int) uint64  { return binary.BigEndian.Uint64(p[8*i:]) }
func (p packedPairs) rank(i int) uint32 { return binary.BigEndian.Uint32(p[8*p.count()+4*i:]) }

// seek returns the place of the first pair with at least this key.
func (p packedPairs) seek(key uint64) int {
	return sort.Search(p.count(), func(i int) bool { return p.key(i) >= key })
}

// pair leads from a key to the rank of a file.
type pair struct {
	key  uint64
	rank uint32
}

const (
	pairSize = 8 + 4
	maxRank  = math.MaxUint32
)
