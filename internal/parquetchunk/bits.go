package parquetchunk

import "encoding/binary"

// bitWriter appends values of some bits each, the lowest bits first.
type bitWriter struct {
	b []byte
	// acc holds n < 32 bits that are not in b yet.
	acc uint64
	n   uint
}

// write appends the lowest count <= 32 bits of v, whose other bits are zero.
func (w *bitWriter) write(v uint64, count uint) {
	w.acc |= v << w.n
	if w.n += count; w.n >= 32 {
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(w.acc))
		w.acc >>= 32
		w.n -= 32
	}
}

// copy appends count bits of src from bit from on. Bits past the end of src are
// zeros.
func (w *bitWriter) copy(src []byte, from, count int) {
	for ; count >= 32; count -= 32 {
		w.write(bitsAt(src, from, 32), 32)
		from += 32
	}
	if count > 0 {
		w.write(bitsAt(src, from, count), uint(count))
	}
}

// flush pads with zeros to a whole byte.
func (w *bitWriter) flush() {
	for w.n > 0 {
		w.b = append(w.b, byte(w.acc))
		w.acc >>= 8
		w.n -= min(w.n, 8)
	}
	w.acc = 0
}

// bitsAt returns count <= 32 bits of src from bit from on.
func bitsAt(src []byte, from, count int) uint64 {
	var v uint64
	at := from / 8
	if at+8 <= len(src) {
		v = binary.LittleEndian.Uint64(src[at:])
	} else {
		for i := at; i < len(src); i++ {
			v |= uint64(src[i]) << (8 * (i - at))
		}
	}
	return v >> (from & 7) & (1<<count - 1)
}
