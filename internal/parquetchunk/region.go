package parquetchunk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

var errRoom = errors.New("its pages are longer than the footer says")

// region writes the pages of the new chunk, and never past its end.
type region struct {
	w        *bufio.Writer
	at, size int64
	header   []byte
}

func newRegion(w io.WriterAt, size int64) *region {
	return &region{w: bufio.NewWriterSize(io.NewOffsetWriter(w, 0), 128<<10), size: size}
}

// page writes a page that is not compressed.
func (r *region) page(h header, content []byte) error {
	h.compressed, h.uncompressed = len(content), len(content)
	r.header = h.append(r.header[:0])
	n := int64(len(r.header) + len(content))
	if n > r.size-minFiller-r.at {
		return fmt.Errorf("%w: they take more than the %d bytes that were planned for them", errRoom, r.size)
	}
	r.at += n
	if _, err := r.w.Write(r.header); err != nil {
		return err
	}
	_, err := r.w.Write(content)
	return err
}

// maxFiller bounds a page that fills; a longer rest takes several.
const maxFiller = 1 << 30

// finish writes the header of the page that takes the rest.
func (r *region) finish(w io.WriterAt) error {
	if err := r.w.Flush(); err != nil {
		return err
	}
	for r.at < r.size {
		n := r.size - r.at
		if n > maxFiller {
			n = maxFiller - minFiller
		}
		r.header = appendFiller(r.header[:0], int(n-fillerHeader))
		if _, err := w.WriteAt(r.header, r.at); err != nil {
			return err
		}
		r.at += n
	}
	return nil
}
