package snapshot

import "encoding/binary"

// dirNames makes the directories of files, each once.
type dirNames struct {
	fields []Field
	// names are the directories, numbers are their places in it by the spelling
	// of the partition values.
	names   []dirName
	numbers map[string]uint32
	// recent are numbers by a hash of the end of the spelling, where most differ:
	// a lookup in numbers takes several times as long. It is made when there are
	// manyNames, for a single commit has few.
	recent []uint32

	key []byte
	// mapped is a map of partition values as entries.
	mapped entries
}

// dirName is a directory and the spelling of its partition values.
type dirName struct{ key, dir string }

const (
	recentBits = 14
	manyNames  = 64
)

func newDirNames(fields []Field) *dirNames {
	return &dirNames{fields: fields, numbers: map[string]uint32{}}
}

// of returns the directory for partition values.
func (d *dirNames) of(values entries) string {
	if len(d.fields) == 0 {
		return ""
	}
	d.key = values.appendTo(d.key[:0])
	if d.recent == nil {
		return d.names[d.number(values)].dir
	}
	recent := &d.recent[endHash(d.key)]
	if n := d.names[*recent]; n.key == string(d.key) {
		return n.dir
	}
	*recent = d.number(values)
	return d.names[*recent].dir
}

// number is the place in names of the values that key spells.
func (d *dirNames) number(values entries) uint32 {
	number, ok := d.numbers[string(d.key)]
	if ok {
		return number
	}
	number = uint32(len(d.names))
	d.names = append(d.names, dirName{string(d.key), PartitionDir(d.fields, values.toMap())})
	d.numbers[d.names[number].key] = number
	if len(d.names) == manyNames {
		d.recent = make([]uint32, 1<<recentBits)
	}
	return number
}

// endHash is a hash of the last bytes.
func endHash(key []byte) uint64 {
	var word [8]byte
	copy(word[:], key[max(0, len(key)-len(word)):])
	const golden = 0x9e3779b97f4a7c15 // spreads what differs over the upper bits
	return binary.LittleEndian.Uint64(word[:]) * golden >> (64 - recentBits)
}

// ofMap is of for partition values in any order.
func (d *dirNames) ofMap(values map[string]*string) string {
	d.mapped.keys, d.mapped.values = d.mapped.keys[:0], d.mapped.values[:0]
	for key, value := range values {
		d.mapped.add(key, value)
	}
	return d.of(d.mapped)
}
