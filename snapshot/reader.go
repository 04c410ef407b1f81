package snapshot

import (
	"context"
	"errors"
	"io"
	"os"
	"sort"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetview"
	"github.com/deltafs/deltafs/internal/rendercache"
	"github.com/deltafs/deltafs/internal/store"
)

// rawReader serves a data file as it is.
type rawReader struct {
	object  store.Object
	content Content
}

func newRawReader(object store.Object) *rawReader {
	size := object.Info().Size
	return &rawReader{object, Content{Size: size, Segments: []Segment{{Length: size, Raw: true}}}}
}

func (r *rawReader) ReadAt(p []byte, off int64) (int, error) { return r.object.ReadAt(p, off) }

func (r *rawReader) ReadAtContext(_ context.Context, p []byte, off int64) (int, error) {
	return r.object.ReadAt(p, off)
}

func (r *rawReader) Close() error     { return r.object.Close() }
func (r *rawReader) Content() Content { return r.content }
func (r *rawReader) File() *os.File   { return r.object.File() }

func (r *rawReader) RawRange(off, _ int64) (*os.File, int64) { return r.object.File(), off }

// renderedReader serves a data file as the table has it.
type renderedReader struct {
	table  *Table
	file   File
	object store.Object
	*plan
}

func (r *renderedReader) Close() error     { return r.object.Close() }
func (r *renderedReader) Content() Content { return Content{Size: r.Size, Segments: r.Segments} }
func (r *renderedReader) File() *os.File   { return nil }

func (r *renderedReader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}

func (r *renderedReader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	n := 0
	for n < len(p) {
		s := r.segment(off + int64(n))
		if s == nil {
			return n, io.EOF
		}
		at := off + int64(n) - s.Offset
		part := p[n:min(int64(len(p)), int64(n)+s.Length-at)]
		if err := r.read(ctx, s, part, at); err != nil {
			return n, r.table.renderFault(r.file, err)
		}
		n += len(part)
	}
	return n, nil
}

// segment returns the one that an offset lies in, nil at the end of the file.
func (r *renderedReader) segment(off int64) *Segment {
	s := r.Segments
	i := sort.Search(len(s), func(i int) bool { return off < s[i].Offset+s[i].Length })
	if i == len(s) {
		return nil
	}
	return &s[i]
}

// read reads from an offset in a segment on.
func (r *renderedReader) read(ctx context.Context, s *Segment, p []byte, off int64) error {
	switch {
	case s.Raw:
		n, err := r.object.ReadAt(p, s.RawOffset+off)
		if n < len(p) && (err == nil || errors.Is(err, io.EOF)) {
			err = fault.Wrap(ErrBroken, io.ErrUnexpectedEOF, "the data file was cut short while it was read").InFile(r.file.Path)
		}
		if n == len(p) {
			err = nil
		}
		return err
	case s.Bytes != nil:
		copy(p, s.Bytes[off:])
		return nil
	case s.Chunk != nil:
		return r.table.rendered.ReadAt(ctx, &rendercache.Chunk{
			Key: r.key(s.Chunk), Length: s.Length,
			Render: func(ctx context.Context, w io.WriterAt) error { return s.Chunk.Render(ctx, r.object, w) },
		}, p, off)
	}
	clear(p)
	return nil
}

func (r *renderedReader) RawRange(off, length int64) (*os.File, int64) {
	s := r.segment(off)
	if s == nil || !s.Raw || off+length > s.Offset+s.Length {
		return nil, 0
	}
	return r.object.File(), s.RawOffset + off - s.Offset
}

// renderFault gives what went wrong with the inside of a data file a sentinel of
// this package.
func (t *Table) renderFault(f File, err error) error {
	var kind error
	switch {
	case errors.Is(err, rendercache.ErrNoRoom):
		kind = ErrNoRoom
	case errors.Is(err, parquetview.ErrUnsupported), errors.Is(err, parquetchunk.ErrUnsupported):
		kind = ErrUnsupported
	case errors.Is(err, parquetview.ErrBroken), errors.Is(err, parquetview.ErrMismatch), errors.Is(err, parquetchunk.ErrBroken):
		kind = ErrBroken
	default:
		return t.fileFault(f, err)
	}
	e := fault.Wrap(kind, err, "")
	var inner *fault.Error
	if errors.As(err, &inner) {
		*e = *inner
		e.Kind, e.Err = kind, errors.Join(inner.Kind, inner.Err)
	}
	e.InFile(f.Path)
	return t.fileFault(f, e)
}
