package writer

import (
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// checkInvariants refuses a transaction that would leave a log which readers
// may take for corrupt or read differently (protocol section "Action
// Reconciliation"). It also indexes the paths. Whoever built the transaction
// is at fault, so that nothing here is a user's error.
func (t *txn) checkInvariants() error {
	seen := singles{}
	var changing, rearranging bool
	for _, a := range t.spec.Actions {
		var err error
		switch a := a.(type) {
		case *action.Protocol:
			err = seen.once("protocol", "")
		case *action.Metadata:
			err = seen.once("metaData", "")
		case *action.Txn:
			err = seen.once("txn", a.AppID)
		case *action.DomainMetadata:
			err = seen.once("domainMetadata", a.Domain)
		case *action.Add:
			changing, rearranging = changing || a.DataChange, rearranging || !a.DataChange
			err = t.indexPath(t.adds, "add", a.Path)
		case *action.Remove:
			changing, rearranging = changing || a.DataChange, rearranging || !a.DataChange
			err = t.indexPath(t.removes, "remove", a.Path)
		case *action.CDC:
			if a.DataChange {
				err = fault.New(ErrInvalid, "cdc action changes data").InFile(a.Path)
			}
		case nil:
			err = fault.New(ErrInvalid, "action is nil")
		default:
			err = fault.New(ErrInvalid, "a transaction cannot hold a %s action", a.Kind())
		}
		if err != nil {
			return err
		}
	}
	if changing && rearranging {
		return fault.New(ErrInvalid, "file actions with and without dataChange in one commit")
	}
	if err := t.checkVersions(); err != nil {
		return err
	}
	return t.checkAdds()
}

// singles remembers what a commit may hold once.
type singles map[[2]string]bool

func (s singles) once(kind, name string) error {
	key := [2]string{kind, name}
	if s[key] {
		return fault.New(ErrInvalid, "more than one %s action %s", kind, name)
	}
	s[key] = true
	return nil
}

func (t *txn) indexPath(paths map[string]string, kind, logged string) error {
	if logged == "" {
		return fault.New(ErrInvalid, "%s action without a path", kind)
	}
	key := snapshot.CanonicalPath(logged, t.root)
	if _, twice := paths[key]; twice {
		return fault.New(ErrInvalid, "more than one %s action for a path", kind).InFile(logged)
	}
	paths[key] = logged
	return nil
}

// checkVersions checks what depends on the version to be written.
func (t *txn) checkVersions() error {
	if t.spec.Operation == "" {
		return fault.New(ErrInvalid, "commit without an operation")
	}
	after := t.base.with(t.spec.Actions)
	if after.protocol == nil || after.metadata == nil {
		return fault.New(ErrInvalid, "the first commit needs protocol and metaData").AtVersion(t.version)
	}
	for _, a := range t.spec.Actions {
		if d, ok := a.(*action.DomainMetadata); ok && !featuresOf(after.protocol)["domainMetadata"] {
			return fault.New(ErrInvalid, "domain metadata %q in a table without the feature domainMetadata", d.Domain)
		}
	}
	return nil
}

// checkAdds checks each file on its own and against its removal: the same path
// comes and goes in one commit only if the deletion vectors differ, because
// the order of the lines means nothing.
func (t *txn) checkAdds() error {
	removed := map[string]string{}
	for _, a := range t.spec.Actions {
		if r, ok := a.(*action.Remove); ok {
			removed[snapshot.CanonicalPath(r.Path, t.root)] = r.DVID()
		}
	}
	after := t.base.with(t.spec.Actions)
	for _, a := range t.spec.Actions {
		add, ok := a.(*action.Add)
		if !ok {
			continue
		}
		if dv, both := removed[snapshot.CanonicalPath(add.Path, t.root)]; both && dv == add.DVID() {
			return fault.New(ErrInvalid, "the file is both added and removed").InFile(add.Path)
		}
		if add.Size < 0 {
			return fault.New(ErrInvalid, "size is %d", add.Size).InFile(add.Path)
		}
		if err := checkPartitionKeys(after, add); err != nil {
			return err
		}
	}
	return nil
}

// checkPartitionKeys wants a value, if null, for every partition column and
// for nothing else. With column mapping the keys are physical names, which the
// metadata alone does not tell.
func checkPartitionKeys(h header, add *action.Add) error {
	if columnMapping(h) != "" {
		return nil
	}
	for _, column := range h.metadata.PartitionColumns {
		if _, ok := add.PartitionValues[column]; !ok {
			return fault.New(ErrInvalid, "no partition value").InFile(add.Path).OnColumn(column)
		}
	}
	for column := range add.PartitionValues {
		if !slices.Contains(h.metadata.PartitionColumns, column) {
			return fault.New(ErrInvalid, "partition value for a column the table is not partitioned by").
				InFile(add.Path).OnColumn(column)
		}
	}
	return nil
}
