package writer

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json/jsontext"
)

// fileKey identifies a logical file (protocol section "Action
// Reconciliation"): its canonical path and its deletion vector.
type fileKey struct{ path, dv string }

// tableState is a version without its files.
type tableState struct {
	protocol *action.Protocol
	metadata *action.Metadata
	txns     map[string]*action.Txn
	domains  map[string]*action.DomainMetadata
}

// changes is what commits do to the checkpoint before them.
type changes struct {
	root string
	tableState
	// files holds the newest action of each file.
	files map[fileKey]action.Action
	// bytes is about how much memory they take.
	bytes int64
}

// newChanges starts after a checkpoint, nil for before version 0.
func newChanges(root string, base *snapshot.Checkpoint) *changes {
	c := &changes{root: root, files: map[fileKey]action.Action{}}
	if base == nil {
		c.txns, c.domains = map[string]*action.Txn{}, map[string]*action.DomainMetadata{}
		return c
	}
	c.tableState = tableState{base.Protocol(), base.Metadata(), base.Txns(), base.Domains()}
	return c
}

func (c *changes) key(path, dv string) fileKey {
	return fileKey{snapshot.CanonicalPath(path, c.root), dv}
}

// holds reports whether the changes say what became of a file.
func (c *changes) holds(path, dv string) bool {
	_, ok := c.files[c.key(path, dv)]
	return ok
}

// apply takes in one commit. ErrNoCheckpoint if a checkpoint would lose
// something of it.
func (c *changes) apply(actions []action.Action) error {
	for _, a := range actions {
		if err := lossless(a); err != nil {
			return err
		}
		switch a := a.(type) {
		case *action.Protocol:
			c.protocol = a
		case *action.Metadata:
			c.metadata = a
		case *action.Txn:
			c.txns[a.AppID] = a
		case *action.DomainMetadata:
			c.domains[a.Domain] = a
		case *action.Remove:
			c.put(c.key(a.Path, a.DVID()), a, len(a.Path), a.PartitionValues)
		}
	}
	// The order of the lines means nothing: a file that a commit both removes
	// and adds is there.
	for _, a := range actions {
		if add, ok := a.(*action.Add); ok {
			c.put(c.key(add.Path, add.DVID()), add, len(add.Path)+len(add.Stats), add.PartitionValues)
		}
	}
	return nil
}

func (c *changes) put(k fileKey, a action.Action, size int, values map[string]*string) {
	const overhead = 400
	c.bytes += int64(size + len(k.path) + 64*len(values) + overhead)
	c.files[k] = a
}

// lossless refuses an action that has something for which a checkpoint has no
// column.
func lossless(a action.Action) error {
	refuse := func(what string) error {
		return fault.New(ErrNoCheckpoint, "the log holds %s, which a checkpoint would lose", what).
			WithHint("have the engine that wrote it write the checkpoints")
	}
	var extra jsontext.Value
	var dv *action.DeletionVector
	switch a := a.(type) {
	case *action.Protocol:
		extra = a.Extra
	case *action.Metadata:
		extra = a.Extra
	case *action.Txn:
		extra = a.Extra
	case *action.DomainMetadata:
		extra = a.Extra
	case *action.Add:
		extra, dv = a.Extra, a.DeletionVector
	case *action.Remove:
		// Of a removed file only what VACUUM needs is kept.
		dv = a.DeletionVector
	case *action.CommitInfo, *action.CDC:
	default:
		return refuse("an action of the kind " + strconv.Quote(a.Kind()))
	}
	if name := unknownMember(extra); name != "" {
		return refuse("the member " + a.Kind() + "." + name)
	}
	if dv != nil {
		if name := unknownMember(dv.Extra, maxRowMember); name != "" {
			return refuse("the member " + a.Kind() + ".deletionVector." + name)
		}
	}
	return nil
}

// unknownMember names a member that is not null and not known.
func unknownMember(extra jsontext.Value, known ...string) string {
	for name, value := range action.Members(extra) {
		if value.Kind() != 'n' && !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}

// adds yields the files that the changes add, in the order of their paths: so
// those of a partition lie together.
func (c *changes) adds() iter.Seq[*action.Add] { return actionsOf[*action.Add](c) }

// removes yields the files that the changes remove, in the order of their
// paths.
func (c *changes) removes() iter.Seq[*action.Remove] { return actionsOf[*action.Remove](c) }

func actionsOf[T action.Action](c *changes) iter.Seq[T] {
	return func(yield func(T) bool) {
		keys := slices.SortedFunc(maps.Keys(c.files), func(a, b fileKey) int {
			return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.dv, b.dv))
		})
		for _, k := range keys {
			if a, ok := c.files[k].(T); ok && !yield(a) {
				return
			}
		}
	}
}
