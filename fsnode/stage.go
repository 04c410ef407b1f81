package fsnode

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/deltafs/deltafs/writer"
)

const (
	nameRejected = "rejected"
	reasonSuffix = ".reason"
)

// stageDir is .stage: what is not committed, by name, and what was refused.
type stageDir struct{ inc *incarnation }

func (d *stageDir) key() nodeKey {
	return nodeKey{kind: kindStage, table: d.inc.t, inc: d.inc}
}
func (d *stageDir) kind() statKind         { return openDir }
func (d *stageDir) attrTTL() time.Duration { return liveTTL }
func (d *stageDir) stale() bool            { return d.inc.stale() }

func (d *stageDir) stat(context.Context) (stat, error) {
	return stat{kind: openDir, mtime: time.Now()}, nil
}

func (d *stageDir) lookup(_ context.Context, _ writer.Caller, name string) (child, error) {
	if name == nameRejected {
		return child{name, &rejectedDir{d.inc}, never}, nil
	}
	for _, c := range d.staged() {
		if c.name == name {
			return c, nil
		}
	}
	return child{}, errNotFound
}

func (d *stageDir) list(context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		if !yield(child{nameRejected, &rejectedDir{d.inc}, never}, nil) {
			return
		}
		for _, c := range d.staged() {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// staged returns the uncommitted files under names that are unique here: the
// number of the file tells apart those that have the same name in different
// directories.
func (d *stageDir) staged() []child {
	infos := d.inc.live.Staging()
	count := map[string]int{nameRejected: 1}
	for _, i := range infos {
		count[i.Name]++
	}
	var out []child
	for _, i := range infos {
		if i.Staged == nil {
			continue
		}
		name := i.Name
		if count[name] > 1 {
			name = fmt.Sprintf("%s~%d", name, i.Staged.ID())
		}
		out = append(out, child{name, &stagedFile{d.inc, i.Staged}, never})
	}
	slices.SortFunc(out, func(a, b child) int { return strings.Compare(a.name, b.name) })
	return out
}

// rejectedDir is .stage/rejected: the refused files, each with its reason.
type rejectedDir struct{ inc *incarnation }

func (d *rejectedDir) key() nodeKey {
	return nodeKey{kind: kindRejectedDir, table: d.inc.t, inc: d.inc}
}
func (d *rejectedDir) kind() statKind         { return openDir }
func (d *rejectedDir) attrTTL() time.Duration { return liveTTL }
func (d *rejectedDir) stale() bool            { return d.inc.stale() }

func (d *rejectedDir) stat(context.Context) (stat, error) {
	return stat{kind: openDir, mtime: time.Now()}, nil
}

func (d *rejectedDir) lookup(ctx context.Context, _ writer.Caller, name string) (child, error) {
	for c, err := range d.list(ctx) {
		if err != nil || c.name == name {
			return c, err
		}
	}
	return child{}, errNotFound
}

func (d *rejectedDir) list(ctx context.Context) iter.Seq2[child, error] {
	return func(yield func(child, error) bool) {
		files, err := d.inc.live.Rejected(ctx)
		if err != nil {
			yield(child{}, err)
			return
		}
		for _, r := range files {
			if !yield(child{r.Name, &rejectedFile{d.inc, r}, never}, nil) ||
				!yield(child{r.Name + reasonSuffix, &reasonFile{d.inc, r}, never}, nil) {
				return
			}
		}
	}
}

// rejectedFile is the bytes of a file that was refused.
type rejectedFile struct {
	inc *incarnation
	writer.RejectedFile
}

func (r *rejectedFile) key() nodeKey {
	return nodeKey{kind: kindRejected, table: r.inc.t, inc: r.inc, path: r.Name}
}
func (r *rejectedFile) kind() statKind         { return frozenFile }
func (r *rejectedFile) attrTTL() time.Duration { return never }
func (r *rejectedFile) stale() bool            { return r.inc.stale() }

func (r *rejectedFile) stat(context.Context) (stat, error) {
	return stat{frozenFile, r.Size, r.Time}, nil
}

// reasonFile says why a file was refused.
type reasonFile struct {
	inc *incarnation
	writer.RejectedFile
}

func (r *reasonFile) key() nodeKey {
	return nodeKey{kind: kindRejected, table: r.inc.t, inc: r.inc, path: r.Name + "/reason"}
}
func (r *reasonFile) kind() statKind         { return frozenFile }
func (r *reasonFile) attrTTL() time.Duration { return never }
func (r *reasonFile) stale() bool            { return r.inc.stale() }

func (r *reasonFile) stat(ctx context.Context) (stat, error) {
	b, err := r.content(ctx)
	return stat{frozenFile, int64(len(b)), r.Time}, err
}

// content is the reason and the way out, for people.
func (r *reasonFile) content(context.Context) ([]byte, error) {
	var b strings.Builder
	if r.Wanted != "" {
		fmt.Fprintf(&b, "file: %s\n", r.Wanted)
	}
	fmt.Fprintf(&b, "reason: %s\n", r.Reason)
	if r.Hint != "" {
		fmt.Fprintf(&b, "hint: %s\n", r.Hint)
	}
	return []byte(b.String()), nil
}
