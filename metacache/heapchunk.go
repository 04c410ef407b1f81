package metacache

import "strings"

// chunkFiles is the number of files in every chunk but the last.
const chunkFiles = 4096

// chunk is some files of a heapBase in the order they were loaded: no pointer
// per file, and no number wider than it must be.
type chunk struct {
	// text is what the files consist of: the path, the name unless the path
	// ends with it, the raw path, the deletion vector.
	text    string
	numbers packed
}

const (
	// endColumn is where the file's text ends, and the next one's begins.
	endColumn = iota
	nameColumn
	// apartColumn is 1 if the name stands apart from the path.
	apartColumn
	rawColumn
	dvColumn
	// dirColumn is the number of the directory, as first seen in the load.
	dirColumn
	sizeColumn
	timeColumn
	originColumn
	columnCount
)

func (c *chunk) number(column, i int) int { return int(c.numbers.at(column, i)) }

func (c *chunk) start(i int) int {
	if i == 0 {
		return 0
	}
	return c.number(endColumn, i-1)
}

// nameEnd is where the raw path begins.
func (c *chunk) nameEnd(i int) int {
	return c.number(endColumn, i) - c.number(dvColumn, i) - c.number(rawColumn, i)
}

func (c *chunk) name(i int) string {
	end := c.nameEnd(i)
	return c.text[end-c.number(nameColumn, i) : end]
}

func (c *chunk) path(i int) string {
	end := c.nameEnd(i) - c.number(apartColumn, i)*c.number(nameColumn, i)
	return c.text[c.start(i):end]
}

func (c *chunk) dv(i int) string {
	end := c.number(endColumn, i)
	return c.text[end-c.number(dvColumn, i) : end]
}

// file returns all that the chunk knows of a file: neither Dir nor ID.
func (c *chunk) file(i int) File {
	end := c.number(endColumn, i)
	rawEnd := end - c.number(dvColumn, i)
	nameEnd := rawEnd - c.number(rawColumn, i)
	nameLen := c.number(nameColumn, i)
	pathEnd := nameEnd - c.number(apartColumn, i)*nameLen
	return File{
		Key:     Key{Name: c.text[nameEnd-nameLen : nameEnd], Path: c.text[c.start(i):pathEnd]},
		Raw:     c.text[nameEnd:rawEnd],
		DV:      c.text[rawEnd:end],
		Size:    int64(c.numbers.at(sizeColumn, i)),
		ModTime: int64(c.numbers.at(timeColumn, i)),
		Origin:  c.numbers.at(originColumn, i),
	}
}

func (c *chunk) bytes() int64 { return int64(len(c.text) + len(c.numbers.data)) }

// chunkBuilder collects the files of a chunk.
type chunkBuilder struct {
	text    []byte
	numbers [columnCount][]uint64
}

func (b *chunkBuilder) len() int { return len(b.numbers[endColumn]) }

func (b *chunkBuilder) add(f *File, dir uint32) {
	b.text = append(b.text, f.Path...)
	apart := uint64(0)
	if !strings.HasSuffix(f.Path, f.Name) {
		apart = 1
		b.text = append(b.text, f.Name...)
	}
	b.text = append(b.text, f.Raw...)
	b.text = append(b.text, f.DV...)
	for column, n := range [columnCount]uint64{
		endColumn: uint64(len(b.text)), nameColumn: uint64(len(f.Name)), apartColumn: apart,
		rawColumn: uint64(len(f.Raw)), dvColumn: uint64(len(f.DV)), dirColumn: uint64(dir),
		sizeColumn: uint64(f.Size), timeColumn: uint64(f.ModTime), originColumn: f.Origin,
	} {
		b.numbers[column] = append(b.numbers[column], n)
	}
}

// finish returns the chunk and begins the next one.
func (b *chunkBuilder) finish() chunk {
	c := chunk{text: string(b.text), numbers: pack(b.numbers[:]...)}
	b.text = b.text[:0]
	for i := range b.numbers {
		b.numbers[i] = b.numbers[i][:0]
	}
	return c
}
