package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/go-json-experiment/json"
)

// note is what a cache keeps with a version beside its files: lines of JSON, a
// noteHead and the actions of the header, spelled as in the log.
type note struct {
	noteHead
	state []action.Action
}

type noteHead struct {
	// Full says that the note has all of the version's header, not only what its
	// commit changed.
	Full bool `json:"full"`
	// Files are those of the log that the version was read from: its commit, or
	// all parts of a checkpoint and their sidecars.
	Files []notedFile `json:"files"`
}

type notedFile struct {
	Name     string         `json:"name"`
	Identity store.Identity `json:"identity"`
	Changed  int64          `json:"changed,omitzero"`
}

func newNote(full bool, from []logFile, state []action.Action) *note {
	n := &note{noteHead{Full: full}, state}
	for _, f := range from {
		n.Files = append(n.Files, notedFile{f.name, f.identity, f.changed})
	}
	return n
}

func (n *note) encode() ([]byte, error) {
	out, err := json.Marshal(n.noteHead)
	for _, a := range n.state {
		line, lineErr := action.Encode(a)
		err = errors.Join(err, lineErr)
		out = append(append(out, '\n'), line...)
	}
	return out, err
}

// decodeNoteHead returns also what comes behind the head.
func decodeNoteHead(text []byte) (head noteHead, rest []byte, err error) {
	line, rest, _ := bytes.Cut(text, []byte{'\n'})
	err = json.Unmarshal(line, &head)
	return head, rest, err
}

func decodeNote(text []byte) (*note, error) {
	head, rest, err := decodeNoteHead(text)
	if err != nil {
		return nil, err
	}
	n := &note{noteHead: head}
	return n, scanActions(action.NewReader(bytes.NewReader(rest), int64(len(rest))), func(a action.Action) error {
		n.state = append(n.state, a)
		return nil
	})
}

// state returns the actions of which a header is made.
func (h *header) state() []action.Action {
	out := []action.Action{h.protocol, h.metadata}
	for _, txn := range sorted(h.txns.all()) {
		out = append(out, txn)
	}
	for _, domain := range sorted(h.domains.all()) {
		out = append(out, domain)
	}
	return out
}

func sorted[K cmp.Ordered, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[key])
	}
	return out
}

// A note is full after so many that are not, and after more if it is so long
// that it takes more than its share of each of them.
const (
	fullNoteEvery = 64
	fullNoteShare = 512
)

// fullNote makes the note of a version that was read from files of the log.
func (n *incarnation) fullNote(h *header, from []logFile) []byte {
	if n.table.cache == nil {
		return nil
	}
	text, err := newNote(true, from, h.state()).encode()
	if err != nil {
		return nil // as if the version were not in the cache
	}
	h.partial, h.full = 0, len(text)
	return text
}

// note makes the note of a version that a commit made from base.
func (n *incarnation) note(base *header, c *change) []byte {
	if n.table.cache == nil {
		return nil
	}
	c.header.partial = base.partial + 1
	if c.header.partial >= max(fullNoteEvery, c.header.full/fullNoteShare) {
		return n.fullNote(c.header, c.from)
	}
	text, err := newNote(false, c.from, c.state).encode()
	if err != nil {
		return nil
	}
	return text
}

// noted returns the header of a version from the notes of the index, nil if
// they do not have it.
func (n *incarnation) noted(ctx context.Context, v int64) *header {
	if n.table.cache == nil || !n.covers(v) {
		return nil
	}
	h, err := n.fromNotes(ctx, v)
	if err != nil {
		n.table.log.Debug("notes of the cache passed over", "op", "load", "table", n.table.name, "version", v, "err", err)
		return nil
	}
	n.remember(h)
	return h
}

func (n *incarnation) fromNotes(ctx context.Context, v int64) (*header, error) {
	var base *header
	var changes []*note // the newest first
	for u := v; base == nil; u-- {
		if base = n.cached(u); base != nil {
			break
		}
		text, err := n.opened().Note(ctx, u)
		if err != nil {
			return nil, err
		}
		noted, err := decodeNote(text)
		if err != nil {
			return nil, fmt.Errorf("the note of version %d: %w", u, err)
		}
		if !noted.Full {
			changes = append(changes, noted)
			continue
		}
		if base, err = n.fromFullNote(noted, u); err != nil {
			return nil, err
		}
		base.full = len(text)
	}
	b := newHeaderBuilder(base, v)
	for _, c := range slices.Backward(changes) {
		for _, a := range c.state {
			b.apply(a)
		}
	}
	b.next.partial = base.partial + len(changes)
	return b.finish()
}

// fromFullNote makes a header of a full note. It shares the metadata, which may
// be large, with the one made before.
func (n *incarnation) fromFullNote(noted *note, v int64) (*header, error) {
	b := newHeaderBuilder(nil, v)
	for _, a := range noted.state {
		b.apply(a)
	}
	h, err := b.finish()
	if err != nil {
		return nil, err
	}
	h.partial = 0
	n.mu.Lock()
	defer n.mu.Unlock()
	if before := n.restored; before != nil && reflect.DeepEqual(before.metadata, h.metadata) {
		h.metadata, h.shape = before.metadata, before.shape
	}
	n.restored = h
	return h, nil
}

// holds reports whether the log has these files of a version, there, and
// whether they are the same.
func (n *incarnation) holds(ctx context.Context, v int64, files []notedFile) (same, there bool) {
	if len(files) == 0 {
		return false, false
	}
	now := n.log().filesOf(v)
	for _, f := range files {
		file, ok := now[f.Name]
		if strings.HasPrefix(f.Name, sidecarDir+"/") {
			info, err := n.table.store.Head(ctx, f.Name)
			file, ok = logFileOf(info), err == nil
		}
		if !ok {
			return false, false
		}
		if !f.is(file) {
			return false, true
		}
	}
	return true, true
}

// is reports whether the noted file is this one. When it last changed says so for
// sure, but is not known of a file that had a second name, as while a writer
// links a commit into place.
func (f notedFile) is(file logFile) bool {
	return f.Identity == file.identity && (f.Changed == file.changed || f.Changed == 0 || file.changed == 0)
}

// filesOf are the files of the log that were listed for a version.
func (l *listing) filesOf(v int64) map[string]logFile {
	out := map[string]logFile{}
	if c, ok := l.commit(v); ok {
		out[CommitName(v)] = c.file()
	}
	for _, c := range l.checkpointsUpTo(v) {
		if c.version != v {
			break
		}
		for _, f := range c.logFiles() {
			out[f.name] = f
		}
	}
	return out
}
