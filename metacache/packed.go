package metacache

import (
	"encoding/binary"
	"math/bits"
)

// packed is an immutable table of numbers. Each is stored in as few bytes as
// the range of its column needs, none if all are the same, and those of a row
// lie together.
type packed struct {
	columns []packedColumn
	// stride is the number of bytes of a row.
	stride int
	// data ends with room to read wordSize bytes at the last number.
	data []byte
}

type packedColumn struct {
	least, mask uint64
	// offset is where in a row the number is.
	offset int
}

// wordSize is what at reads, whatever the width of the number.
const wordSize = 8

// pack makes a table of columns of the same length.
func pack(columns ...[]uint64) packed {
	p := packed{columns: make([]packedColumn, len(columns))}
	for i, numbers := range columns {
		least, most := bounds(numbers)
		width := (bits.Len64(most-least) + 7) / 8
		p.columns[i] = packedColumn{least: least, mask: 1<<(8*width) - 1, offset: p.stride}
		p.stride += width
	}
	rows := len(columns[0])
	p.data = make([]byte, rows*p.stride+wordSize)
	for row := range rows {
		data := p.data[row*p.stride:]
		for i := range p.columns {
			if c := &p.columns[i]; c.mask > 0 { // the bytes that are too many are those of numbers to come
				binary.LittleEndian.PutUint64(data[c.offset:], columns[i][row]-c.least)
			}
		}
	}
	return p
}

func bounds(numbers []uint64) (least, most uint64) {
	if len(numbers) == 0 {
		return 0, 0
	}
	least, most = numbers[0], numbers[0]
	for _, n := range numbers {
		least, most = min(least, n), max(most, n)
	}
	return least, most
}

func (p *packed) at(column, row int) uint64 {
	c := &p.columns[column]
	return c.least + binary.LittleEndian.Uint64(p.data[row*p.stride+c.offset:])&c.mask
}
