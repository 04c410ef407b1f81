package snapshot

import (
	"context"
	"iter"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/metacache"
)

// Snapshot is one version of a table: an immutable value.
type Snapshot struct {
	table  *Table
	life   *incarnation
	header *header
	// ordinal says how files are shown; see File.SchemaOrdinal.
	ordinal uint32
}

// Version is the table version.
func (s *Snapshot) Version() int64 { return s.header.version }

// Table is the table the snapshot is of.
func (s *Snapshot) Table() *Table { return s.table }

// Protocol and Metadata are shared: callers must not change them.
func (s *Snapshot) Protocol() *action.Protocol { return s.header.protocol }

// Metadata is the table metadata at this version.
func (s *Snapshot) Metadata() *action.Metadata { return s.header.metadata }

// Schema is the parsed schema.
func (s *Snapshot) Schema() *Schema { return s.header.shape.schema }

// PartitionFields are the schema fields of the partition columns, in the
// order of partitionColumns.
func (s *Snapshot) PartitionFields() []Field { return s.header.shape.partitions }

// Txn returns the last version that an application recorded.
func (s *Snapshot) Txn(appID string) (int64, bool) {
	txn, ok := s.header.txns.get(appID)
	if !ok {
		return 0, false
	}
	return txn.Version, true
}

// Txns returns the last transaction of every application.
func (s *Snapshot) Txns() map[string]*action.Txn { return s.header.txns.all() }

// Domains returns the live domain metadata by domain.
func (s *Snapshot) Domains() map[string]*action.DomainMetadata {
	out := s.header.domains.all()
	for name, d := range out {
		if d.Removed {
			delete(out, name)
		}
	}
	return out
}

// Totals sums up the version's files.
func (s *Snapshot) Totals(ctx context.Context) (metacache.Totals, error) {
	return covered(ctx, s, func() (metacache.Totals, error) { return s.life.opened().Totals(ctx, s.Version()) })
}

// covered asks the index, and loads the version again if the index had to
// drop it.
func covered[T any](ctx context.Context, s *Snapshot, ask func() (T, error)) (out T, err error) {
	err = s.reload(ctx, func() (err error) {
		out, err = ask()
		return err
	})
	return out, s.table.fault(err)
}

// coveredSeq is covered for an iterator, which is not covered at its first step
// or never.
func coveredSeq[T any](ctx context.Context, s *Snapshot, ask func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := s.reload(ctx, func() error {
			for v, err := range ask() {
				if err != nil {
					return err
				}
				if !yield(v, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			var none T
			yield(none, s.table.fault(err))
		}
	}
}

// reload asks for the files of the version, and loads them before each further
// time.
func (s *Snapshot) reload(ctx context.Context, ask func() error) error {
	asked := false
	return again(func() error {
		if asked {
			if _, err := s.life.files(ctx, s.Version()); err != nil {
				return err
			}
		}
		asked = true
		return ask()
	})
}

// Files yields every file.
func (s *Snapshot) Files(ctx context.Context) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		files := coveredSeq(ctx, s, func() fileSeq { return s.life.opened().Files(ctx, s.Version()) })
		for group, err := range groups(files) {
			if err != nil {
				yield(File{}, s.table.fault(err))
				return
			}
			for i := range group {
				if !yield(s.show(group, i), nil) {
					return
				}
			}
		}
	}
}

// ByPath returns the live file with this add.path.
func (s *Snapshot) ByPath(ctx context.Context, path string) (File, bool, error) {
	canonical := CanonicalPath(path, s.table.store.Root())
	ok := false
	f, err := covered(ctx, s, func() (f metacache.File, err error) {
		f, ok, err = s.life.opened().ByPath(ctx, s.Version(), canonical)
		return f, err
	})
	if err != nil || !ok {
		return File{}, false, err
	}
	group, err := s.group(ctx, f.Dir, f.Name)
	if err != nil {
		return File{}, false, err
	}
	for i := range group {
		if group[i].Path == canonical {
			return s.show(group, i), true, nil
		}
	}
	return File{}, false, nil
}
