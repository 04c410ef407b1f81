package snapshot

import (
	"context"
	"fmt"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
)

// What whoever looks after the log asks of a table.

// CheckpointName is the name in the table's storage of a version's classic
// checkpoint.
func CheckpointName(version int64) string {
	return fmt.Sprintf("%s/%020d.checkpoint.parquet", logDir, version)
}

// CheckpointBefore returns the newest version up to v that has a complete
// checkpoint, as the log was last listed; false if there is none.
func (t *Table) CheckpointBefore(v int64) (int64, bool) {
	life, err := t.current()
	if err != nil {
		return 0, false
	}
	for _, c := range life.log().checkpointsUpTo(v) {
		return c.version, true
	}
	return 0, false
}

// IndexedTotals sums up the files of version v if that costs no I/O; false if
// it would.
func (t *Table) IndexedTotals(ctx context.Context, v int64) (metacache.Totals, bool) {
	life, err := t.current()
	if err != nil || life.opened() == nil || !life.covers(v) {
		return metacache.Totals{}, false
	}
	totals, err := life.opened().Totals(ctx, v)
	return totals, err == nil
}

// Relist lists the log anew: what others and this process did to it, checkpoints
// included, is known then.
func (t *Table) Relist(ctx context.Context) error { return t.relisted(ctx) }

// SameLog returns an error unless the log at the path is that of the table that
// Incarnation identified: what was made for one table must not get into
// another.
func (t *Table) SameLog(ctx context.Context, incarnation any) error {
	life, err := t.current()
	same := false
	if err == nil && any(life) == incarnation {
		same, err = t.isSame(ctx, life.log().lastFile())
	}
	if err == nil && !same {
		err = fault.Wrap(ErrNoVersion, errReplaced, "the table was deleted or made again meanwhile")
	}
	return t.fault(err)
}
