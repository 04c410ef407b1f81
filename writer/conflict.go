package writer

import (
	"fmt"
	"slices"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// winner is a commit that took the version we wanted.
type winner struct {
	version int64
	info    *action.CommitInfo
	actions []action.Action
	// adds and removes are its file actions, by path.
	adds, removes []filePath
}

// filePath is a path as logged and in its canonical form.
type filePath struct{ logged, canonical string }

func newWinner(version int64, actions []action.Action, root string) *winner {
	w := &winner{version: version, actions: actions}
	for _, a := range actions {
		switch a := a.(type) {
		case *action.CommitInfo:
			if w.info == nil {
				w.info = a
			}
		case *action.Add:
			w.adds = append(w.adds, filePath{a.Path, snapshot.CanonicalPath(a.Path, root)})
		case *action.Remove:
			w.removes = append(w.removes, filePath{a.Path, snapshot.CanonicalPath(a.Path, root)})
		}
	}
	return w
}

// operation describes the winner for a message, as far as it tells.
func (w *winner) operation() string {
	if w.info == nil {
		return "a commit of unknown origin"
	}
	op, ok := w.info.Operation()
	if !ok {
		op = "a commit"
	}
	if engine, ok := w.info.EngineInfo(); ok {
		return op + " by " + engine
	}
	return op
}

// conflict is an ErrConflict that names the winner. file is "" if the conflict
// is not about one file.
func (w *winner) conflict(file, format string, args ...any) error {
	return fault.New(ErrConflict, "%s %s", w.operation(), fmt.Sprintf(format, args...)).
		AtVersion(w.version).InFile(file).WithHint("look at the new version and do it again")
}

// each calls check with the winner's actions of one type until it fails.
func each[A action.Action](w *winner, check func(A) error) error {
	for _, a := range w.actions {
		if a, ok := a.(A); ok {
			if err := check(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// rebase moves the transaction behind the commit that took its version, or
// says why it cannot. The checks are those of Serializable isolation, in the
// order in which Spark makes them, so that engines that share a table agree.
func (t *txn) rebase(w *winner) error {
	base, err := t.adoptHeader(w)
	if err != nil {
		return err
	}
	for _, check := range []func(*winner) error{t.checkDomains, t.checkApps, t.checkAdded, t.checkRemoved} {
		if err := check(w); err != nil {
			return err
		}
	}
	t.base = base
	t.version++
	if w.info != nil {
		if at, ok := w.info.InCommitTimestamp(); ok {
			t.floor = max(t.floor, at)
		}
	}
	return nil
}

// adoptHeader returns the header that the transaction would follow.
func (t *txn) adoptHeader(w *winner) (header, error) {
	after := t.base.with(w.actions)
	if err := each(w, func(p *action.Protocol) error { return t.checkProtocol(w, p) }); err != nil {
		return header{}, err
	}
	if err := each(w, func(m *action.Metadata) error { return t.checkMetadata(w, m) }); err != nil {
		return header{}, err
	}
	if after != t.base {
		if err := checkWritable(after); err != nil {
			return header{}, fault.Wrap(ErrConflict, err, "%s made the table unwritable", w.operation()).AtVersion(w.version)
		}
	}
	return after, nil
}

func (t *txn) checkProtocol(w *winner, p *action.Protocol) error {
	if t.base.protocol == nil || t.carries("protocol") {
		return w.conflict("", "set the protocol too")
	}
	old, now := featuresOf(t.base.protocol), featuresOf(p)
	for feature := range old {
		if !now[feature] {
			return w.conflict("", "dropped the table feature %s", feature)
		}
	}
	for feature := range now {
		if !old[feature] && !harmlessUpgrade(feature) {
			return w.conflict("", "added the table feature %s", feature)
		}
	}
	return nil
}

// checkMetadata lets a change pass that has no say in what a file must look
// like; anything else may make our files wrong.
func (t *txn) checkMetadata(w *winner, m *action.Metadata) error {
	if t.base.metadata == nil || t.carries("metaData") {
		return w.conflict("", "set the table's metadata too")
	}
	old := t.base.metadata
	if old.ID != m.ID || old.SchemaString != m.SchemaString || old.Format.Provider != m.Format.Provider ||
		!slices.Equal(old.PartitionColumns, m.PartitionColumns) {
		return w.conflict("", "changed the table's schema or identity")
	}
	for _, pair := range [][2]map[string]string{{old.Configuration, m.Configuration}, {m.Configuration, old.Configuration}} {
		for key, value := range pair[0] {
			if other, ok := pair[1][key]; (!ok || other != value) && !harmlessProperty(key) {
				return w.conflict("", "changed the table property %s", key)
			}
		}
	}
	return nil
}

// harmlessProperty lists the properties whose change no transaction has to
// notice but through the header it follows.
func harmlessProperty(key string) bool {
	switch key {
	case "delta.checkpointPolicy",
		"delta.enableDeletionVectors",
		"delta.enableInCommitTimestamps",
		"delta.inCommitTimestampEnablementVersion",
		"delta.inCommitTimestampEnablementTimestamp":
		return true
	}
	return false
}

// carries reports whether the transaction has an action of the kind.
func (t *txn) carries(kind string) bool {
	return slices.ContainsFunc(t.spec.Actions, func(a action.Action) bool { return a.Kind() == kind })
}

func (t *txn) checkDomains(w *winner) error {
	return each(w, func(theirs *action.DomainMetadata) error {
		for _, a := range t.spec.Actions {
			if ours, ok := a.(*action.DomainMetadata); ok && ours.Domain == theirs.Domain {
				return w.conflict("", "set the domain metadata %q too", theirs.Domain)
			}
		}
		return nil
	})
}

// checkApps protects exactly-once writes. Whoever records an application's
// progress rests on what it read of it.
func (t *txn) checkApps(w *winner) error {
	return each(w, func(theirs *action.Txn) error {
		if slices.Contains(t.spec.AppIDs, theirs.AppID) {
			return w.conflict("", "recorded the application %q too", theirs.AppID)
		}
		for _, a := range t.spec.Actions {
			if ours, ok := a.(*action.Txn); ok && ours.AppID == theirs.AppID {
				return w.conflict("", "recorded the application %q too", theirs.AppID)
			}
		}
		return nil
	})
}

func (t *txn) checkAdded(w *winner) error {
	serializable := t.spec.changesData()
	for _, add := range w.adds {
		if _, ok := t.adds[add.canonical]; ok {
			return w.conflict(add.logged, "added this file too")
		}
		if t.spec.ReadWhole && serializable {
			return w.conflict(add.logged, "added a file to the table that was read as a whole")
		}
	}
	return nil
}

// checkRemoved compares paths alone: a new deletion vector removes the file in
// its old form, and a decision that rests on the old rows is void.
func (t *txn) checkRemoved(w *winner) error {
	for _, remove := range w.removes {
		if _, ok := t.removes[remove.canonical]; ok {
			return w.conflict(remove.logged, "removed this file first")
		}
		if _, ok := t.reads[remove.canonical]; ok || t.spec.ReadWhole {
			return w.conflict(remove.logged, "removed a file that was read")
		}
		if _, ok := t.adds[remove.canonical]; ok {
			return w.conflict(remove.logged, "removed the file that was to be added again")
		}
	}
	return nil
}
