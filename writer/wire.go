package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetfile"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json"
)

// tableBackend puts Live on a table.
type tableBackend struct{ w *Table }

func (b *tableBackend) Name() string { return b.w.table.Name() }
func (b *tableBackend) Root() string { return b.w.table.Store().Root() }

func (b *tableBackend) View(ctx context.Context) (view, error) {
	s, err := b.w.table.At(ctx, b.w.table.Latest())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Refresh looks for newer versions and hands on what it found, since it
// announces each of them once.
func (b *tableBackend) Refresh(ctx context.Context) error {
	ev, err := b.w.table.Refresh(ctx)
	// While the write side is being opened nobody follows it yet.
	follow := b.w.live != nil && b.w.opts.OnRefresh != nil
	if err == nil && follow && (ev.From != ev.To || ev.Recreated) {
		b.w.opts.OnRefresh(ctx, ev)
	}
	return err
}

func (b *tableBackend) Actions(ctx context.Context, v int64) ([]action.Action, error) {
	return b.w.table.ReadCommit(ctx, v)
}

func (b *tableBackend) Writable(ctx context.Context) error { return b.w.Writable(ctx) }

func (b *tableBackend) Commit(ctx context.Context, spec *TxnSpec) (int64, error) {
	return b.w.Commit(ctx, spec)
}

// Judge checks the bytes, their place and their fit, in this order, so that
// the first thing wrong is what the user reads.
func (b *tableBackend) Judge(ctx context.Context, v view, f *os.File, size int64, p place) (*verdict, error) {
	file, err := parquetfile.Check(f, size)
	switch {
	case errors.Is(err, parquetfile.ErrNotYet):
		return nil, errNotYet
	case errors.Is(err, parquetfile.ErrBroken):
		return nil, asKind(ErrIncomplete, err)
	case err != nil:
		return nil, err
	}
	if !p.full() {
		return nil, p.errNotPlaced()
	}
	s, ok := v.(*snapshot.Snapshot)
	if !ok {
		return nil, fmt.Errorf("not a snapshot: %T", v)
	}
	t := &target{
		schema: s.Schema(), partitionColumns: s.Metadata().PartitionColumns, partitionValues: p.values,
		config: s.Metadata().Configuration, clustering: clusteringColumns(s.Domains()),
		tightBounds: slices.Contains(s.Protocol().WriterFeatures, "deletionVectors"),
	}
	if err := fit(ctx, file, f, t); err != nil {
		return nil, unfit(err)
	}
	stats, rows, err := statsFor(ctx, file, f, t)
	if err != nil {
		return nil, unfit(err)
	}
	codec := ""
	if codecs := file.Codecs(); len(codecs) == 1 {
		codec = codecs[0].String()
	}
	return &verdict{Rows: rows, Stats: stats, Codec: codec, For: s.Metadata()}, nil
}

// unfit turns values that cannot be read into a refusal.
func unfit(err error) error {
	if errors.Is(err, parquetfile.ErrBroken) || errors.Is(err, parquetfile.ErrUnreadable) {
		return asKind(ErrIncomplete, err)
	}
	return err
}

// asKind is the same failure under a sentinel of this package.
func asKind(kind, err error) error {
	var known *fault.Error
	if !errors.As(err, &known) {
		return fault.Wrap(kind, err, "%s", "")
	}
	e := *known
	e.Kind = kind
	if e.Err == nil {
		e.Err = known.Kind
	}
	return &e
}

// clusteringColumns are the paths of the clustering columns, whose statistics
// the protocol requires (section "Clustered Table").
func clusteringColumns(domains map[string]*action.DomainMetadata) [][]string {
	domain := domains["delta.clustering"]
	if domain == nil || domain.Removed {
		return nil
	}
	var clustering struct {
		Columns [][]string `json:"clusteringColumns"`
	}
	if json.Unmarshal([]byte(domain.Configuration), &clustering) != nil {
		return nil
	}
	return clustering.Columns
}

func (b *tableBackend) DataPath(v view, p place, id, codec string) (object, addPath string) {
	return dataPath(p.dir, id, v.Metadata().Configuration, codec)
}

func (b *tableBackend) Publish(ctx context.Context, f *os.File, object string) error {
	return b.w.table.Store().Publish(ctx, f, object)
}

func (b *tableBackend) Unpublish(ctx context.Context, object string) error {
	return b.w.table.Store().Delete(ctx, object)
}

func (b *tableBackend) OpenObject(ctx context.Context, object string) (committedReader, error) {
	o, err := b.w.table.Store().Open(ctx, object)
	if err != nil {
		return nil, err
	}
	return objectReader{o}, nil
}

func (b *tableBackend) OpenFile(ctx context.Context, f snapshot.File) (committedReader, error) {
	r, err := b.w.table.Open(ctx, f)
	if err != nil {
		return nil, err
	}
	return contentReader{r}, nil
}

// objectReader reads a data file as it lies in storage.
type objectReader struct{ store.Object }

func (r objectReader) Size() int64 { return r.Info().Size }

// contentReader reads what a data file is served as.
type contentReader struct{ snapshot.Reader }

func (r contentReader) Size() int64 { return r.Content().Size }
