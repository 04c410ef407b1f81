package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

// header is a version without its files: an immutable value that shares with
// its neighbours what did not change.
type header struct {
	version  int64
	protocol *action.Protocol
	metadata *action.Metadata
	shape    *shape
	txns     *layered[*action.Txn]
	domains  *layered[*action.DomainMetadata]
	// partial is how many versions before this one, itself included, have notes
	// that are not full, and full the length of the last one that is.
	partial, full int
}

// shape is what follows from the metadata alone.
type shape struct {
	schema *Schema
	// err says why the schema does not parse.
	err error
	// partitions are the fields of the partition columns, in their order.
	partitions []Field
	// rendition is made when it is first needed.
	rendition atomic.Pointer[rendition]
}

func newShape(m *action.Metadata) *shape {
	s := &shape{}
	if s.schema, s.err = ParseSchema(m.SchemaString); s.err != nil {
		s.schema = &Schema{}
	}
	for _, name := range m.PartitionColumns {
		f, ok := s.schema.Lookup(name)
		if !ok {
			f = Field{Name: name, Type: &Primitive{Name: "string"}, Nullable: true}
		}
		if s.err == nil {
			s.err = s.checkPartition(f, ok)
		}
		s.partitions = append(s.partitions, f)
	}
	return s
}

// checkPartition refuses a partition column that the table has twice or not at
// all: its directories would show rows that the table does not have. A log
// without a schema, as of a table that has no data, says nothing.
func (s *shape) checkPartition(f Field, known bool) error {
	if !known && len(s.schema.Fields) > 0 {
		return fmt.Errorf("the partition column %q is not in the schema", f.Name)
	}
	for _, other := range s.partitions {
		if other.Name == f.Name {
			return fmt.Errorf("the partition column %q is named twice", f.Name)
		}
	}
	return nil
}

// sameLayout reports whether files have the same directory under both shapes.
func (s *shape) sameLayout(other *shape) bool {
	return s == other || slices.EqualFunc(s.partitions, other.partitions, func(a, b Field) bool {
		return a.Name == b.Name && a.PhysicalName() == b.PhysicalName()
	})
}

// headerBuilder makes the next header from a base and the actions of a commit
// or a checkpoint, in any order.
type headerBuilder struct {
	next    *header
	txns    map[string]*action.Txn
	domains map[string]*action.DomainMetadata
}

// newHeaderBuilder starts from base, nil for nothing.
func newHeaderBuilder(base *header, version int64) *headerBuilder {
	b := &headerBuilder{next: &header{}}
	if base != nil {
		*b.next = *base
	}
	b.next.version = version
	return b
}

func (b *headerBuilder) apply(a action.Action) {
	switch a := a.(type) {
	case *action.Protocol:
		b.next.protocol = a
	case *action.Metadata:
		b.next.metadata, b.next.shape = a, newShape(a)
	case *action.Txn:
		if b.txns == nil {
			b.txns = map[string]*action.Txn{}
		}
		b.txns[a.AppID] = a
	case *action.DomainMetadata:
		if b.domains == nil {
			b.domains = map[string]*action.DomainMetadata{}
		}
		b.domains[a.Domain] = a
	}
}

// finish returns the header; it is an error if no protocol or no metadata was
// seen up to this version.
func (b *headerBuilder) finish() (*header, error) {
	h := b.next
	switch {
	case h.protocol == nil && h.metadata == nil:
		return nil, errors.New("neither a protocol nor a metaData action")
	case h.protocol == nil:
		return nil, errors.New("no protocol action")
	case h.metadata == nil:
		return nil, errors.New("no metaData action")
	}
	h.txns = h.txns.with(b.txns)
	h.domains = h.domains.with(b.domains)
	return h, nil
}

// readable returns why the version cannot be shown, or nil.
func (h *header) readable() error {
	if err := checkReadable(h.protocol, h.metadata, h.shape.schema); err != nil {
		return err.AtVersion(h.version)
	}
	if h.shape.err != nil {
		return fault.Wrap(ErrCorrupt, h.shape.err, "the metadata is damaged").AtVersion(h.version)
	}
	return nil
}

// layered is an immutable map made of a chain of changes, so that a version
// which records one transaction does not copy those of all applications.
type layered[V any] struct {
	below *layered[V]
	own   map[string]V
	depth int
}

// maxLayers bounds the chain; a longer one is flattened.
const maxLayers = 32

func (l *layered[V]) with(changes map[string]V) *layered[V] {
	if len(changes) == 0 {
		return l
	}
	out := &layered[V]{below: l, own: changes}
	if l != nil {
		out.depth = l.depth + 1
	}
	if out.depth >= maxLayers {
		return &layered[V]{own: out.all()}
	}
	return out
}

func (l *layered[V]) get(key string) (v V, ok bool) {
	for ; l != nil; l = l.below {
		if v, ok = l.own[key]; ok {
			return v, true
		}
	}
	return v, false
}

// all returns a new map of everything.
func (l *layered[V]) all() map[string]V {
	if l == nil {
		return map[string]V{}
	}
	out := l.below.all()
	maps.Copy(out, l.own)
	return out
}
