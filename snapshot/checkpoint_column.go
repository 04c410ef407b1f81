package snapshot

import (
	"bytes"
	"errors"
	"io"
	"sort"

	"github.com/parquet-go/parquet-go"
)

// column reads one leaf column of a row group, row by row and forwards only.
// Its slots are what a page has a definition level for: a value or a null; a
// row is one slot, or of a list or map one for each element. What it returns
// borrows the memory of pages, and is valid until they are released. A nil
// column is one that the file does not have: all null.
type column struct {
	chunk parquet.ColumnChunk
	pages parquet.Pages
	// maxDef is the definition level of a value that is not null; listDef and
	// itemDef are the lowest ones at which a list is not null and at which it
	// has an item.
	maxDef, listDef, itemDef byte

	page   parquet.Page
	values pageValues
	// rep and def are the levels of the page's slots, nil if the column has
	// none of them.
	rep, def []byte
	// slot and slots are the next slot and the number of them, value is the
	// next value that is not null.
	slot, slots, value int
	// row is the number of the next row.
	row int64
	// seekable is unset when the pages can only be read in order.
	seekable bool
	// used are the pages of before that have not been released.
	used []parquet.Page
}

func newColumn(chunk parquet.ColumnChunk, maxDef int) *column {
	return &column{chunk: chunk, pages: chunk.Pages(), maxDef: byte(maxDef), seekable: true}
}

// close ends reading. What was not lent is not valid any more.
func (c *column) close() {
	c.release()
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
	c.pages.Close()
}

// release gives back the memory of the pages that were read to their ends.
func (c *column) release() {
	releasePages(c.used)
	c.used = c.used[:0]
}

// lend appends to pages those whose memory was borrowed since the last call.
// Whoever gets them releases them; until then the memory stays valid.
func (c *column) lend(pages []parquet.Page) []parquet.Page {
	pages = append(pages, c.used...)
	c.used = c.used[:0]
	if c.page != nil {
		parquet.Retain(c.page)
		pages = append(pages, c.page)
	}
	return pages
}

func releasePages(pages []parquet.Page) {
	for _, p := range pages {
		parquet.Release(p)
	}
}

// fill makes sure that there is a slot to read. io.EOF at the end.
func (c *column) fill() error {
	for c.slot == c.slots {
		page, err := c.pages.ReadPage()
		if err != nil {
			return err
		}
		if c.page != nil {
			c.used = append(c.used, c.page)
		}
		c.page = page
		c.rep, c.def = page.RepetitionLevels(), page.DefinitionLevels()
		c.slot, c.slots, c.value = 0, int(page.NumValues()), 0
		c.values = valuesOf(page)
	}
	return nil
}

// need is fill where the row group says that there are more rows.
func (c *column) need() error {
	err := c.fill()
	if errors.Is(err, io.EOF) {
		return errors.New("a column ends before its row group")
	}
	return err
}

// take passes over the next slot. It returns the number of its value, or -1.
func (c *column) take() int {
	s := c.slot
	c.slot++
	if c.def != nil && c.def[s] != c.maxDef {
		return -1
	}
	c.value++
	return c.value - 1
}

// texts fills dst with the next rows, nil for null and only for null.
func (c *column) texts(dst [][]byte) error {
	if c == nil {
		clear(dst)
		return nil
	}
	c.row += int64(len(dst))
	for len(dst) > 0 {
		if err := c.need(); err != nil {
			return err
		}
		n := min(len(dst), c.slots-c.slot)
		for i := range n {
			dst[i] = nil
			if v := c.take(); v >= 0 {
				dst[i] = c.values.text(v)
			}
		}
		dst = dst[n:]
	}
	return nil
}

// long is a nullable integer.
type long struct {
	n     int64
	valid bool
}

func (l long) pointer() *int64 {
	if !l.valid {
		return nil
	}
	return &l.n
}

// longs fills dst with the next rows.
func (c *column) longs(dst []long) error {
	if c == nil {
		clear(dst)
		return nil
	}
	c.row += int64(len(dst))
	for len(dst) > 0 {
		if err := c.need(); err != nil {
			return err
		}
		n := min(len(dst), c.slots-c.slot)
		for i := range n {
			dst[i] = long{}
			if v := c.take(); v >= 0 {
				dst[i] = long{c.values.long(v), true}
			}
		}
		dst = dst[n:]
	}
	return nil
}

// text, long and flag return the next row alone.
func (c *column) text() ([]byte, error) {
	var dst [1][]byte
	err := c.texts(dst[:])
	return dst[0], err
}

func (c *column) long() (long, error) {
	var dst [1]long
	err := c.longs(dst[:])
	return dst[0], err
}

// flag is false when null.
func (c *column) flag() (bool, error) {
	on, err := c.optionalFlag()
	return value(on), err
}

// optionalFlag is nil when null.
func (c *column) optionalFlag() (*bool, error) {
	v, err := c.place()
	if err != nil || v < 0 {
		return nil, err
	}
	on := c.values.flag(v)
	return &on, nil
}

// place passes over the next row and returns the number of its value in the
// page, -1 when null.
func (c *column) place() (int, error) {
	if c == nil {
		return -1, nil
	}
	c.row++
	if err := c.need(); err != nil {
		return -1, err
	}
	return c.take(), nil
}

// lists are some rows of a column of lists, or of the keys or the values of
// maps.
type lists struct {
	// items are those of all rows, nil for null.
	items [][]byte
	// ends are, for each row, the number of items up to its last one.
	ends []int
	// null are the rows whose list is null, by their place.
	null []bool
}

// of returns the items of a row.
func (l *lists) of(row int) [][]byte {
	if row == 0 {
		return l.items[:l.ends[0]]
	}
	return l.items[l.ends[row-1]:l.ends[row]]
}

// lists reads the next rows into dst.
func (c *column) lists(dst *lists, rows int) error {
	dst.items, dst.ends, dst.null = dst.items[:0], dst.ends[:0], dst.null[:0]
	c.row += int64(rows)
	for range rows {
		if c.slot == c.slots {
			if err := c.need(); err != nil {
				return err
			}
		}
		dst.null = append(dst.null, c.def[c.slot] < c.listDef)
		for more := true; more; {
			itemised := c.def[c.slot] >= c.itemDef
			v := c.take()
			switch {
			case v >= 0:
				dst.items = append(dst.items, c.values.text(v))
			case itemised:
				dst.items = append(dst.items, nil)
			}
			// The row may go on, also on the next page.
			if c.slot == c.slots {
				if err := c.fill(); err != nil && !errors.Is(err, io.EOF) {
					return err
				}
			}
			more = c.slot < c.slots && c.rep[c.slot] != 0
		}
		dst.ends = append(dst.ends, len(dst.items))
	}
	return nil
}

// skipTo passes over the rows before the row with this number.
func (c *column) skipTo(row int64) error {
	if c == nil || row <= c.row {
		return nil
	}
	if c.skipInPage(row) {
		return nil
	}
	if err := c.seek(row); err != nil {
		return err
	}
	for !c.skipInPage(row) {
		if err := c.need(); err != nil {
			return err
		}
	}
	return nil
}

// skipInPage passes over rows of the page, up to the row with this number or
// all of them.
func (c *column) skipInPage(row int64) bool {
	rest := c.slots - c.slot
	if c.rep == nil {
		n := int(min(row-c.row, int64(rest)))
		c.pass(n)
		c.row += int64(n)
		return c.row == row
	}
	// A row ends where the next one begins, which may be on the next page.
	n := 0
	for ; n < rest; n++ {
		if c.rep[c.slot+n] != 0 {
			continue
		}
		if c.row == row {
			break
		}
		c.row++
	}
	c.pass(n)
	return n < rest
}

// pass passes over slots of the page.
func (c *column) pass(n int) {
	if c.def == nil {
		c.value += n
	} else {
		c.value += bytes.Count(c.def[c.slot:c.slot+n], []byte{c.maxDef})
	}
	c.slot += n
}

// seek goes to the page that holds the row with this number if the file says
// where it is, so that the pages in between are not decoded.
func (c *column) seek(row int64) error {
	if !c.seekable {
		return nil
	}
	index, err := c.chunk.OffsetIndex()
	if err != nil || index.NumPages() == 0 {
		c.seekable = false
		return nil //nolint:nilerr // the index is there to save time
	}
	n := index.NumPages()
	page := sort.Search(n, func(i int) bool { return index.FirstRowIndex(i) > row }) - 1
	if page < 0 || index.FirstRowIndex(page) <= c.row {
		return nil
	}
	first := index.FirstRowIndex(page)
	if err := c.pages.SeekToRow(first); err != nil {
		return err
	}
	c.slot, c.row = c.slots, first
	return nil
}

// present calls visit with the number of each row from here on that is not
// null. The column must not be a list or a map.
func (c *column) present(visit func(row int64)) error {
	for c != nil {
		err := c.fill()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for ; c.slot < c.slots; c.slot++ {
			if c.def != nil {
				skip := bytes.IndexByte(c.def[c.slot:c.slots], c.maxDef)
				if skip < 0 {
					skip = c.slots - c.slot
				}
				c.slot, c.row = c.slot+skip, c.row+int64(skip)
				if c.slot == c.slots {
					break
				}
			}
			visit(c.row)
			c.row++
		}
		c.release()
	}
	return nil
}
