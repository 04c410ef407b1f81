package writer

import (
	"strconv"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/google/uuid"
)

// BlindAppend reports whether the transaction only adds and has read nothing.
func (s *TxnSpec) BlindAppend() bool {
	if s.ReadWhole || len(s.ReadFiles) > 0 {
		return false
	}
	for _, a := range s.Actions {
		switch a.(type) {
		case *action.Remove, *action.CDC:
			return false
		}
	}
	return true
}

// changesData reports whether a file action changes the rows of the table.
// Without one, a transaction that moves files about only has to find its own
// input unchanged (snapshot isolation), so that compaction and appends pass
// each other.
func (s *TxnSpec) changesData() bool {
	files := false
	for _, a := range s.Actions {
		switch a := a.(type) {
		case *action.Add:
			if files = true; a.DataChange {
				return true
			}
		case *action.Remove:
			if files = true; a.DataChange {
				return true
			}
		case *action.CDC:
			return true
		}
	}
	return !files
}

// header is what decides how a version may be written. It is zero before
// version 0.
type header struct {
	protocol *action.Protocol
	metadata *action.Metadata
}

func (h header) config() map[string]string {
	if h.metadata == nil {
		return nil
	}
	return h.metadata.Configuration
}

// with is the header after the actions.
func (h header) with(actions []action.Action) header {
	for _, a := range actions {
		switch a := a.(type) {
		case *action.Protocol:
			h.protocol = a
		case *action.Metadata:
			h.metadata = a
		}
	}
	return h
}

// txn is a transaction on its way into the log: what it wants, and the version
// it would follow. It does no I/O; the committer feeds it every commit that
// came first, and then asks for the bytes to write.
type txn struct {
	spec *TxnSpec
	// id is commitInfo.txnId, the same in every attempt: it tells our commit
	// file from another's.
	id   string
	root string
	// version is the one to be written, base the header of the one before, and
	// floor the commit time of that in milliseconds (with in-commit timestamps).
	version int64
	base    header
	floor   int64
	// adds, removes and reads map canonical paths to logged ones.
	adds, removes, reads map[string]string
	// info is the commitInfo of the last attempt, or of the one that lies ready.
	info  *action.CommitInfo
	ready store.Draft
}

// newTxn checks the transaction against the rules that one commit must keep
// whatever the table looks like; the caller has checked that base can be
// written. root is the storage root.
func newTxn(spec *TxnSpec, base header, root string) (*txn, error) {
	t := &txn{
		spec:    spec,
		id:      uuid.NewString(),
		root:    root,
		version: spec.Base + 1,
		base:    base,
		adds:    map[string]string{},
		removes: map[string]string{},
		reads:   map[string]string{},
	}
	for _, p := range spec.ReadFiles {
		t.reads[snapshot.CanonicalPath(p, root)] = p
	}
	if err := t.checkInvariants(); err != nil {
		return nil, err
	}
	return t, nil
}

// inCommitTime reports whether the commit must carry its own time, and whether
// it is the one that turns this on for a table that lives already.
func (t *txn) inCommitTime() (on, enabling bool) {
	const key = "delta.enableInCommitTimestamps"
	on = isTrue(t.base.with(t.spec.Actions).config(), key)
	return on, on && t.version > 0 && !isTrue(t.base.config(), key)
}

// encode returns the commit file. now is in milliseconds.
func (t *txn) encode(now int64, engineInfo string) ([]byte, error) {
	on, enabling := t.inCommitTime()
	var commitTime *int64
	if on {
		at := max(now, t.floor+1)
		commitTime = &at
	}
	var err error
	if t.info, err = t.commitInfo(now, commitTime, engineInfo); err != nil {
		return nil, err
	}
	var out []byte
	for _, a := range append([]action.Action{t.info}, t.spec.Actions...) {
		if m, ok := a.(*action.Metadata); ok && enabling {
			a = withTimeOrigin(m, t.version, *commitTime)
		}
		line, err := action.Encode(a)
		if err != nil {
			return nil, fault.Wrap(ErrInvalid, err, "cannot encode a %s action", a.Kind())
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// withTimeOrigin records from when on the table has in-commit timestamps
// (protocol section "In-Commit Timestamps").
func withTimeOrigin(m *action.Metadata, version, commitTime int64) *action.Metadata {
	out := *m
	out.Configuration = make(map[string]string, len(m.Configuration)+2)
	for k, v := range m.Configuration {
		out.Configuration[k] = v
	}
	out.Configuration["delta.inCommitTimestampEnablementVersion"] = strconv.FormatInt(version, 10)
	out.Configuration["delta.inCommitTimestampEnablementTimestamp"] = strconv.FormatInt(commitTime, 10)
	return &out
}
