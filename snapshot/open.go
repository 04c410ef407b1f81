package snapshot

import (
	"context"
	"errors"
	"os"
	"path"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
)

// Open opens a data file's content. ErrFileGone, ErrOutside, ErrUnsupported.
//
// The log's size is only a claim. When the file on disk has another one, the
// Reader serves the file as it is, its Content().Size differs from f.Size, and
// every File that the table makes of it from now on carries the true size; see
// SizeChanged.
func (t *Table) Open(ctx context.Context, f File) (Reader, error) {
	r, err := t.open(ctx, f)
	var known *fault.Error
	if err != nil && errors.As(err, &known) && known.Version == nil {
		known.AtVersion(f.Version)
	}
	if err != nil {
		return nil, t.fault(err)
	}
	return r, nil
}

// SizeChanged reports whether r, opened from f, serves another size than f
// showed, so that whoever showed f.Size must take it back.
func SizeChanged(f File, r Reader) bool { return r.Content().Size != f.Size }

func (t *Table) open(ctx context.Context, f File) (*rawReader, error) {
	if f.DV != "" && readerFeature(deletionVectorsFeature) != supported {
		return nil, refuseFeatures([]string{deletionVectorsFeature})
	}
	object, err := t.openPath(ctx, f.Path)
	switch {
	case errors.Is(err, store.ErrNotExist):
		return nil, t.explainGone(ctx, f, err)
	case errors.Is(err, store.ErrOutside):
		return nil, fault.Wrap(ErrOutside, err, "the file lies outside the table").InFile(f.Path)
	case err != nil:
		return nil, err
	}
	size := object.Info().Size
	t.noteSize(f, size)
	return &rawReader{object: object, content: Content{Size: size, Segments: []Segment{{Length: size}}}}, nil
}

// openPath opens the file that a path of the log names, at its decoded path. Old
// writers did not encode paths, so where nothing is there the raw path is tried.
func (t *Table) openPath(ctx context.Context, logged string) (store.Object, error) {
	name, err := storeName(CanonicalPath(logged, t.store.Root()))
	if err != nil {
		return nil, err
	}
	object, err := t.store.Open(ctx, name)
	if !errors.Is(err, store.ErrNotExist) {
		return object, err
	}
	raw := path.Clean(logged)
	if _, _, absolute := splitScheme(logged); absolute || raw == name {
		return nil, err
	}
	if raw, rawErr := storeName(raw); rawErr == nil {
		if object, rawErr := t.store.Open(ctx, raw); rawErr == nil {
			return object, nil
		}
	}
	return nil, err
}

// noteSize remembers a size that contradicts the log.
func (t *Table) noteSize(f File, size int64) {
	if size == f.Size {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sizes[f.ID] = size
	t.resized.Store(true)
	t.log.Warn("a data file has another size than the log says", "op", "open", "table", t.name,
		"version", f.Version, "path", f.Path, "logged", f.Size, "found", size)
}

// HasOtherSizes reports whether a data file was found to have another size than
// the log says. Files that were shown before show the log's.
func (t *Table) HasOtherSizes() bool { return t.resized.Load() }

// explainGone says who may have deleted the file.
func (t *Table) explainGone(ctx context.Context, f File, cause error) error {
	e := fault.Wrap(ErrFileGone, cause, "the log names the file but it is not there").AtVersion(f.Version).InFile(f.Path)
	life, err := t.current()
	if err != nil {
		return e
	}
	if trace := life.lastVacuum(ctx); trace.found && trace.version >= f.Version {
		return e.WithHint("the table was vacuumed in version %d; only versions from then on are sure to be complete", trace.version)
	}
	retention := life.retention(ctx)
	if age := time.Since(f.ModTime); age > retention {
		return e.WithHint("the file is older than the table's retention of %s, so VACUUM may have deleted it", retention)
	}
	return e.WithHint("restore the file, or read another version")
}

// rawReader serves a data file as it is.
type rawReader struct {
	object  store.Object
	content Content
}

func (r *rawReader) ReadAt(p []byte, off int64) (int, error) { return r.object.ReadAt(p, off) }

func (r *rawReader) Close() error { return r.object.Close() }

func (r *rawReader) Content() Content { return r.content }

func (r *rawReader) File() *os.File { return r.object.File() }
