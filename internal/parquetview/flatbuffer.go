package parquetview

import "encoding/binary"

// flatbuffer is a buffer whose tables refer to each other by offsets. Every
// access is checked; what lies outside is as if it were not there, and noted.
type flatbuffer struct {
	b   []byte
	bad bool
}

// table is a table of a buffer, by its position; 0 is none.
type table struct {
	f   *flatbuffer
	pos int
}

func (f *flatbuffer) take(pos, n int) []byte {
	if pos < 0 || n < 0 || pos > len(f.b) || n > len(f.b)-pos {
		f.bad = true
		return nil
	}
	return f.b[pos : pos+n]
}

func (f *flatbuffer) uint16(pos int) int {
	if b := f.take(pos, 2); b != nil {
		return int(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (f *flatbuffer) uint32(pos int) int {
	if b := f.take(pos, 4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (f *flatbuffer) root() table { return table{f, f.uint32(0)} }

// field is the position of a field, or 0.
func (t table) field(i int) int {
	if t.pos == 0 {
		return 0
	}
	vtable := t.pos - int(int32(t.f.uint32(t.pos)))
	if at := 4 + 2*i; at+2 <= t.f.uint16(vtable) {
		if offset := t.f.uint16(vtable + at); offset != 0 {
			return t.pos + offset
		}
	}
	return 0
}

func (t table) byte(i int) byte {
	if pos := t.field(i); pos != 0 {
		if b := t.f.take(pos, 1); b != nil {
			return b[0]
		}
	}
	return 0
}

func (t table) int16(i, absent int) int {
	if pos := t.field(i); pos != 0 {
		return int(int16(t.f.uint16(pos)))
	}
	return absent
}

func (t table) int32(i, absent int) int {
	if pos := t.field(i); pos != 0 {
		return int(int32(t.f.uint32(pos)))
	}
	return absent
}

// refer follows the offset in a field.
func (t table) refer(i int) int {
	if pos := t.field(i); pos != 0 {
		return pos + t.f.uint32(pos)
	}
	return 0
}

func (t table) table(i int) table { return table{t.f, t.refer(i)} }

func (t table) string(i int) string {
	pos := t.refer(i)
	if pos == 0 {
		return ""
	}
	return string(t.f.take(pos+4, t.f.uint32(pos)))
}

// tables are those of a vector. They are no more than the buffer has room for.
func (t table) tables(i int) []table {
	pos := t.refer(i)
	if pos == 0 {
		return nil
	}
	n := t.f.uint32(pos)
	if n > len(t.f.b)/4 || t.f.take(pos+4, 4*n) == nil {
		t.f.bad = t.f.bad || n > 0
		return nil
	}
	all := make([]table, n)
	for j := range all {
		at := pos + 4 + 4*j
		all[j] = table{t.f, at + t.f.uint32(at)}
	}
	return all
}
