package main

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"
)

// columns prints rows in aligned columns without keeping more than the first
// sampleRows of them: those fix the widths.
type columns struct {
	w      *bufio.Writer
	right  []bool // columns aligned to the right: numbers
	sample [][]string
	widths []int
}

const sampleRows = 200

// newColumns starts a table. A header that begins with ">" is of a column
// aligned to the right.
func newColumns(w io.Writer, header ...string) *columns {
	c := &columns{w: bufio.NewWriter(w), right: make([]bool, len(header))}
	for i, h := range header {
		header[i] = strings.TrimPrefix(h, ">")
		c.right[i] = header[i] != h
	}
	_ = c.row(header...) // kept: nothing is written yet
	return c
}

// row adds a row.
func (c *columns) row(cells ...string) error {
	if c.widths != nil {
		return c.print(cells)
	}
	c.sample = append(c.sample, cells)
	if len(c.sample) < sampleRows {
		return nil
	}
	return c.release()
}

// flush prints what is left.
func (c *columns) flush() error {
	if err := c.release(); err != nil {
		return err
	}
	return c.w.Flush()
}

func (c *columns) release() error {
	if c.widths == nil {
		c.widths = make([]int, len(c.right))
	}
	for _, cells := range c.sample {
		for i, cell := range cells {
			c.widths[i] = max(c.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, cells := range c.sample {
		if err := c.print(cells); err != nil {
			return err
		}
	}
	c.sample = nil
	return nil
}

func (c *columns) print(cells []string) error {
	var line strings.Builder
	for i, cell := range cells {
		pad := strings.Repeat(" ", max(0, c.widths[i]-utf8.RuneCountInString(cell)))
		if i > 0 {
			line.WriteString("  ")
		}
		if c.right[i] {
			line.WriteString(pad + cell)
		} else {
			line.WriteString(cell + pad)
		}
	}
	_, err := c.w.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	return err
}

// printable makes text of a log fit for a cell: one line, nothing that
// controls a terminal, and at most limit characters.
func printable(text string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r < ' ' || (r >= 0x7f && r < 0xa0):
			return '?'
		}
		return r
	}, text)
	if utf8.RuneCountInString(clean) <= limit {
		return clean
	}
	return string([]rune(clean)[:limit-1]) + "…"
}
