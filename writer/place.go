package writer

import (
	"context"
	"errors"
	"strings"

	"github.com/deltafs/deltafs/snapshot"
)

// place is a directory under current/, understood.
type place struct {
	// shown is the path as the caller spelled it, dir the canonical one:
	// partition directories as the listing spells them.
	shown, dir string
	// values are the partition values the path says, fields the first columns
	// that they belong to.
	values map[string]*string
	fields []snapshot.Field
	// scratch is set inside a scratch directory; next is the partition column
	// that a subdirectory would have, nil if there is none.
	scratch bool
	next    *snapshot.Field
}

// key is a name in a canonical directory.
type key struct{ dir, name string }

func (k key) String() string { return joinPath(k.dir, k.name) }

// key is the key of a file name in the place.
func (p place) key(name string) key { return key{p.dir, name} }

// full reports whether every partition column has a value.
func (p place) full() bool { return !p.scratch && p.next == nil }

// placeOf understands a directory path. It says nothing of whether the
// directory exists: the log may hold directories that nobody could make here.
func placeOf(v view, dir string) place {
	p := place{}
	for elem := range strings.SplitSeq(dir, "/") {
		if elem != "" {
			p = p.child(v, elem)
		}
	}
	if p.dir == "" {
		p.next = nextField(v, 0)
	}
	return p
}

// resolve is placeOf for a directory that may exist.
func resolve(ctx context.Context, v view, dir string) (place, error) {
	p := placeOf(v, "")
	for elem := range strings.SplitSeq(dir, "/") {
		if elem == "" {
			continue
		}
		var err error
		if p, err = p.enter(ctx, v, elem); err != nil {
			return place{}, err
		}
	}
	return p, nil
}

// enter is child for a subdirectory that may exist: a value that another
// writer serialised differently than we do (a timestamp without a fraction, an
// integer with zeros in front) keeps its spelling, so that the directory holds
// what the log says and takes new files.
func (p place) enter(ctx context.Context, v view, name string) (place, error) {
	c := p.child(v, name)
	if c.scratch || c.dir == joinPath(p.dir, name) {
		return c, nil
	}
	e, err := v.Lookup(ctx, p.dir, name)
	switch {
	case errors.Is(err, snapshot.ErrNotExist), errors.Is(err, snapshot.ErrAmbiguous), err == nil && e.File != nil:
		return c, nil
	case err != nil:
		return place{}, err
	}
	c.dir = joinPath(p.dir, name)
	if column := c.fields[len(c.fields)-1].Name; c.values[column] != nil {
		_, text, _ := strings.Cut(name, "=")
		value := snapshot.UnescapeHive(text)
		c.values[column] = &value
	}
	return c, nil
}

// child is the subdirectory of this name, if it is to be made.
func (p place) child(v view, name string) place {
	c := place{shown: joinPath(p.shown, name), scratch: p.scratch, fields: p.fields, values: p.values}
	if field := nextField(v, len(p.fields)); field != nil && !p.scratch {
		if value, err := snapshot.ParsePartition(*field, name); err == nil {
			own := map[string]*string{field.Name: value}
			c.dir = joinPath(p.dir, snapshot.PartitionDir([]snapshot.Field{*field}, own))
			c.fields = v.PartitionFields()[:len(p.fields)+1]
			for k, old := range p.values {
				own[k] = old
			}
			c.values = own
			c.next = nextField(v, len(c.fields))
			return c
		}
	}
	// What is neither a partition nor scratch can be looked up, never made.
	c.dir = joinPath(p.dir, name)
	c.scratch = true
	return c
}

func nextField(v view, depth int) *snapshot.Field {
	if fields := v.PartitionFields(); depth < len(fields) {
		return &fields[depth]
	}
	return nil
}

// isBelow reports whether the directory dir is parent or lies below it.
func isBelow(dir, parent string) bool {
	return parent == "" || dir == parent || strings.HasPrefix(dir, parent+"/")
}
