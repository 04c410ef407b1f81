package deletionvector

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// What the four bytes before a bitmap say of its layout.
const (
	// portableMagic: a count of 64 bits, and for each set of rows that share
	// their upper 32 bits these and a standard bitmap of the lower ones.
	portableMagic = 1681511377
	// nativeMagic: a count of 32 bits, and for each value of the upper bits from
	// 0 on the size of a standard bitmap and the bitmap. Engines stopped writing
	// it long ago.
	nativeMagic = 1681511376
)

// decode makes a bitmap of the bytes of a vector.
func decode(data []byte, cardinality int64) (rows *roaring64.Bitmap, err error) {
	c := cursor{rest: data}
	portable := data[min(len(data), 4):]
	switch magic := c.uint32(); {
	case c.short:
		return nil, broken("the vector has %d bytes", len(data))
	case magic == nativeMagic:
		if portable, err = portableOf(c.rest); err != nil {
			return nil, err
		}
	case magic != portableMagic:
		return nil, broken("the vector begins with %d, which is no known layout", magic)
	}
	found, err := check(portable)
	if err != nil {
		return nil, err
	}
	if found != cardinality {
		return nil, broken("the vector deletes %d rows, its descriptor states %d", found, cardinality)
	}
	defer func() {
		if p := recover(); p != nil {
			rows, err = nil, broken("the bitmap cannot be read: %s", fmt.Sprint(p))
		}
	}()
	rows = roaring64.New()
	if _, err := rows.ReadFrom(bytes.NewReader(portable)); err != nil {
		return nil, broken("the bitmap cannot be read: %v", err)
	}
	return rows, nil
}

// portableOf turns the native layout, behind its magic number, into the
// portable one.
func portableOf(native []byte) ([]byte, error) {
	c := cursor{rest: native}
	count, used := c.uint32(), uint64(0)
	out := make([]byte, 8, len(native)+8)
	for key := range count {
		bitmap := c.take(int(c.uint32()))
		if c.short || len(bitmap) == 0 {
			return nil, misfit()
		}
		inner := cursor{rest: bitmap}
		n, err := inner.bitmap()
		switch {
		case err != nil:
			return nil, err
		case len(inner.rest) > 0:
			return nil, misfit()
		case n > 0:
			out = binary.LittleEndian.AppendUint32(out, key)
			out = append(out, bitmap...)
			used++
		}
	}
	if c.short || len(c.rest) > 0 {
		return nil, misfit()
	}
	binary.LittleEndian.PutUint64(out, used)
	return out, nil
}

// misfit: a count leads out of the bytes or not to their end.
func misfit() error { return broken("the counts in the bitmap do not fit its size") }

// disorder: what must ascend does not.
func disorder() error { return broken("the rows in the bitmap are not in order") }

// check walks through a bitmap in the portable layout, behind its magic number,
// and counts its rows.
func check(portable []byte) (rows int64, err error) {
	c := cursor{rest: portable}
	count := c.uint64()
	last := int64(-1)
	for range count {
		key := int64(c.uint32())
		if c.short {
			return 0, misfit()
		}
		if key <= last || key > math.MaxInt32 {
			return 0, disorder()
		}
		last = key
		n, err := c.bitmap()
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, misfit()
		}
		rows += n
	}
	if c.short || len(c.rest) > 0 {
		return 0, misfit()
	}
	return rows, nil
}

// The layout of a standard bitmap of 32 bits
// (github.com/RoaringBitmap/RoaringFormatSpec).
const (
	cookieNoRuns = 12346
	cookieRuns   = 12347
	// maxContainers is how many values the upper 16 bits have.
	maxContainers = 1 << 16
	// maxArray is the largest container that lists its values.
	maxArray = 4096
	// bitmapBytes is the size of a container with a bit for each value.
	bitmapBytes = 1 << 16 / 8
	// noOffsets is below how many containers a bitmap with runs has no offsets.
	noOffsets = 4
)

// cursor reads bytes from the front; short is set when there were too few.
type cursor struct {
	rest  []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.rest) {
		c.rest, c.short = nil, true
		return nil
	}
	head := c.rest[:n]
	c.rest = c.rest[n:]
	return head
}

func (c *cursor) uint16() uint16 {
	if b := c.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// bitmap walks through one standard bitmap and counts its values.
func (c *cursor) bitmap() (values int64, err error) {
	var count int
	cookie := c.uint32()
	var runs []byte
	switch {
	case cookie == cookieNoRuns:
		count = int(c.uint32())
	case cookie&0xffff == cookieRuns:
		count = int(cookie>>16) + 1
		runs = c.take((count + 7) / 8)
	default:
		return 0, broken("the bitmap does not begin as one")
	}
	if count > maxContainers {
		return 0, misfit()
	}
	header := cursor{rest: c.take(4 * count)}
	if runs == nil || count >= noOffsets {
		c.take(4 * count)
	}
	last := -1
	for i := range count {
		key, n := int(header.uint16()), int(header.uint16())+1
		if c.short || header.short {
			return 0, misfit()
		}
		if key <= last {
			return 0, disorder()
		}
		last = key
		switch {
		case runs != nil && runs[i/8]>>(i%8)&1 != 0:
			n, err = c.runs()
		case n > maxArray:
			err = c.bits(n)
		default:
			err = c.array(n)
		}
		if err != nil {
			return 0, err
		}
		values += int64(n)
	}
	if c.short {
		return 0, misfit()
	}
	return values, nil
}

func (c *cursor) array(n int) error {
	values := c.take(2 * n)
	if c.short {
		return misfit()
	}
	last := -1
	for ; len(values) > 0; values = values[2:] {
		v := int(binary.LittleEndian.Uint16(values))
		if v <= last {
			return disorder()
		}
		last = v
	}
	return nil
}

func (c *cursor) bits(n int) error {
	words := c.take(bitmapBytes)
	if c.short {
		return misfit()
	}
	set := 0
	for ; len(words) > 0; words = words[8:] {
		set += bits.OnesCount64(binary.LittleEndian.Uint64(words))
	}
	if set != n {
		return broken("a part of the bitmap states %d rows and has %d", n, set)
	}
	return nil
}

func (c *cursor) runs() (values int, err error) {
	runs := c.take(4 * int(c.uint16()))
	if c.short || len(runs) == 0 {
		return 0, misfit()
	}
	end := 0 // behind the last run
	for ; len(runs) > 0; runs = runs[4:] {
		start, n := int(binary.LittleEndian.Uint16(runs)), int(binary.LittleEndian.Uint16(runs[2:]))+1
		if start < end || start+n > 1<<16 {
			return 0, disorder()
		}
		end = start + n
		values += n
	}
	return values, nil
}
