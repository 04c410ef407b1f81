package metacache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// keepRun keeps a run of files as the table root.
func keepRun(t *testing.T, c *Cache, root string, files sliceBase) error {
	t.Helper()
	k := c.newKeeper(root)
	b, err := k.keep(t.Context(), someRun(1, 1, files))
	if err == nil {
		b.close()
	}
	return errors.Join(err, k.close())
}

// tablesIn are the roots of the tables with a run.
func tablesIn(t *testing.T, c *Cache) string {
	t.Helper()
	tables, err := c.Tables(t.Context(), "")
	check(t, err)
	var names []string
	for _, table := range tables {
		for _, s := range table.Slots {
			if len(s.Runs) > 0 {
				names = append(names, table.Table)
			}
		}
	}
	return strings.Join(names, " ")
}

func TestTablesUsedLongestAgoMakeRoom(t *testing.T) {
	files := someFiles(5000, 10, 1)
	c := testCache(t)
	check(t, keepRun(t, c, "/a", files))
	size := diskUse(c.options.Dir)
	c.options.Size = 3*size + size/2
	check(t, keepRun(t, c, "/b", files))
	check(t, keepRun(t, c, "/c", files))
	now := time.Now()
	for i, root := range []string{"/b", "/a", "/c"} {
		lock := filepath.Join(c.options.Dir, cacheKey(root), "0", lockFile)
		at := now.Add(time.Duration(i-10) * time.Hour)
		check(t, os.Chtimes(lock, at, at))
	}
	check(t, keepRun(t, c, "/d", files))
	if got := tablesIn(t, c); got != "/a /c /d" {
		t.Errorf("left are %s, want /b to be gone", got)
	}
	// To open a table is to use it, and one that is open stays.
	k := c.newKeeper("/a")
	if _, err := k.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, keepRun(t, c, "/e", files))
	if got := tablesIn(t, c); got != "/a /d /e" {
		t.Errorf("left are %s, want /c to be gone", got)
	}
	for _, root := range []string{"/d", "/e"} {
		open := c.newKeeper(root)
		defer open.close()
	}
	if err := keepRun(t, c, "/f", files); !errors.Is(err, errNoRoom) {
		t.Errorf("while all is in use: %v", err)
	}
	check(t, k.close())
	check(t, keepRun(t, c, "/f", files))
	if got := tablesIn(t, c); got != "/d /e /f" {
		t.Errorf("left are %s, want /a to be gone", got)
	}
}

func TestWhatIsTooLargeIsNotKept(t *testing.T) {
	files := someFiles(5000, 10, 1)
	for name, limit := range map[string]func(*CacheOptions){
		"for the cache": func(o *CacheOptions) { o.Size = 100_000 },
		// The estimate passes.
		"in the end": func(o *CacheOptions) { o.Size = runEstimate(keptRun{base: files}) + 10_000 },
		"for the disk": func(o *CacheOptions) {
			free, err := freeBytes(o.Dir)
			if err != nil {
				panic(err)
			}
			o.Floor = free + 1<<30
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := openTestCache(t, t.TempDir())
			limit(&c.options)
			// Paths that take more than those of most tables.
			long := slices.Clone(files)
			for i := range long {
				long[i].Raw = fmt.Sprintf("%x", long[i].Path)
			}
			if err := keepRun(t, c, testTable, long); !errors.Is(err, errNoRoom) {
				t.Errorf("got %v", err)
			}
			if left, err := filepath.Glob(filepath.Join(c.options.Dir, "*", "*", "1*")); len(left) > 0 || err != nil {
				t.Errorf("left are %q, %v", left, err)
			}
		})
	}
}

func TestSmallTablesTouchNoDisk(t *testing.T) {
	c := testCache(t)
	c.options.MinFiles, c.options.MinVersions = 1000, 9
	tr := newTruth(t, 600, 7)
	if n := tr.check(t, c); n != 0 || tr.check(t, c) != 0 {
		t.Errorf("%d versions are covered", n)
	}
	if _, err := os.Lstat(c.options.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cache was made: %v", err)
	}
}

func TestAFewSmallTablesAreKept(t *testing.T) {
	c := testCache(t)
	c.options.MinFiles, c.options.MinVersions, c.options.Small = 1000, 9, 2
	for _, step := range []struct {
		table string
		kept  bool
	}{{"/a", true}, {"/b", true}, {"/c", false}, {"/a", true}, {"/c", false}} {
		if got := c.newKeeper(step.table).wants(1, 1); got != step.kept {
			t.Errorf("%s: %v", step.table, got)
		}
	}
	if !c.newKeeper("/c").wants(1, 1000) {
		t.Error("a large one is not kept")
	}
	tr := newTruth(t, 60, 3)
	c = testCache(t)
	c.options.MinFiles, c.options.MinVersions, c.options.Small = 1000, 9, 1
	tr.keep(t, c)
	if n := tr.check(t, c); n != len(tr.versions) {
		t.Errorf("%d of %d versions are covered", n, len(tr.versions))
	}
}

func TestTablesAreKeptOnceTheyAreLarge(t *testing.T) {
	for name, commits := range map[string]int{"files": 7, "versions": 8} {
		t.Run(name, func(t *testing.T) {
			c := testCache(t)
			c.options.MinFiles, c.options.MinVersions = 1000, 9
			tr := newTruth(t, 600, commits)
			if name == "files" { // the last commit makes it large
				tr.commits = append(tr.commits, truthCommit{added: withoutIDs(someFiles(500, 3, 1))})
				x := NewMemory()
				tr.load(t, x)
				tr.versions = append(tr.versions, withoutIDs(collect(t, x.Files(t.Context(), truthFirst+int64(commits)+1))))
				c.options.MinVersions = 100
			}
			tr.keep(t, c)
			if n := tr.check(t, c); n != len(tr.versions) {
				t.Errorf("%d of %d versions are covered", n, len(tr.versions))
			}
		})
	}
}

func TestVersionsAreWrittenInBatches(t *testing.T) {
	c := testCache(t)
	k := testKeeper(t, c)
	k.quiet = time.Hour
	b, err := k.keep(t.Context(), someRun(1, 0, someFiles(100, 3, 1)))
	check(t, err)
	log := filepath.Join(theRun(t, c), versionsName)
	size := func() int64 {
		info, err := os.Stat(log)
		check(t, err)
		return info.Size()
	}
	before := size()
	applied := func(v int64) {
		t.Helper()
		check(t, k.applied(t.Context(), 1, keptVersion{version: v, note: []byte("n"), changes: []change{{
			file: File{Key: Key{Name: "x", Path: "x"}, ID: FileID(1000 + v)}, rank: 3, inBase: true, ended: v%2 == 0,
		}}}))
	}
	for v := range int64(batchVersions - 1) {
		applied(v + 1)
	}
	if size() != before {
		t.Error("a batch was written early")
	}
	applied(batchVersions)
	if size() == before {
		t.Error("a full batch was not written")
	}
	// What is quiet is written after a while.
	before = size()
	k.mu.Lock()
	k.timer.Reset(0)
	k.mu.Unlock()
	applied(batchVersions + 1)
	for begun := time.Now(); size() == before; time.Sleep(time.Millisecond) {
		k.mu.Lock()
		if k.timer != nil {
			k.timer.Reset(0)
		}
		k.mu.Unlock()
		if time.Since(begun) > time.Minute {
			t.Fatal("what was quiet is not written")
		}
	}
	// And so is what is left at the end.
	applied(batchVersions + 2)
	b.close()
	check(t, k.close())

	again := testKeeper(t, c)
	restored, err := again.restore(t.Context())
	check(t, err)
	r := restored.runs[0]
	if len(r.versions) != batchVersions+3 || restored.lastID != 1000+batchVersions+2 {
		t.Fatalf("restored %d versions, last ID %d", len(r.versions), restored.lastID)
	}
	for i, v := range r.versions[1:] {
		want := change{
			file: File{Key: Key{Name: "x", Path: "x"}, ID: FileID(1001 + i)}, rank: 3, inBase: true, ended: i%2 == 1,
		}
		if v.version != int64(i+1) || string(v.note) != "n" || len(v.changes) != 1 || v.changes[0] != want {
			t.Fatalf("version %d is %+v", i+1, v)
		}
	}
	// More can be added to what was restored, and nothing out of order.
	check(t, again.applied(t.Context(), 1, keptVersion{version: batchVersions + 3}))
	if err := again.applied(t.Context(), 1, keptVersion{version: batchVersions + 7}); err == nil {
		t.Error("a gap between versions was taken")
	}
	r.base.close()
}

func TestForgottenRunIsDeleted(t *testing.T) {
	c := testCache(t)
	k := testKeeper(t, c)
	b, err := k.keep(t.Context(), someRun(7, 0, someFiles(100, 3, 1)))
	check(t, err)
	run := theRun(t, c)
	b.close()
	check(t, k.forget(t.Context(), 7))
	if _, err := os.Lstat(run); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	check(t, k.forget(t.Context(), 7))
	if err := k.applied(t.Context(), 7, keptVersion{version: 1}); err == nil {
		t.Error("a version was added to what is forgotten")
	}
}

func TestDiscardedIndexIsReadableAndGone(t *testing.T) {
	tr := newTruth(t, 2000, 3)
	c := testCache(t)
	tr.keep(t, c)
	x, err := c.Open(t.Context(), testTable)
	check(t, err)
	if n := tr.compare(t, x); n != len(tr.versions) {
		t.Fatalf("%d of %d versions are covered", n, len(tr.versions))
	}
	check(t, x.(Discarder).Discard())
	if n := tr.compare(t, x); n != len(tr.versions) {
		t.Errorf("of what was open, %d of %d versions are covered", n, len(tr.versions))
	}
	next, err := c.Open(t.Context(), testTable)
	check(t, err)
	if got := next.Coverage(); len(got) > 0 {
		t.Errorf("the next index covers %v", got)
	}
	// Neither is in the way of the other.
	check(t, x.Apply(t.Context(), truthFirst+int64(len(tr.versions)), nil, nil, nil))
	settle(t, x)
	tr.load(t, next)
	settle(t, next)
	check(t, x.Close())
	check(t, next.Close())
	if n := tr.check(t, c); n != len(tr.versions) {
		t.Errorf("%d of %d versions are covered", n, len(tr.versions))
	}
}

func TestCacheDeletedByHandAndMadeAgain(t *testing.T) {
	tr := newTruth(t, 600, 2)
	c := testCache(t)
	tr.keep(t, c)
	x, err := c.Open(t.Context(), testTable)
	check(t, err)
	if n := tr.compare(t, x); n != len(tr.versions) {
		t.Fatalf("%d of %d versions are covered", n, len(tr.versions))
	}
	check(t, os.RemoveAll(c.options.Dir))
	tr.keep(t, c) // another process, with other IDs
	run := theRun(t, c)
	// What the first does now is not for the slot of the other.
	check(t, x.Load(t.Context(), 1, nil, func(func(File, error) bool) {}))
	check(t, x.Apply(t.Context(), truthFirst+int64(len(tr.versions)), nil, nil, nil))
	settle(t, x)
	check(t, x.(Discarder).Discard())
	check(t, x.Close())
	if again := theRun(t, c); again != run {
		t.Errorf("the run was %s, now it is %s", run, again)
	}
	if n := tr.check(t, c); n != len(tr.versions) {
		t.Errorf("%d of %d versions are covered", n, len(tr.versions))
	}
}

func TestDiscardDuringAFill(t *testing.T) {
	c := testCache(t)
	k := testKeeper(t, c)
	files := someFiles(3000, 10, 1)
	discarded := make(chan error, 1)
	_, err := k.keep(t.Context(), keptRun{serial: 1, base: callingBase{files, func() {
		go func() { discarded <- k.discard() }()
		for done := false; !done; time.Sleep(time.Millisecond) {
			k.mu.Lock()
			done = k.discarded
			k.mu.Unlock()
		}
	}}, firstID: 1})
	if !errors.Is(err, errNotKept) {
		t.Errorf("keep: %v", err)
	}
	check(t, <-discarded)
	if got := tablesIn(t, c); got != "" {
		t.Errorf("left is %s", got)
	}
}

func TestStaleSlotsOfOthersAreNotRead(t *testing.T) {
	tr := newTruth(t, 600, 2)
	dir := t.TempDir()
	tr.keep(t, openTestCache(t, dir))
	other, err := openTestCache(t, dir).Open(t.Context(), testTable)
	check(t, err)
	defer other.Close()
	c := openTestCache(t, dir)
	x, err := c.Open(t.Context(), testTable)
	check(t, err)
	if n := tr.compare(t, x); n != len(tr.versions) {
		t.Errorf("%d of %d versions are covered", n, len(tr.versions))
	}
	check(t, x.(Discarder).Discard())
	check(t, x.Close())
	again, err := c.Open(t.Context(), testTable)
	check(t, err)
	if got := again.Coverage(); len(got) > 0 {
		t.Errorf("what was discarded is read again: %v", got)
	}
	check(t, again.Close())
}

func TestClearLeavesWhatIsInUse(t *testing.T) {
	c := testCache(t)
	for _, root := range []string{"/a", "/b", "/c"} {
		check(t, keepRun(t, c, root, someFiles(500, 10, 1)))
	}
	k := c.newKeeper("/b")
	tables, err := c.Tables(t.Context(), "/b")
	if err != nil || len(tables) != 1 || tables[0].Slots[0].PID != os.Getpid() || tables[0].Slots[0].Bytes < 1000 {
		t.Errorf("the table in use is %+v, %v", tables, err)
	}
	cleared, busy, err := c.Clear(t.Context(), "/c")
	if err != nil || len(cleared) != 1 || len(busy) != 0 || tablesIn(t, c) != "/a /b" {
		t.Errorf("cleared %v, busy %v, %v; left are %s", cleared, busy, err, tablesIn(t, c))
	}
	cleared, busy, err = c.Clear(t.Context(), "")
	if err != nil || len(cleared) != 1 || len(busy) != 1 || tablesIn(t, c) != "/b" {
		t.Errorf("cleared %v, busy %v, %v; left are %s", cleared, busy, err, tablesIn(t, c))
	}
	check(t, k.close())
	if _, _, err := c.Clear(t.Context(), ""); err != nil || tablesIn(t, c) != "" {
		t.Errorf("%v; left are %s", err, tablesIn(t, c))
	}
	left, err := os.ReadDir(c.options.Dir)
	if err != nil || len(left) != 1 || left[0].Name() != "CACHEDIR.TAG" {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	whole := testCache(t)
	k := testKeeper(t, whole)
	b, err := k.keep(t.Context(), someRun(1, 3, someFiles(2500, 300, 0)))
	check(t, err)
	b.close()
	verify := func(t *testing.T, c *Cache) error {
		tables, err := c.Tables(t.Context(), "")
		if err != nil || len(tables) != 1 || len(tables[0].Slots) != 1 || len(tables[0].Slots[0].Runs) != 1 {
			t.Fatalf("the cache has %+v, %v", tables, err)
		}
		return c.Verify(t.Context(), tables[0].Slots[0].Runs[0])
	}
	check(t, verify(t, whole))
	eachDamage(t, whole, func(t *testing.T, name string, damage func(string) error) {
		c := testCache(t)
		copyTree(t, whole.options.Dir, c.options.Dir)
		check(t, damage(theRun(t, c)))
		err := verify(t, c)
		if behind := strings.HasPrefix(name, versionsName) && (strings.Contains(name, "long") || strings.Contains(name, "end")); behind != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v is no damage", name, err)
		}
	})
}

// A run that was written wrong has a seal that fits.
func TestVerifyFindsWhatASealDoesNot(t *testing.T) {
	for name, wrong := range map[string]sliceBase{
		"order":  swapped(someFiles(900, 5, 1), 0, 800),
		"twice":  twice(someFiles(900, 5, 1)),
		"totals": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c := testCache(t)
			k := testKeeper(t, c)
			files := someFiles(900, 5, 1)
			var b base = lyingBase{files}
			if wrong != nil {
				b = wrong
			}
			r := someRun(1, 3, files)
			r.base = b
			kept, err := k.keep(t.Context(), r)
			check(t, err)
			kept.close()
			tables, err := c.Tables(t.Context(), "")
			check(t, err)
			if err := c.Verify(t.Context(), tables[0].Slots[0].Runs[0]); !errors.Is(err, errDamaged) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func swapped(b sliceBase, i, j int) sliceBase {
	b[i], b[j] = b[j], b[i]
	return b
}

func twice(b sliceBase) sliceBase {
	b[500] = b[499]
	return b
}

// lyingBase says that it has other totals.
type lyingBase struct{ sliceBase }

func (b lyingBase) totals() Totals {
	t := b.sliceBase.totals()
	t.Bytes++
	return t
}
