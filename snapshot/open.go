package snapshot

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
)

// Open opens a data file's content, as the table has it unless the table is shown
// raw. ErrFileGone, ErrOutside, ErrUnsupported, ErrBroken.
//
// The log's size of a file that is shown raw is only a claim. When the file on
// disk has another one, the Reader serves it as it is, its Content().Size differs
// from f.Size, and every File that the table makes of it from now on carries the
// true size; see SizeChanged.
func (t *Table) Open(ctx context.Context, f File) (Reader, error) {
	r, err := t.open(ctx, f)
	if err != nil {
		return nil, t.fileFault(f, err)
	}
	return r, nil
}

// SizeChanged reports whether r, opened from f, serves another size than f
// showed, so that whoever showed f.Size must take it back.
func SizeChanged(f File, r Reader) bool {
	return f.SchemaOrdinal == 0 && r.Content().Size != f.Size
}

// fileFault says which file of which version an error is about.
func (t *Table) fileFault(f File, err error) error {
	var known *fault.Error
	if errors.As(err, &known) && known.Version == nil {
		known.AtVersion(f.Version)
	}
	return t.fault(err)
}

func (t *Table) open(ctx context.Context, f File) (Reader, error) {
	object, err := t.openObject(ctx, f)
	if err != nil {
		return nil, err
	}
	p, err := t.planned(ctx, f, nil, object)
	if err != nil {
		object.Close()
		return nil, err
	}
	if p == nil {
		return newRawReader(object), nil
	}
	return &renderedReader{table: t, file: f, object: object, plan: p}, nil
}

// planned decides how an opened file is served, nil is as it is, and keeps its
// size. The add may be nil.
func (t *Table) planned(ctx context.Context, f File, add *action.Add, object store.Object) (*plan, error) {
	size := object.Info().Size
	if f.SchemaOrdinal == 0 {
		t.noteSize(f, size)
		return nil, nil
	}
	if t.sizes.isRaw(f, size) {
		return nil, nil
	}
	p, err := t.planOf(ctx, f, add, object)
	switch {
	case err != nil:
	case p == nil:
		t.sizes.keepRaw(f, size)
	default:
		t.sizes.keep(f, p.Size)
	}
	return p, err
}

// openObject opens the data file.
func (t *Table) openObject(ctx context.Context, f File) (store.Object, error) {
	object, err := t.openPath(ctx, f.Path)
	switch {
	case errors.Is(err, store.ErrNotExist):
		return nil, t.explainGone(ctx, f, err)
	case errors.Is(err, store.ErrOutside):
		return nil, fault.Wrap(ErrOutside, err, "the file lies outside the table").InFile(f.Path)
	}
	return object, err
}

// openPath opens the file that a path of the log names, at its decoded path. Old
// writers did not encode paths, so where nothing is there the raw path is tried.
func (t *Table) openPath(ctx context.Context, logged string) (store.Object, error) {
	canonical := CanonicalPath(logged, t.store.Root())
	if away, ok := outsidePath(canonical, t.store.Root()); ok {
		return t.openOutside(ctx, canonical, away)
	}
	name, err := storeName(canonical)
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
	if _, away := outsidePath(CanonicalPath(f.Path, t.store.Root()), t.store.Root()); away {
		return e.WithHint("it lies outside the table; if this is a clone, the table that it was made of may have been vacuumed")
	}
	if age := time.Since(f.ModTime); age > retention {
		return e.WithHint("the file is older than the table's retention of %s, so VACUUM may have deleted it", retention)
	}
	return e.WithHint("restore the file, or read another version")
}
