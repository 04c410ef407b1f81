package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json/jsontext"
)

// checkpointTable is a table whose log a test writes, and what a checkpoint of
// it holds by plain replay.
type checkpointTable struct {
	t     *testing.T
	dir   string
	st    *store.Local
	table *snapshot.Table
	// version is the last one.
	version int64
	model   map[string]action.Action
}

func newCheckpointTable(t *testing.T) *checkpointTable {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "_delta_log"), 0o755); err != nil {
		t.Fatal(err)
	}
	st, err := store.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &checkpointTable{t: t, dir: dir, st: st, version: -1, model: map[string]action.Action{}}
}

// modelKey identifies what an action is about.
func modelKey(root string, a action.Action) string {
	switch a := a.(type) {
	case *action.Txn:
		return "txn " + a.AppID
	case *action.DomainMetadata:
		return "domain " + a.Domain
	case *action.Add:
		return "file " + snapshot.CanonicalPath(a.Path, root) + " " + a.DVID()
	case *action.Remove:
		return "file " + snapshot.CanonicalPath(a.Path, root) + " " + a.DVID()
	}
	return a.Kind()
}

// commit writes the next version.
func (c *checkpointTable) commit(actions ...action.Action) *checkpointTable {
	c.t.Helper()
	c.version++
	var lines []byte
	for _, a := range append([]action.Action{&action.CommitInfo{Raw: jsontext.Value(`{"operation":"WRITE"}`)}}, actions...) {
		line, err := action.Encode(a)
		if err != nil {
			c.t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(filepath.Join(c.dir, snapshot.CommitName(c.version)), lines, 0o644); err != nil {
		c.t.Fatal(err)
	}
	for _, removes := range []bool{true, false} {
		for _, a := range actions {
			if _, ok := a.(*action.Add); ok != removes {
				c.model[modelKey(c.dir, a)] = a
			}
		}
	}
	return c
}

// open returns the table with the commits so far.
func (c *checkpointTable) open() *snapshot.Table {
	c.t.Helper()
	if c.table == nil {
		table, err := snapshot.Open(context.Background(), c.st, snapshot.Options{Name: "t"})
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { table.Close() })
		c.table = table
	}
	if _, err := c.table.Refresh(context.Background()); err != nil {
		c.t.Fatal(err)
	}
	return c.table
}

// checkpointer makes one with small limits, so that a few actions are many.
func (c *checkpointTable) checkpointer() *checkpointer {
	c.t.Helper()
	k := newCheckpointer(c.open(), Options{Logger: slog.New(slog.DiscardHandler)})
	k.limits = checkpointLimits{rows: 8, bytes: 1 << 20, changes: 5000}
	return k
}

// checkpoint writes a checkpoint of the last version.
func (c *checkpointTable) checkpoint() CheckpointResult {
	c.t.Helper()
	out, err := c.tryCheckpoint(c.checkpointer())
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *checkpointTable) tryCheckpoint(k *checkpointer) (CheckpointResult, error) {
	p, m, err := k.table.Header(context.Background(), c.version)
	if err != nil {
		c.t.Fatal(err)
	}
	return k.checkpoint(context.Background(), header{p, m}, c.version)
}

// want is the content that a checkpoint must have, as lines of JSON. now is in
// milliseconds.
func (c *checkpointTable) want(files, txns int64) []string {
	var out []string
	for _, a := range c.model {
		switch a := a.(type) {
		case *action.Remove:
			if a.DeletionTimestamp == nil || *a.DeletionTimestamp <= files {
				continue
			}
			kept := *a
			kept.DataChange, kept.Stats, kept.Tags, kept.Extra = false, "", nil, nil
			out = append(out, line(c.t, &kept))
		case *action.Add:
			kept := *a
			if kept.DataChange = false; kept.PartitionValues == nil {
				kept.PartitionValues = map[string]*string{}
			}
			out = append(out, line(c.t, &kept))
		case *action.Txn:
			if txns == never || a.LastUpdated != nil && *a.LastUpdated > txns {
				out = append(out, line(c.t, a))
			}
		case *action.DomainMetadata:
			if !a.Removed {
				out = append(out, line(c.t, a))
			}
		default:
			out = append(out, line(c.t, a))
		}
	}
	slices.Sort(out)
	return out
}

func line(t *testing.T, a action.Action) string {
	t.Helper()
	out, err := action.Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// content reads the classic checkpoint of a version.
func (c *checkpointTable) content(v int64) []string {
	c.t.Helper()
	return checkpointContent(c.t, c.st, v)
}

func checkpointContent(t *testing.T, st *store.Local, v int64) []string {
	t.Helper()
	f, err := os.Open(st.Path(snapshot.CheckpointName(v)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := snapshot.Open(context.Background(), st, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	k, err := table.OpenCheckpointDraft(context.Background(), f, v)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	out := []string{line(t, k.Protocol()), line(t, k.Metadata())}
	for _, txn := range k.Txns() {
		out = append(out, line(t, txn))
	}
	for _, d := range k.Domains() {
		out = append(out, line(t, d))
	}
	for _, g := range k.Groups() {
		for a, err := range g.Adds(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, line(t, a))
		}
		for r, err := range g.Removes(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, line(t, r))
		}
	}
	slices.Sort(out)
	return out
}

func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s: %d actions, want %d", what, len(got), len(want))
	for _, l := range got {
		if !slices.Contains(want, l) {
			t.Errorf("%s: too much: %s", what, l)
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			t.Errorf("%s: missing: %s", what, l)
		}
	}
}

const farFuture = int64(4102444800000)

func dvTable() (*action.Protocol, *action.Metadata) {
	p := &action.Protocol{
		MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"deletionVectors"},
		WriterFeatures: []string{"deletionVectors", "domainMetadata"},
	}
	m := testMetadata()
	m.PartitionColumns = []string{"k"}
	return p, m
}

// randomHistory appends a commit of random actions.
func (c *checkpointTable) randomCommit(rng *rand.Rand) {
	var out []action.Action
	if c.version < 0 {
		p, m := dvTable()
		out = append(out, p, m)
	} else if rng.IntN(12) == 0 {
		_, m := dvTable()
		m.Name, m.Description = ptr(fmt.Sprint("name ", c.version)), ptr("")
		m.Configuration["x"] = fmt.Sprint(c.version)
		out = append(out, m)
	}
	touched := map[string]bool{}
	live := []*action.Add{}
	for _, a := range c.model {
		if add, ok := a.(*action.Add); ok {
			live = append(live, add)
		}
	}
	slices.SortFunc(live, func(a, b *action.Add) int { return strings.Compare(a.Path+a.DVID(), b.Path+b.DVID()) })
	for range rng.IntN(6) {
		path := fmt.Sprint("k=a%20b/f", rng.IntN(60))
		if touched[path] || slices.ContainsFunc(live, func(a *action.Add) bool { return a.Path == path }) {
			continue
		}
		touched[path] = true
		out = append(out, randomAdd(rng, path))
	}
	for _, a := range live {
		switch r := rng.IntN(20); {
		case touched[a.Path]:
		case r == 0:
			touched[a.Path] = true
			remove := a.ToRemove(farFuture+int64(rng.IntN(3)), true)
			if rng.IntN(3) == 0 {
				remove.DeletionTimestamp = ptr(int64(rng.IntN(2)))
			}
			if rng.IntN(3) == 0 {
				remove.ExtendedFileMetadata, remove.PartitionValues, remove.Size = nil, nil, nil
			}
			out = append(out, remove)
		case r == 1:
			// Another deletion vector for the same file.
			touched[a.Path] = true
			next := *a
			next.DeletionVector = randomDV(rng)
			if next.DVID() == a.DVID() {
				continue
			}
			out = append(out, &next, a.ToRemove(farFuture, true))
		case r == 2:
			// Statistics are computed again.
			touched[a.Path] = true
			next := *a
			next.Stats, next.DataChange = fmt.Sprintf(`{"numRecords":%d}`, rng.IntN(9)), false
			out = append(out, &next)
		}
	}
	if rng.IntN(3) == 0 {
		txn := &action.Txn{AppID: fmt.Sprint("app", rng.IntN(4)), Version: rng.Int64N(9)}
		if rng.IntN(2) == 0 {
			txn.LastUpdated = ptr(rng.Int64N(2 * farFuture))
		}
		out = append(out, txn)
	}
	if rng.IntN(3) == 0 {
		out = append(out, &action.DomainMetadata{
			Domain: fmt.Sprint("domain", rng.IntN(3)), Configuration: fmt.Sprint(c.version), Removed: rng.IntN(3) == 0,
		})
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	c.commit(out...)
}

func randomAdd(rng *rand.Rand, path string) *action.Add {
	a := &action.Add{
		Path: path, PartitionValues: map[string]*string{"k": ptr("a b")}, Size: rng.Int64(), ModificationTime: rng.Int64(),
		DataChange: true,
	}
	switch rng.IntN(4) {
	case 0:
		a.PartitionValues = map[string]*string{"k": nil}
	case 1:
		a.PartitionValues = map[string]*string{"k": ptr(""), "other": ptr("ü\x00\n")}
	case 2:
		a.PartitionValues = nil
	}
	if a.Size = a.Size >> 20; rng.IntN(2) == 0 {
		a.Stats = fmt.Sprintf(`{"numRecords":%d,"maxValues":{"k":"%s"}}`, rng.IntN(100), strings.Repeat("é", rng.IntN(40)))
	}
	switch rng.IntN(4) {
	case 0:
		a.Tags = map[string]*string{}
	case 1:
		a.Tags = map[string]*string{"a": ptr("1"), "b": nil, "": ptr("")}
	}
	if rng.IntN(3) == 0 {
		a.DeletionVector = randomDV(rng)
	}
	if rng.IntN(3) == 0 {
		a.BaseRowID, a.DefaultRowCommitVersion = ptr(rng.Int64()), ptr(int64(0))
	}
	if rng.IntN(3) == 0 {
		a.ClusteringProvider = ptr("liquid")
	}
	return a
}

func randomDV(rng *rand.Rand) *action.DeletionVector {
	dv := &action.DeletionVector{StorageType: "i", PathOrInlineDV: fmt.Sprint("dv<>&", rng.IntN(3)), SizeInBytes: 40, Cardinality: rng.Int64()}
	if rng.IntN(2) == 0 {
		dv.Offset = ptr(int64(rng.IntN(3)))
	}
	if rng.IntN(2) == 0 {
		dv.Extra = jsontext.Value(`{"maxRowIndex":7}`)
	}
	return dv
}

// TestCheckpointsHoldWhatPlainReplayHolds takes each checkpoint from the one
// before, whose row groups are copied, sifted, merged and split.
func TestCheckpointsHoldWhatPlainReplayHolds(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			c := newCheckpointTable(t)
			copied := 0
			for range 50 {
				c.randomCommit(rng)
				if rng.IntN(5) > 0 {
					continue
				}
				out := c.checkpoint()
				old := time.Now().Add(-7 * day).UnixMilli()
				want := c.want(old, never)
				sameLines(t, fmt.Sprint("version ", c.version), c.content(c.version), want)
				if !out.Written || out.Actions != int64(len(want)) {
					t.Errorf("version %d: %+v, want %d actions", c.version, out, len(want))
				}
				copied++
			}
			if copied < 3 {
				t.Errorf("only %d checkpoints", copied)
			}
		})
	}
}

// TestSnapshotsAreTheSameWithTheCheckpointAlone opens tables that have lost the
// commits.
func TestSnapshotsAreTheSameWithTheCheckpointAlone(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata())
	for v := range 30 {
		actions := []action.Action{testAdd(fmt.Sprintf("f%d", v))}
		if v%3 == 2 {
			actions = append(actions, testRemove(fmt.Sprintf("f%d", v-1)))
		}
		c.commit(append(actions, &action.Txn{AppID: "app", Version: int64(v)})...)
	}
	before := c.files(c.version)
	c.checkpoint()
	for v := range c.version + 1 {
		if err := os.Remove(c.st.Path(snapshot.CommitName(v))); err != nil {
			t.Fatal(err)
		}
	}
	c.table = nil
	if after := c.files(c.version); !slices.Equal(before, after) || len(before) != 20 {
		t.Errorf("%d files with the checkpoint alone, %d without it", len(after), len(before))
	}
	s, err := c.open().At(context.Background(), c.version)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := s.Txn("app"); !ok || v != 29 {
		t.Errorf("the application is at %d, %v", v, ok)
	}
}

// files lists the adds of a version, as lines of JSON without dataChange.
func (c *checkpointTable) files(v int64) []string {
	c.t.Helper()
	s, err := c.open().At(context.Background(), v)
	if err != nil {
		c.t.Fatalf("version %d: %v", v, err)
	}
	var out []string
	for f, err := range s.AllAdds(context.Background()) {
		if err != nil {
			c.t.Fatalf("version %d: %v", v, err)
		}
		add := *f.Add
		add.DataChange = false
		out = append(out, line(c.t, &add))
	}
	slices.Sort(out)
	return out
}

func TestCheckpointForgetsWhatHasExpired(t *testing.T) {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	at := func(age time.Duration) *int64 { return ptr(now.Add(-age).UnixMilli()) }
	for _, tt := range []struct {
		name   string
		config []string
		want   string
	}{
		{"a week by default", nil, "new old6 txn-new txn-none txn-old"},
		{"the property", []string{"delta.deletedFileRetentionDuration", "interval 1 day"}, "new txn-new txn-none txn-old"},
		{"transactions", []string{"delta.setTransactionRetentionDuration", "interval 2 days"}, "new old6 txn-new"},
		{"another case", []string{"delta.DeletedFileRetentionDuration", "30 days"}, "new old6 old8 txn-new txn-none txn-old"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCheckpointTable(t)
			c.commit(testProtocol(1, 2), testMetadata(tt.config...), testAdd("never"), testAdd("new"), testAdd("old6"), testAdd("old8"))
			for name, age := range map[string]*int64{"never": nil, "new": at(time.Hour), "old6": at(6 * day), "old8": at(8 * day)} {
				r := testRemove(name)
				r.DeletionTimestamp = age
				c.commit(r)
			}
			c.commit(&action.Txn{AppID: "txn-new", LastUpdated: at(time.Hour)}, &action.Txn{AppID: "txn-old", LastUpdated: at(2 * day)},
				&action.Txn{AppID: "txn-none"})
			k := c.checkpointer()
			k.now = func() time.Time { return now }
			if _, err := c.tryCheckpoint(k); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range c.content(c.version) {
				a, err := action.Decode([]byte(l))
				if err != nil {
					t.Fatal(err)
				}
				switch a := a.(type) {
				case *action.Remove:
					got = append(got, a.Path)
				case *action.Txn:
					got = append(got, a.AppID)
				}
			}
			slices.Sort(got)
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("the checkpoint has %q, want %q", text, tt.want)
			}
		})
	}
}

// TestNoCheckpointOfWhatItWouldLose: the log stays as it is, and says why.
func TestNoCheckpointOfWhatItWouldLose(t *testing.T) {
	extra := testAdd("a")
	extra.Extra = jsontext.Value(`{"future":[1]}`)
	empty := testAdd("a")
	empty.Extra = jsontext.Value(`{"future":null}`)
	inVector := testAdd("a")
	inVector.DeletionVector = &action.DeletionVector{StorageType: "i", PathOrInlineDV: "x", Extra: jsontext.Value(`{"maxRowIndex":1,"more":1}`)}
	wide := testAdd("a")
	wide.DeletionVector = &action.DeletionVector{StorageType: "u", PathOrInlineDV: "x", Offset: ptr(int64(1) << 40)}
	protocol := testProtocol(1, 2)
	protocol.Extra = jsontext.Value(`{"more":1}`)
	removed := testRemove("b")
	removed.Extra = jsontext.Value(`{"more":1}`)
	for _, tt := range []struct {
		name   string
		action action.Action
		want   string // "" for none
	}{
		{"unknown action", &action.Unknown{Name: "future", Raw: jsontext.Value(`{"a":1}`)}, `"future"`},
		{"sidecar", &action.Sidecar{Path: "x"}, `"sidecar"`},
		{"unknown member", extra, "add.future"},
		{"null member", empty, ""},
		{"unknown member of a deletion vector", inVector, "deletionVector.more"},
		{"offset that does not fit", wide, "deletionVector.offset"},
		{"unknown member of the protocol", protocol, "protocol.more"},
		{"unknown member of a removed file", removed, ""},
		{"change data", &action.CDC{Path: "_change_data/c"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata(), testAdd("b")).commit(tt.action)
			_, err := c.tryCheckpoint(c.checkpointer())
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrNoCheckpoint) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want ErrNoCheckpoint with %s", err, tt.want)
			}
			c.wantLog("00000000000000000000.json 00000000000000000001.json")
		})
	}
}

// wantLog compares the names in the log.
func (c *checkpointTable) wantLog(want string) {
	c.t.Helper()
	if got := c.logNames(); got != want {
		c.t.Errorf("the log has %q, want %q", got, want)
	}
}

func (c *checkpointTable) logNames() string {
	c.t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.dir, "_delta_log"))
	if err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestPropertiesThatForbidCheckpoints(t *testing.T) {
	v2 := &action.Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"v2Checkpoint"}, WriterFeatures: []string{"v2Checkpoint"}}
	protection := testProtocol(1, 7, "checkpointProtection")
	for _, tt := range []struct {
		name     string
		protocol *action.Protocol
		config   []string
		want     error
	}{
		{"V2 policy", v2, []string{"delta.checkpointPolicy", "v2"}, ErrNoCheckpoint},
		{"classic policy", v2, []string{"delta.checkpointPolicy", "classic"}, nil},
		{"no policy", v2, nil, nil},
		{"protected version", protection, []string{"delta.requireCheckpointProtectionBeforeVersion", "1"}, ErrNoCheckpoint},
		{"after the protected versions", protection, []string{"delta.requireCheckpointProtectionBeforeVersion", "0"}, nil},
		{"unreadable protection", protection, []string{"delta.requireCheckpointProtectionBeforeVersion", "x"}, ErrNoCheckpoint},
		{"unknown writer feature", testProtocol(1, 7, "sparkle"), nil, ErrReadOnly},
		{"catalog", testProtocol(1, 7, "catalogManaged"), nil, ErrReadOnly},
		{"no duration", testProtocol(1, 2), []string{"delta.deletedFileRetentionDuration", "a while"}, ErrNoCheckpoint},
		{"months", testProtocol(1, 2), []string{"delta.setTransactionRetentionDuration", "interval 1 month"}, ErrNoCheckpoint},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCheckpointTable(t).commit(tt.protocol, testMetadata(tt.config...))
			if _, err := c.tryCheckpoint(c.checkpointer()); !errors.Is(err, tt.want) || (err != nil) != (tt.want != nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestCheckpointIsNotReplaced: another writer's of the same version is as good.
func TestCheckpointIsNotReplaced(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata(), testAdd("a"))
	c.checkpoint()
	before, err := os.ReadFile(c.st.Path(snapshot.CheckpointName(0)))
	if err != nil {
		t.Fatal(err)
	}
	if out := c.checkpoint(); out.Written {
		t.Error("written again")
	}
	// It may also come while ours is being made.
	if err := os.Remove(c.st.Path(snapshot.CheckpointName(0))); err != nil {
		t.Fatal(err)
	}
	k := c.withStore(func(op, name string) error {
		if op == "Publish" {
			return os.WriteFile(c.st.Path(name), before, 0o644)
		}
		return nil
	}).checkpointer()
	if out, err := c.tryCheckpoint(k); err != nil || out.Written {
		t.Errorf("%+v, %v", out, err)
	}
	after, err := os.ReadFile(c.st.Path(snapshot.CheckpointName(0)))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the other writer's checkpoint was replaced: %v", err)
	}
}

// hookedStore calls a hook before what a checkpoint asks of the storage.
type hookedStore struct {
	*store.Local
	hook func(op, name string) error
}

func (s *hookedStore) Stage(ctx context.Context, name string) (*os.File, error) {
	if err := s.hook("Stage", name); err != nil {
		return nil, err
	}
	return s.Local.Stage(ctx, name)
}

func (s *hookedStore) Publish(ctx context.Context, f *os.File, name string) error {
	if err := s.hook("Publish", name); err != nil {
		return err
	}
	return s.Local.Publish(ctx, f, name)
}

func (s *hookedStore) Put(ctx context.Context, name string, data []byte) error {
	if err := s.hook("Put", name); err != nil {
		return err
	}
	return s.Local.Put(ctx, name, data)
}

func (s *hookedStore) Delete(ctx context.Context, name string) error {
	if err := s.hook("Delete", name); err != nil {
		return err
	}
	return s.Local.Delete(ctx, name)
}

// withStore is the same table whose storage has a hook.
func (c *checkpointTable) withStore(hook func(op, name string) error) *checkpointTable {
	c.t.Helper()
	table, err := snapshot.Open(context.Background(), &hookedStore{c.st, hook}, snapshot.Options{Name: "t"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { table.Close() })
	out := *c
	out.table = table
	return &out
}

// TestTableMadeAgainGetsNoCheckpointOfTheOldOne: nothing tells the two apart
// but the identity of their commits.
func TestTableMadeAgainGetsNoCheckpointOfTheOldOne(t *testing.T) {
	c := newCheckpointTable(t)
	c.commit(testProtocol(1, 2), testMetadata(), testAdd("a")).commit(testAdd("b"))
	k := c.withStore(func(op, name string) error {
		if op == "Stage" {
			again := &checkpointTable{t: t, dir: c.dir, version: -1, model: map[string]action.Action{}}
			for v := range int64(2) {
				if err := os.Remove(c.st.Path(snapshot.CommitName(v))); err != nil {
					return err
				}
			}
			again.commit(testProtocol(1, 2), testMetadata(), testAdd("other"))
		}
		return nil
	}).checkpointer()
	if _, err := c.tryCheckpoint(k); !errors.Is(err, snapshot.ErrNoVersion) {
		t.Errorf("got %v", err)
	}
	c.wantLog("00000000000000000000.json")
}

// TestWrongCheckpointIsNotPublished: what is read back counts.
func TestWrongCheckpointIsNotPublished(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata(), testAdd("a")).commit(testAdd("b"))
	ctx := context.Background()
	b := &checkpointBuilder{table: c.open(), version: 1, limits: defaultCheckpointLimits}
	d, err := b.build(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := b.verify(ctx, d); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(d *checkpointDraft){
		"files": func(d *checkpointDraft) { d.totals.Files++ },
		"bytes": func(d *checkpointDraft) { d.totals.Bytes-- },
		"rows":  func(d *checkpointDraft) { d.rows++ },
	} {
		wrong := *d
		spoil(&wrong)
		if err := b.verify(ctx, &wrong); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The index knows the version by another way.
	if _, err := c.open().At(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.verify(ctx, d); err != nil {
		t.Fatal(err)
	}
	d.version = 0
	if _, err := c.open().At(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.verify(ctx, d); !errors.Is(err, ErrInvalid) {
		t.Errorf("another version's files: %v", err)
	}
}
