package writer

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// noon is when the tests look at the log.
var noon = time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)

// ageLog gives the commits their times, one a day up to the noon of today, and
// checkpoints to some.
func (c *checkpointTable) ageLog(checkpoints ...int64) {
	c.t.Helper()
	k := c.checkpointer()
	for _, v := range checkpoints {
		p, m, err := k.table.Header(context.Background(), v)
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := k.write(context.Background(), k.table.Incarnation(), header{p, m}, v); err != nil {
			c.t.Fatal(err)
		}
	}
	for v := range c.version + 1 {
		at := noon.Add(-time.Duration(c.version-v) * day)
		if err := os.Chtimes(c.st.Path(snapshot.CommitName(v)), at, at); err != nil {
			c.t.Fatal(err)
		}
	}
	c.table = nil
}

// daily is a table with a commit a day, the last one today: version v is 40-v
// days old. It has checkpoints of versions 5 and 10.
func daily(t *testing.T, config ...string) *checkpointTable {
	t.Helper()
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata(config...), testAdd("f0"))
	for v := 1; v <= 40; v++ {
		c.commit(testAdd(fmt.Sprintf("f%d", v)), testRemove(fmt.Sprintf("f%d", v-1)))
	}
	c.ageLog(5, 10)
	return c
}

func (c *checkpointTable) cleanUp(now time.Time) int {
	c.t.Helper()
	k := c.checkpointer()
	k.now = func() time.Time { return now }
	p, m, err := k.table.Header(context.Background(), c.version)
	if err != nil {
		c.t.Fatal(err)
	}
	n, err := k.cleanUp(context.Background(), k.table.Incarnation(), header{p, m})
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// first is the first version with a commit file.
func (c *checkpointTable) first() string {
	before, _, _ := strings.Cut(c.logNames(), ".json")
	return strings.TrimLeft(before[strings.LastIndex(before, " ")+1:], "0")
}

// TestLogExpiresAtMidnight: version 10 was committed at noon, 30 days before
// noon. It is the cutoff once a midnight lies between.
func TestLogExpiresAtMidnight(t *testing.T) {
	midnight := time.Date(2024, 5, 21, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		now   time.Time
		first string
	}{
		{"five days before", noon.Add(-5 * day), ""},
		{"the last moment", midnight.Add(-time.Nanosecond), "5"},
		{"midnight", midnight, "10"},
		{"in another zone", midnight.In(time.FixedZone("", -12*3600)), "10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := daily(t)
			c.cleanUp(tt.now)
			if got := c.first(); got != tt.first {
				t.Errorf("the log begins with %q, want %q: %s", got, tt.first, c.logNames())
			}
		})
	}
}

func TestPropertiesOfLogCleanup(t *testing.T) {
	protection := testProtocol(1, 7, "checkpointProtection")
	now := noon.Add(day)
	for _, tt := range []struct {
		name     string
		protocol *action.Protocol
		config   []string
		first    string
	}{
		{"a month by default", nil, nil, "10"},
		{"switched off", nil, []string{"delta.enableExpiredLogCleanup", "false"}, ""},
		{"switched on", nil, []string{"delta.enableExpiredLogCleanup", "TRUE"}, "10"},
		{"longer", nil, []string{"delta.logRetentionDuration", "interval 35 days"}, "5"},
		{"longest", nil, []string{"delta.logRetentionDuration", "interval 52 weeks"}, ""},
		{"protected", protection, []string{"delta.requireCheckpointProtectionBeforeVersion", "11"}, ""},
		{"all that is protected goes at once", protection, []string{"delta.requireCheckpointProtectionBeforeVersion", "10"}, "10"},
		{"protection without the feature", nil, []string{"delta.requireCheckpointProtectionBeforeVersion", "11"}, "10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := daily(t, tt.config...)
			if tt.protocol != nil {
				c.commit(tt.protocol)
			}
			c.cleanUp(now)
			if got := c.first(); got != tt.first {
				t.Errorf("the log begins with %q, want %q", got, tt.first)
			}
		})
	}
}

// TestLogCleanupTakesEverythingOfAVersion and nothing else.
func TestLogCleanupTakesEverythingOfAVersion(t *testing.T) {
	c := daily(t)
	other := func(names ...string) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(c.dir, "_delta_log", name), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	goes := []string{
		"00000000000000000003.crc", ".00000000000000000003.json.crc", ".00000000000000000003.crc.crc",
		"00000000000000000005.checkpoint.0000000001.0000000002.parquet",
		"00000000000000000007.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
		".00000000000000000005.checkpoint.parquet.crc",
		"00000000000000000003.00000000000000000007.compacted.json", "00000000000000000010.00000000000000000012.compacted.json",
	}
	stays := []string{
		"00000000000000000010.crc", "00000000000000000011.00000000000000000012.compacted.json", "_last_vacuum_info",
		"3.json", "00000000000000000003.json.tmp", ".00000000000000000003.json.80a0.tmp", "00000000000000000003.txt",
		"00000000000000000003", ".00000000000000000003.json", "00000000000000000003.checkpoint.parquet.tmp",
	}
	other(goes...)
	other(stays...)
	if err := os.Mkdir(filepath.Join(c.dir, "_delta_log", "00000000000000000002.crc"), 0o755); err != nil {
		t.Fatal(err)
	}
	n := c.cleanUp(noon.Add(day))
	left := strings.Fields(c.logNames())
	for _, name := range goes {
		if slices.Contains(left, name) {
			t.Errorf("%s is left", name)
		}
	}
	for v := range int64(10) {
		if slices.Contains(left, filepath.Base(snapshot.CommitName(v))) {
			t.Errorf("version %d is left", v)
		}
	}
	for _, name := range append(stays, "00000000000000000010.checkpoint.parquet", "00000000000000000010.json", "00000000000000000002.crc", "_last_checkpoint") {
		if !slices.Contains(left, name) {
			t.Errorf("%s is gone", name)
		}
	}
	if want := 10 + 1 + len(goes); n != want {
		t.Errorf("%d files deleted, want %d", n, want)
	}
	if again := c.cleanUp(noon.Add(day)); again != 0 {
		t.Errorf("%d more files deleted", again)
	}
}

// TestTimeTravelWithinTheRetentionIsNeverBroken, whatever day it is.
func TestTimeTravelWithinTheRetentionIsNeverBroken(t *testing.T) {
	for days := range 12 {
		c := daily(t)
		now := noon.Add(time.Duration(days) * day)
		want := map[int64][]string{}
		for v := range c.version + 1 {
			want[v] = c.files(v)
		}
		c.cleanUp(now)
		c.table = nil
		for v := range c.version + 1 {
			// Version v was the newest one until the next day's noon.
			until := noon.Add(-time.Duration(c.version-v-1) * day)
			if v < c.version && until.Before(now.Add(-30*day)) {
				continue
			}
			if !slices.Equal(c.files(v), want[v]) {
				t.Errorf("after %d days: version %d has changed", days, v)
			}
		}
	}
}

// TestLogStaysWithoutAReadableCheckpoint: it would stand in for what is deleted.
func TestLogStaysWithoutAReadableCheckpoint(t *testing.T) {
	c := daily(t)
	name := c.st.Path(snapshot.CheckpointName(10))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// The footer reads, and so does what the index is made of, but not a column
	// that only the add actions have.
	spoiled := slices.Clone(data)
	at := strings.Index(string(data), "numRecords")
	for i := range 30 {
		spoiled[at+i] = 0xff
	}
	if err := os.WriteFile(name, spoiled, 0o644); err != nil {
		t.Fatal(err)
	}
	k := c.checkpointer()
	k.now = func() time.Time { return noon.Add(day) }
	p, m, err := k.table.Header(t.Context(), c.version)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := k.cleanUp(t.Context(), k.table.Incarnation(), header{p, m}); err == nil || n > 0 {
		t.Errorf("%d files deleted, %v", n, err)
	}
	if got := c.first(); got != "" {
		t.Errorf("the log begins with %s", got)
	}
	// Without any part of it, the one before counts.
	if err := os.WriteFile(name, []byte("no parquet"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.table = nil
	c.cleanUp(noon.Add(day))
	if got := c.first(); got != "5" {
		t.Errorf("the log begins with %s", got)
	}
}

func TestInCommitTimestampsDecideWhatExpires(t *testing.T) {
	c := newCheckpointTable(t)
	commit := func(v int, more ...action.Action) {
		c.version++
		stamp := noon.Add(-time.Duration(40-v) * day).UnixMilli()
		lines := fmt.Sprintf(`{"commitInfo":{"inCommitTimestamp":%d,"operation":"WRITE"}}`+"\n", stamp)
		for _, a := range append(more, testAdd(fmt.Sprintf("f%d", v))) {
			lines += line(t, a) + "\n"
		}
		if err := os.WriteFile(c.st.Path(snapshot.CommitName(c.version)), []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commit(0, testProtocol(1, 7, "inCommitTimestamp"), testMetadata("delta.enableInCommitTimestamps", "true"))
	for v := 1; v <= 40; v++ {
		commit(v)
	}
	k := c.checkpointer()
	for _, v := range []int64{5, 10} {
		p, m, err := k.table.Header(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.write(t.Context(), k.table.Incarnation(), header{p, m}, v); err != nil {
			t.Fatal(err)
		}
	}
	// The files are all of this moment, as those of a copy.
	c.table = nil
	c.cleanUp(noon.Add(day))
	if got := c.first(); got != "10" {
		t.Errorf("the log begins with %q", got)
	}
}

// TestKilledWhileCheckpointingOrCleaningUp ends the process at every call to the
// storage: the log is readable after each of them, and loses no version that
// must stay.
func TestKilledWhileCheckpointingOrCleaningUp(t *testing.T) {
	whole := daily(t)
	want := map[int64][]string{}
	for v := int64(10); v <= whole.version; v++ {
		want[v] = whole.files(v)
	}
	for kill := 0; ; kill++ {
		c := &checkpointTable{t: t, dir: t.TempDir(), version: whole.version}
		if err := copyTree(whole.dir, c.dir); err != nil {
			t.Fatal(err)
		}
		var err error
		if c.st, err = store.OpenLocal(c.dir); err != nil {
			t.Fatal(err)
		}
		calls := 0
		hooked := c.withStore(func(op, name string) error {
			if calls++; calls > kill {
				return fs.ErrClosed
			}
			return nil
		})
		k := hooked.checkpointer()
		k.now = func() time.Time { return noon.Add(day) }
		_, err = hooked.tryCheckpoint(k)
		c.table = nil
		for v := int64(10); v <= c.version; v++ {
			if !slices.Equal(c.files(v), want[v]) {
				t.Errorf("killed at call %d: version %d has changed", kill, v)
			}
		}
		if err == nil {
			// At least Stage, Publish, Put, ten commits and a checkpoint.
			if calls < 14 {
				t.Errorf("%d calls", calls)
			}
			return
		}
		// The next one does what is left.
		if _, err := c.tryCheckpoint(&checkpointer{
			table: c.open(), logger: k.logger, limits: k.limits, now: k.now,
		}); err != nil {
			t.Fatal(err)
		}
		if got := c.first(); got != "10" {
			t.Errorf("killed at call %d: after another try the log begins with %q", kill, got)
		}
	}
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, rel), data, 0o644); err != nil {
			return err
		}
		return os.Chtimes(filepath.Join(to, rel), info.ModTime(), info.ModTime())
	})
}

// TestAnotherTablesLogIsNotCleanedUp: it came while the log was being looked at.
func TestAnotherTablesLogIsNotCleanedUp(t *testing.T) {
	c := daily(t)
	made := false
	k := c.withStore(func(op, name string) error {
		if op == "Delete" && !made {
			made = true
			for v := range c.version + 1 {
				if err := os.Remove(c.st.Path(snapshot.CommitName(v))); err != nil {
					return err
				}
			}
			again := &checkpointTable{t: t, dir: c.dir, version: -1, model: map[string]action.Action{}}
			again.commit(testProtocol(1, 2), testMetadata(), testAdd("other")).commit(testAdd("more"))
		}
		return nil
	}).checkpointer()
	k.now = func() time.Time { return noon.Add(day) }
	p, m, err := k.table.Header(t.Context(), c.version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.cleanUp(t.Context(), k.table.Incarnation(), header{p, m}); err != nil {
		t.Fatal(err)
	}
	// The first call was under way.
	if names := c.logNames(); !strings.Contains(names, "00000000000000000001.json") {
		t.Errorf("the log has %s", names)
	}
}
