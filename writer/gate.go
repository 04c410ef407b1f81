package writer

import (
	"sync"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

// The newest protocol versions that are understood. From these on, lists name
// the features (protocol section "Table Features").
const (
	maxReaderVersion = 3
	maxWriterVersion = 7
)

// gate remembers the verdict on the latest header.
type gate struct {
	mu      sync.Mutex
	header  header
	verdict error
}

func (g *gate) check(h header) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.header != h {
		g.header, g.verdict = h, checkWritable(h)
	}
	return g.verdict
}

// checkWritable returns nil, or an ErrReadOnly that names what the table asks
// of a writer and this program cannot give. A feature that is only allowed
// and not in use does not count.
func checkWritable(h header) error {
	p := h.protocol
	if p.MinReaderVersion > maxReaderVersion || p.MinWriterVersion > maxWriterVersion {
		return fault.New(ErrReadOnly, "the table needs protocol version (%d,%d), newer than (%d,%d)",
			p.MinReaderVersion, p.MinWriterVersion, maxReaderVersion, maxWriterVersion).
			WithHint("use a newer deltafs, or the engine that wrote the table")
	}
	for _, find := range []func(header) *fault.Error{featureObstacle, propertyObstacle, columnObstacle} {
		if e := find(h); e != nil {
			return e
		}
	}
	return nil
}

// featuresOf returns the features that a protocol supports: those it lists,
// or those that its version implies (protocol section "Feature Names").
func featuresOf(p *action.Protocol) map[string]bool {
	out := map[string]bool{}
	if p.MinWriterVersion >= maxWriterVersion {
		for _, f := range p.WriterFeatures {
			out[f] = true
		}
	} else {
		implied := []struct {
			version  int
			features []string
		}{
			{2, []string{"appendOnly", "invariants"}},
			{3, []string{"checkConstraints"}},
			{4, []string{"changeDataFeed", "generatedColumns"}},
			{5, []string{"columnMapping"}},
			{6, []string{"identityColumns"}},
		}
		for _, i := range implied {
			if p.MinWriterVersion >= i.version {
				for _, f := range i.features {
					out[f] = true
				}
			}
		}
	}
	for _, f := range p.ReaderFeatures {
		out[f] = true
	}
	return out
}

// harmlessUpgrade reports whether a transaction decided before a table got
// the feature may still commit after it. Others ask something of every file
// or value that the transaction did not know about.
func harmlessUpgrade(feature string) bool {
	switch feature {
	case "appendOnly", "changeDataFeed", "columnMapping", "timestampNtz", "deletionVectors", "rowTracking",
		"domainMetadata", "icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "v2Checkpoint",
		"catalogManaged", "typeWidening", "inCommitTimestamp", "vacuumProtocolCheck":
		return true
	}
	return false
}

func errMountReadOnly() error {
	return fault.New(ErrReadOnly, "the mount is read-only").WithHint("mount without --read-only")
}

// checkAppendOnly refuses removals that the table or the mount forbids
// (protocol section "Append-only Tables"). The table's property lets files be
// rearranged, the mount does not.
func checkAppendOnly(h header, mount bool, spec *TxnSpec) error {
	table := isTrue(h.config(), "delta.appendOnly") || isTrue(h.config(), "appendOnly")
	for _, a := range spec.Actions {
		r, ok := a.(*action.Remove)
		switch {
		case !ok:
		case mount:
			return fault.New(ErrAppendOnly, "the mount only appends").InFile(r.Path).
				WithHint("mount without --append-only")
		case table && r.DataChange:
			return fault.New(ErrAppendOnly, "the table has the property delta.appendOnly").InFile(r.Path).
				WithHint("set delta.appendOnly to false to remove or replace data")
		}
	}
	return nil
}
