package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
)

// sidecarDir holds the sidecars: the files with the file actions of checkpoints
// with V2 content (protocol section "Sidecar Files"). Which of them belong to a
// checkpoint only the checkpoint says.
const sidecarDir = logDir + "/_sidecars"

// errSidecar marks an error about a sidecar.
var errSidecar = errors.New("sidecar does not read")

const (
	// maxSidecars is how many a checkpoint may name: engines write one for some
	// ten thousand files.
	maxSidecars = 1 << 16
	// maxSidecarPath is the longest path of one, in bytes.
	maxSidecarPath = 4096
)

// sidecars are those that a checkpoint names.
type sidecars struct {
	// names are in the table's storage, in order and without repetition.
	names []string
	seen  map[string]bool
	// bytes is the size of all, as stated.
	bytes int64
}

// apply takes an action, which may be a sidecar.
func (s *sidecars) apply(a action.Action) error {
	sidecar, ok := a.(*action.Sidecar)
	if !ok {
		return nil
	}
	name, err := sidecarName(sidecar.Path)
	if err != nil || s.seen[name] {
		return err
	}
	if len(s.names) == maxSidecars {
		return fmt.Errorf("it names more than %d sidecars", maxSidecars)
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[name] = true
	s.names = append(s.names, name)
	s.bytes += min(max(sidecar.SizeInBytes, 0), 1<<40)
	return nil
}

// sidecarName is the name in the table's storage of a sidecar: a URI relative to
// the directory of sidecars, or a path that ends in it, as all of them lie there.
func sidecarName(logged string) (string, error) {
	if len(logged) > maxSidecarPath {
		return "", errors.New("it names a sidecar with a path that is too long")
	}
	_, rest, absolute := splitScheme(logged)
	name := path.Clean(decodePath(rest))
	if at := strings.LastIndex("/"+name, "/"+sidecarDir+"/"); at >= 0 {
		name = name[at+len(sidecarDir)+1:]
	} else if absolute {
		return "", fmt.Errorf("it names the sidecar %q, which is not in %s", shortened(logged), sidecarDir)
	}
	if name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("it names the sidecar %q, which is not in %s", shortened(logged), sidecarDir)
	}
	return sidecarDir + "/" + name, nil
}

func shortened(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// findSidecars looks at the sidecars that readState noted. A checkpoint that
// lacks one does not read.
func (c *checkpointFile) findSidecars(ctx context.Context, st store.Store) error {
	c.sidecars = nil
	for _, name := range c.named.names {
		info, err := st.Head(ctx, name)
		if err != nil {
			return failSidecar(err, c.version, name)
		}
		c.sidecars = append(c.sidecars, info)
	}
	return nil
}

// failSidecar is failCheckpoint for a sidecar.
func failSidecar(err error, version int64, name string) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(errors.Join(ErrCorrupt, errCheckpoint, errSidecar), err, "a sidecar of the checkpoint does not read").
		AtVersion(version).InFile(path.Base(sidecarDir) + "/" + path.Base(name)).
		WithHint("restore the file, or read a version that does not need it")
}

// readSidecars gives named the sidecars that a Parquet file names.
func (p *checkpointPart) readSidecars(ctx context.Context, named *sidecars) error {
	if p.file.Root().Column("sidecar") == nil {
		return nil
	}
	for i := range p.file.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.rowGroup(i, func(g *rowGroupColumns) error { return readKinds(g, named.apply, sidecarKind) }); err != nil {
			return err
		}
	}
	return nil
}

// visitLines visits the actions of a JSON file.
func visitLines(ctx context.Context, st store.Store, name string, row *int64, named *sidecars, v checkpointVisitor) (bool, error) {
	object, err := st.Open(ctx, name)
	if err != nil {
		return false, err
	}
	defer object.Close()
	r := newActionReader(ctx, object)
	r.Brief = true
	more := true
	err = scanActions(r, func(a action.Action) (err error) {
		if err := named.apply(a); err != nil || !more {
			return err
		}
		more, err = v.line(r, a, *row)
		*row++
		return err
	})
	return more, err
}
