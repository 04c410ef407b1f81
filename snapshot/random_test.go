package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
)

// TestRandomHistoriesMatchPlainReplay compares versions, asked for in any order
// while the log grows and is cleaned up, with a model: whatever mixture of
// commits, checkpoints, versions at hand and caches a version is built from, it
// must be the same.
func TestRandomHistoriesMatchPlainReplay(t *testing.T) {
	for seed := range uint64(45) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			h := newRandomHistory(t, rng)
			switch seed % 3 {
			case 1:
				h.cache = &keptCache{}
			case 2:
				h.cache = metacache.OpenCache(metacache.CacheOptions{Dir: t.TempDir(), Size: 1 << 30, MinFiles: 1})
			}
			t.Cleanup(func() { h.table.Close() })
			h.publish(1 + rng.IntN(10))
			h.reopen()
			for range 60 {
				switch rng.IntN(12) {
				case 0, 1, 2:
					h.publish(rng.IntN(20))
					refresh(t, h.table)
				case 3:
					h.reopen()
				case 4:
					h.cleanUp()
				default:
					h.check(rng.IntN(h.published))
				}
			}
		})
	}
}

// randomHistory is a log that is written step by step, and what each version
// of it holds.
type randomHistory struct {
	*fixture
	rng       *rand.Rand
	versions  []randomVersion
	published int
	table     *Table
	cache     Cache
}

type randomVersion struct {
	lines       []string
	files       map[string]int // their sizes by path
	partitioned bool
	txn         int64
	checkpoint  bool
	// gone is set when the log no longer goes back to the version.
	gone bool
}

func newRandomHistory(t *testing.T, rng *rand.Rand) *randomHistory {
	h := &randomHistory{fixture: newFixture(t), rng: rng}
	last := randomVersion{files: map[string]int{}}
	for v := range 80 {
		last = h.next(v, last)
		h.versions = append(h.versions, last)
	}
	return h
}

func (h *randomHistory) next(v int, before randomVersion) randomVersion {
	rng := h.rng
	now := randomVersion{
		files: maps.Clone(before.files), partitioned: before.partitioned, txn: before.txn,
		lines: []string{`{"commitInfo":{}}`}, checkpoint: rng.IntN(9) == 0,
	}
	if v == 0 {
		now.lines = append(now.lines, protocolLine)
	}
	if v == 0 || rng.IntN(25) == 0 {
		now.partitioned = rng.IntN(2) == 0
		now.lines = append(now.lines, metadataLine(strings.Join(now.partitionColumns(), ",")))
	}
	if rng.IntN(4) == 0 {
		now.txn = int64(v)
		now.lines = append(now.lines, fmt.Sprintf(`{"txn":{"appId":"app","version":%d}}`, v))
	}
	for _, i := range rng.Perm(12)[:rng.IntN(4)] {
		name := fmt.Sprint("f", i)
		if _, live := now.files[name]; live && rng.IntN(3) > 0 {
			now.lines = append(now.lines, removeLine(name))
			delete(now.files, name)
			continue
		}
		now.files[name] = v + 1
		now.lines = append(now.lines, strings.Replace(addPartition(name, "x"+name), `"size":1`, fmt.Sprint(`"size":`, v+1), 1))
	}
	rng.Shuffle(len(now.lines), func(i, j int) { now.lines[i], now.lines[j] = now.lines[j], now.lines[i] })
	return now
}

func (v *randomVersion) partitionColumns() []string {
	if v.partitioned {
		return []string{`"k"`}
	}
	return nil
}

// publish writes the next versions.
func (h *randomHistory) publish(n int) {
	for ; n > 0 && h.published < len(h.versions); n-- {
		v := h.versions[h.published]
		h.commit(int64(h.published), v.lines...)
		if v.checkpoint {
			writeCheckpoint(h.t, h.fixture, int64(h.published), h.rows(v)...)
		}
		h.published++
	}
}

func (h *randomHistory) rows(v randomVersion) []checkpointRow {
	metadata := plainMetadata()
	if v.partitioned {
		metadata.PartitionColumns = []string{"k"}
	}
	rows := []checkpointRow{{Protocol: plainProtocol()}, {Metadata: metadata}, {Remove: &removeRow{"f0"}}}
	if v.txn > 0 {
		rows = append(rows, checkpointRow{Txn: &txnRow{"app", v.txn}})
	}
	for name, size := range v.files {
		add := plainAdd(name)
		add.Size, add.PartitionValues = int64(size), map[string]*string{"k": text("x" + name)}
		rows = append(rows, checkpointRow{Add: add})
	}
	h.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// cleanUp removes the commits before a checkpoint, and some of the checkpoints.
func (h *randomHistory) cleanUp() {
	newest := -1
	for v := range h.published {
		if h.versions[v].checkpoint && !h.versions[v].gone && h.rng.IntN(3) > 0 {
			newest = v
		}
	}
	for v := range newest {
		if h.exists(CommitName(int64(v))) {
			h.remove(CommitName(int64(v)))
		}
		if h.exists(checkpointName(int64(v))) && h.rng.IntN(2) == 0 {
			h.remove(checkpointName(int64(v)))
		}
		h.versions[v].gone = !h.exists(checkpointName(int64(v)))
	}
}

func (h *randomHistory) reopen() {
	if h.table != nil {
		if err := h.table.Close(); err != nil {
			h.t.Fatal(err)
		}
	}
	st, err := store.OpenLocal(h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	if h.table, err = Open(context.Background(), st, Options{Name: "t", Cache: h.cache}); err != nil {
		h.t.Fatal(err)
	}
	h.table.foldBeyond, h.table.unfolded = int64(1+h.rng.IntN(20)), int64(h.rng.IntN(3))
}

// check compares a version with the model, unless the log no longer has it.
func (h *randomHistory) check(number int) {
	h.t.Helper()
	want := h.versions[number]
	s, err := h.table.At(h.t.Context(), int64(number))
	if want.gone && (err == nil || errors.Is(err, ErrNoVersion) || strings.Contains(err.Error(), "is missing")) {
		return
	}
	if err != nil {
		h.t.Fatalf("version %d: %v", number, err)
	}
	if v, _ := s.Txn("app"); v != want.txn || (len(s.PartitionFields()) > 0) != want.partitioned {
		h.t.Fatalf("version %d: the transaction is %d and the partitions are %v, want %d and %t",
			number, v, s.PartitionFields(), want.txn, want.partitioned)
	}
	got := map[string]int{}
	var live []File
	for f, err := range s.Files(h.t.Context()) {
		if err != nil {
			h.t.Fatal(err)
		}
		dir := ""
		if want.partitioned {
			dir = "k=x" + path.Base(f.Path)
		}
		if f.Dir != dir {
			h.t.Fatalf("version %d: %s is in %q", number, f.Path, f.Dir)
		}
		got[f.Path] = int(f.Size)
		if size, ok := h.versions[h.published-1].files[f.Path]; ok && size == int(f.Size) {
			live = append(live, f)
		}
	}
	if !maps.Equal(got, want.files) {
		h.t.Fatalf("version %d has %v, want %v", number, got, want.files)
	}
	h.checkAdds(s, live)
}

// checkAdds asks for the adds of files that the newest version has too, so that
// the log must hold them, wherever.
func (h *randomHistory) checkAdds(s *Snapshot, files []File) {
	h.t.Helper()
	adds, err := s.Adds(h.t.Context(), files...)
	if err != nil {
		h.t.Fatalf("version %d: %v", s.Version(), err)
	}
	for i, add := range adds {
		if f := files[i]; add.Path != f.Path || add.Size != f.Size || *add.PartitionValues["k"] != "x"+f.Path {
			h.t.Errorf("version %d: the add of %+v is %+v", s.Version(), f, add)
		}
	}
}

// keptCache is a cache of one table on the heap.
type keptCache struct {
	index *keptIndex
	// discards counts how often it was emptied.
	discards int
}

func (c *keptCache) Open(context.Context, string) (metacache.Index, error) {
	if c.index == nil {
		c.index = &keptIndex{metacache.NewMemory(), c}
	}
	return c.index, nil
}

type keptIndex struct {
	*metacache.Runs
	cache *keptCache
}

// Close keeps everything.
func (x *keptIndex) Close() error { return nil }

// Discard forgets everything.
func (x *keptIndex) Discard() error {
	x.cache.index = nil
	x.cache.discards++
	return nil
}
