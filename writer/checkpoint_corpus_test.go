package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json/jsontext"
)

// TestCheckpointsOfThirdPartyTables makes checkpoints of the first version that
// the table has, of the last one and of some between, each after the one before and the first from a checkpoint of
// whatever engine wrote it, and compares it with plain replay. Statistics count
// by what they say.
func TestCheckpointsOfThirdPartyTables(t *testing.T) {
	root := os.Getenv("DELTAFS_TABLES")
	if root == "" {
		t.Skip("DELTAFS_TABLES is not set: it names the folder with the test tables")
	}
	logs, err := filepath.Glob(filepath.Join(root, "data", "*", "*", "_delta_log"))
	if err != nil {
		t.Fatal(err)
	}
	var made, refused, foreign int
	for _, log := range logs {
		if filepath.Base(filepath.Dir(log)) == "multibatchCheckpointWithRemove" {
			continue // its checkpoint has one file thousands of times
		}
		t.Run(filepath.Base(filepath.Dir(log)), func(t *testing.T) {
			c := &checkpointTable{t: t, dir: t.TempDir()}
			if err := copyTree(log, filepath.Join(c.dir, "_delta_log")); err != nil {
				t.Fatal(err)
			}
			if c.st, err = store.OpenLocal(c.dir); err != nil {
				t.Fatal(err)
			}
			table, err := snapshot.Open(t.Context(), c.st, snapshot.Options{})
			if errors.Is(err, snapshot.ErrNotTable) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			spans, err := table.Versions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range spans {
				for v := s.First; v <= s.Last; v++ {
					if v != s.First && v != s.Last && v%5 != 0 {
						continue
					}
					fromForeign, err := checkpointOf(t, c, table, v)
					switch {
					case err == nil:
						made++
						if fromForeign {
							foreign++
						}
					case errors.Is(err, ErrNoCheckpoint), errors.Is(err, snapshot.ErrUnsupported), errors.Is(err, snapshot.ErrCorrupt),
						errors.Is(err, snapshot.ErrNoVersion):
						refused++
						t.Logf("version %d: %v", v, err)
						return
					default:
						t.Errorf("version %d: %v", v, err)
					}
				}
			}
		})
	}
	t.Logf("%d checkpoints, %d of them from other engines' ones; %d tables refused", made, foreign, refused)
	if made < 350 || foreign < 20 {
		t.Errorf("only %d checkpoints, %d of them from other engines' ones", made, foreign)
	}
}

// checkpointOf checks the checkpoint of one version, which another engine's
// gives way to.
func checkpointOf(t *testing.T, c *checkpointTable, table *snapshot.Table, v int64) (fromForeign bool, err error) {
	t.Helper()
	ctx := context.Background()
	if err := table.Relist(ctx); err != nil {
		return false, err
	}
	var base int64
	if c.model, base, err = plainReplay(ctx, c, table, v); err != nil {
		return false, err
	}
	b := &checkpointBuilder{table: table, version: v, tooOld: tooOld{0, never}, limits: checkpointLimits{rows: 16, bytes: 1 << 20, changes: 1 << 20}}
	d, err := b.build(ctx)
	if err != nil {
		return false, err
	}
	defer d.close()
	if err := b.verify(ctx, d); err != nil {
		t.Errorf("version %d: %v", v, err)
	}
	name := snapshot.CheckpointName(v)
	if err := c.st.Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := c.st.Publish(ctx, d.file, name); err != nil {
		t.Fatal(err)
	}
	config := c.model["metaData"].(*action.Metadata).Configuration
	stats := !isOff(config, "delta.checkpoint.writeStatsAsJson") || !isOff(config, "delta.checkpoint.writeStatsAsStruct")
	sameLines(t, fmt.Sprint("version ", v), likeLines(t, c.content(v), stats), likeLines(t, c.want(0, never), stats))
	return base >= 0 && v == base, nil
}

// plainReplay reads the checkpoint before a version and the commits after it,
// and keeps the last action of everything.
func plainReplay(ctx context.Context, c *checkpointTable, table *snapshot.Table, v int64) (map[string]action.Action, int64, error) {
	out := map[string]action.Action{}
	put := func(a action.Action) {
		switch a.(type) {
		case *action.CommitInfo, *action.CDC:
		default:
			out[modelKey(c.dir, a)] = a
		}
	}
	base, err := table.OpenCheckpoint(ctx, v)
	if err != nil {
		return nil, 0, err
	}
	next := int64(0)
	if base != nil {
		defer base.Close()
		next = base.Version() + 1
		put(base.Protocol())
		put(base.Metadata())
		for _, txn := range base.Txns() {
			put(txn)
		}
		for _, d := range base.Domains() {
			put(d)
		}
		for _, g := range base.Groups() {
			for r, err := range g.Removes(ctx) {
				if err != nil {
					return nil, 0, err
				}
				put(r)
			}
			for a, err := range g.Adds(ctx) {
				if err != nil {
					return nil, 0, err
				}
				put(a)
			}
		}
	}
	for ; next <= v; next++ {
		actions, err := table.ReadCommit(ctx, next)
		if err != nil {
			return nil, 0, err
		}
		for _, adds := range []bool{false, true} {
			for _, a := range actions {
				if _, ok := a.(*action.Add); ok == adds {
					put(a)
				}
			}
		}
	}
	if base == nil {
		return out, -1, nil
	}
	return out, base.Version(), nil
}

// likeLines spells what means the same alike: the members of statistics, and
// members that are null. A file that was removed more than once counts once.
func likeLines(t *testing.T, lines []string, stats bool) []string {
	t.Helper()
	var out []string
	for _, l := range lines {
		a, err := action.Decode([]byte(l))
		if err != nil {
			t.Fatal(err)
		}
		switch a := a.(type) {
		case *action.Add:
			if !stats {
				a.Stats = ""
			}
			if jsontext.Value(a.Stats).IsValid() {
				a.Stats = canonical(t, a.Stats)
			}
			if unknownMember(a.Extra) == "" {
				a.Extra = nil
			}
		case *action.Remove:
			a.DeletionTimestamp = nil
		}
		out = append(out, line(t, a))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
