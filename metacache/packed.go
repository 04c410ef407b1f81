package metacache

import (
	"encoding/binary"
	"math/bits"
)

// packed is an immutable column of numbers, each stored in as few bytes as
// their range needs: none if all are the same.
type packed struct {
	least uint64
	mask  uint64
	width int
	// data ends with room to read 8 bytes at the last number.
	data []byte
}

// wordSize is what at reads, whatever the width.
const wordSize = 8

func pack(numbers []uint64) packed {
	if len(numbers) == 0 {
		return packed{}
	}
	least, most := numbers[0], numbers[0]
	for _, n := range numbers {
		least, most = min(least, n), max(most, n)
	}
	width := (bits.Len64(most-least) + 7) / 8
	p := packed{least: least, mask: 1<<(8*width) - 1, width: width}
	if width == 0 {
		p.data = make([]byte, wordSize)
		return p
	}
	p.data = make([]byte, width*(len(numbers)-1)+wordSize)
	for i, n := range numbers { // each overwrites the upper bytes of the one before, which are 0
		binary.LittleEndian.PutUint64(p.data[i*width:], n-least)
	}
	return p
}

func (p *packed) at(i int) uint64 {
	return p.least + binary.LittleEndian.Uint64(p.data[i*p.width:])&p.mask
}
