package fsnode

import (
	"context"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/snapshot"
)

// newest stands for the version that is the newest when a file is opened.
const newest = -1

// rowsFile is the rows of a version as text, made while it is read. Like files of
// /proc it shows the size 0.
type rowsFile struct {
	inc     *incarnation
	name    string
	version int64
	format  sql.Format
}

func (x *rowsFile) key() nodeKey {
	return nodeKey{kind: kindRows, table: x.inc.t, inc: x.inc, number: x.version, path: x.name}
}
func (x *rowsFile) kind() statKind { return frozenFile }
func (x *rowsFile) stale() bool    { return x.inc.stale() }

func (x *rowsFile) attrTTL() time.Duration {
	if x.version == newest {
		return never
	}
	return forever
}

func (x *rowsFile) stat(ctx context.Context) (stat, error) {
	return stat{kind: frozenFile, mtime: x.inc.commitTime(ctx, x.at())}, nil
}

// at is the version that opening the file shows.
func (x *rowsFile) at() int64 {
	if x.version == newest {
		return x.inc.snap.Latest()
	}
	return x.version
}

// rowsName splits the name of a text into what it is of and its format.
func rowsName(name string) (of string, format sql.Format, ok bool) {
	for _, format := range []sql.Format{sql.CSV, sql.JSONL} {
		if of, ok := strings.CutSuffix(name, "."+string(format)); ok && (of == nameCurrent || strings.HasPrefix(of, "@")) {
			return of, format, true
		}
	}
	return "", "", false
}

// rows is the text of current/, of a version or of an instant.
func (inc *incarnation) rows(ctx context.Context, name, of string, format sql.Format) (child, error) {
	if of == nameCurrent {
		return child{name, &rowsFile{inc, name, newest, format}, never}, nil
	}
	if v, ok := parseVersion(of); ok {
		if _, err := inc.version(ctx, v); err != nil {
			return child{}, err
		}
		return child{name, &rowsFile{inc, name, v, format}, forever}, nil
	}
	at, err := inc.timestamp(ctx, of)
	if err != nil {
		return child{}, err
	}
	return child{name, &rowsFile{inc, name, at.node.(*link).version, format}, at.ttl}, nil
}

// openRows starts the query, so that what is known to fail fails here.
func (f *FS) openRows(ctx context.Context, x *rowsFile, out *fuse.OpenOut) error {
	s, err := x.inc.at(ctx, x.at())
	if err != nil {
		return err
	}
	h := newRowsHandle(f.ctx, func(ctx context.Context) (rowStream, error) {
		return s.Rows(ctx, f.opt.SQL, snapshot.Rows{Format: x.format, Limit: -1})
	})
	if err := h.begin(ctx); err != nil {
		h.release()
		return err
	}
	out.Fh = f.handles.add(h)
	out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH
	return nil
}
