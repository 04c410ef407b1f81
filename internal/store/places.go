package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"

	"github.com/deltafs/deltafs/internal/fault"
)

// Places opens files by absolute path that lie in one of some directories, and
// no others. In a place the rules of [Local] hold: a link that leads out of it, or
// an absolute one, is [ErrOutside]. It is safe for concurrent use.
type Places struct {
	roots []string

	mu     sync.Mutex
	opened map[string]*Local
}

// NewPlaces allows the directories with these absolute paths, and with the paths
// that they lead to by links.
func NewPlaces(roots ...string) *Places {
	p := &Places{opened: map[string]*Local{}}
	for _, root := range roots {
		p.roots = append(p.roots, filepath.Clean(root))
	}
	return p
}

// Open opens a file for reading. It is ErrOutside if it lies in none of the
// places.
func (p *Places) Open(ctx context.Context, name string) (Object, error) {
	name = filepath.Clean(name)
	for _, root := range p.roots {
		for _, root := range spellings(root) {
			rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/")
			if !ok {
				continue
			}
			object, err := p.openIn(ctx, root, rest)
			if !errors.Is(err, ErrOutside) {
				return object, err
			}
		}
	}
	return nil, fault.New(ErrOutside, "it lies in no directory from which files may be read").InFile(name)
}

// spellings are a path, and what it is when links are followed.
func spellings(root string) []string {
	if real, err := filepath.EvalSymlinks(root); err == nil && real != root {
		return []string{root, real}
	}
	return []string{root}
}

func (p *Places) openIn(ctx context.Context, root, name string) (Object, error) {
	l, err := p.place(root)
	if err != nil {
		return nil, err
	}
	return l.Open(ctx, name)
}

// place returns the opened directory.
func (p *Places) place(root string) (*Local, error) {
	p.mu.Lock()
	l := p.opened[root]
	p.mu.Unlock()
	if l != nil {
		return l, nil
	}
	l, err := OpenLocal(root)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.opened[root]; first != nil {
		return first, l.Close()
	}
	p.opened[root] = l
	return l, nil
}

// Close releases the directories. They are opened again when they are used.
func (p *Places) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, l := range p.opened {
		err = errors.Join(err, l.Close())
	}
	clear(p.opened)
	return err
}
