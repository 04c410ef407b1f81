package metacache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const testTable = "/tables/t"

// truth is what the versions of a table are.
type truth struct {
	first    sliceBase
	commits  []truthCommit
	versions [][]File
}

type truthCommit struct {
	gone  []Gone
	added []File
}

const truthFirst = 10

// newTruth is a table of some files and commits, from version truthFirst on.
func newTruth(t *testing.T, files, commits int) *truth {
	t.Helper()
	all := someFiles(files+2*commits, 40, 1)
	tr := &truth{}
	for i := range all {
		all[i].ID = 0
		if i%(len(all)/(2*commits)) == 0 && len(tr.commits) < commits { // comes later
			tr.commits = append(tr.commits, truthCommit{added: []File{all[i]}})
			continue
		}
		tr.first = append(tr.first, all[i])
	}
	for i := range tr.commits {
		f := tr.first[i*len(tr.first)/commits]
		tr.commits[i].gone = []Gone{{Path: f.Path, DV: f.DV}}
	}
	x := NewMemory()
	tr.load(t, x)
	for v := range int64(commits + 1) {
		tr.versions = append(tr.versions, withoutIDs(collect(t, x.Files(t.Context(), truthFirst+v))))
	}
	return tr
}

func withoutIDs(files []File) []File {
	for i := range files {
		files[i].ID = 0
	}
	return files
}

// load makes an index cover what it does not.
func (tr *truth) load(t *testing.T, x Index) {
	t.Helper()
	check(t, x.Load(t.Context(), truthFirst, []byte("note"), func(yield func(File, error) bool) {
		for _, f := range tr.first {
			if !yield(f, nil) {
				return
			}
		}
	}))
	for i, c := range tr.commits {
		check(t, x.Apply(t.Context(), truthFirst+1+int64(i), []byte("note"), c.gone, c.added))
	}
}

// keep fills a cache with the table.
func (tr *truth) keep(t *testing.T, c *Cache) {
	t.Helper()
	x, err := c.Open(t.Context(), testTable)
	check(t, err)
	tr.load(t, x)
	settle(t, x)
	check(t, x.Close())
}

func settle(t *testing.T, x Index) {
	t.Helper()
	for begun := time.Now(); !Settled(x); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the keeper does not get done")
		}
	}
}

// check opens the cache and compares: what it covers is right, and what it does
// not cover can be loaded. It returns how much was covered.
func (tr *truth) check(t *testing.T, c *Cache) (covered int) {
	t.Helper()
	x, err := c.Open(t.Context(), testTable)
	check(t, err)
	covered = tr.compare(t, x)
	tr.load(t, x)
	settle(t, x)
	if n := tr.compare(t, x); n != len(tr.versions) {
		t.Errorf("after it was loaded again, %d versions are covered", n)
	}
	check(t, x.Close())
	return covered
}

// compare reads all versions, in all ways, and returns how many are covered.
func (tr *truth) compare(t *testing.T, x Index) (covered int) {
	t.Helper()
	ctx := t.Context()
	for i, want := range tr.versions {
		v := truthFirst + int64(i)
		got, err := readAll(x.Files(ctx, v))
		if err == nil {
			err = tr.comparePoints(t, x, v, want)
		}
		if errors.Is(err, ErrNotCovered) || errors.Is(err, errDamaged) {
			continue
		}
		check(t, err)
		if !slices.Equal(withoutIDs(got), want) {
			t.Fatalf("version %d: got %d files, want %d, or others", v, len(got), len(want))
		}
		if note, err := x.Note(ctx, v); err != nil || string(note) != "note" {
			t.Errorf("the note of version %d is %q, %v", v, note, err)
		}
		covered++
	}
	return covered
}

func (tr *truth) comparePoints(t *testing.T, x Index, v int64, want []File) error {
	t.Helper()
	ctx := t.Context()
	for i := 0; i < len(want); i += 37 {
		f, ok, err := x.ByPath(ctx, v, want[i].Path)
		if err != nil {
			return err
		}
		id := f.ID
		if f.ID = 0; !ok || f != want[i] {
			t.Errorf("version %d: ByPath(%q) is %+v, %v", v, want[i].Path, f, ok)
		}
		byID, ok, err := x.ByID(ctx, id)
		if err != nil {
			return err
		}
		if ok && byID.Path != f.Path { // not found is right for what is not covered any more
			t.Errorf("version %d: ByID(%d) is %+v, not %q", v, id, byID, f.Path)
		}
		named, err := x.Lookup(ctx, v, want[i].Dir, want[i].Name)
		if err != nil {
			return err
		}
		if !slices.Contains(withoutIDs(named), want[i]) {
			t.Errorf("version %d: Lookup(%q, %q) is %+v", v, want[i].Dir, want[i].Name, named)
		}
	}
	return nil
}

func readAll(items func(func(File, error) bool)) (out []File, failed error) {
	for f, err := range items {
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// theRun is the directory of the only run in a cache.
func theRun(t *testing.T, c *Cache) string {
	t.Helper()
	seals, err := filepath.Glob(filepath.Join(c.options.Dir, "*", "*", "*", sealName))
	if err != nil || len(seals) != 1 {
		t.Fatalf("the cache has the runs %q, %v", seals, err)
	}
	return filepath.Dir(seals[0])
}

// copyTree copies a cache.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	check(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	}))
}

// eachDamage calls test with all the ways to damage the run in a filled cache.
func eachDamage(t *testing.T, whole *Cache, test func(t *testing.T, name string, damage func(run string) error)) {
	t.Helper()
	files, err := os.ReadDir(theRun(t, whole))
	check(t, err)
	type way struct {
		name   string
		damage func(file string) error
	}
	for _, f := range files {
		info, err := f.Info()
		check(t, err)
		size := info.Size()
		ways := []way{
			{"missing", os.Remove},
			{"empty", func(file string) error { return os.Truncate(file, 0) }},
			{"half", func(file string) error { return os.Truncate(file, size/2) }},
			{"one byte short", func(file string) error { return os.Truncate(file, size-1) }},
			{"one byte long", func(file string) error { return appendTo(file, "x") }},
			{"zeros at the end", func(file string) error { return os.Truncate(file, size+4096) }},
			{"a directory", func(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) }},
			{"a pipe", func(file string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) }},
			{"a link", func(file string) error {
				return errors.Join(os.Remove(file), os.Symlink("/dev/zero", file))
			}},
		}
		for i := range int64(6) {
			at := i * (size - 1) / 5
			ways = append(ways, way{fmt.Sprint("flipped byte ", at), func(file string) error { return flip(file, at) }})
		}
		for _, w := range ways {
			test(t, f.Name()+": "+w.name, func(run string) error { return w.damage(filepath.Join(run, f.Name())) })
		}
	}
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func flip(file string, at int64) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= 0x10
	_, err = f.WriteAt(b[:], at)
	return err
}

func TestDamageNeverGivesAWrongAnswer(t *testing.T) {
	tr := newTruth(t, 1100, 6)
	whole := testCache(t)
	tr.keep(t, whole)
	if n := tr.check(t, whole); n != len(tr.versions) {
		t.Fatalf("of an undamaged cache, %d of %d versions are covered", n, len(tr.versions))
	}
	eachDamage(t, whole, func(t *testing.T, name string, damage func(string) error) {
		t.Run(name, func(t *testing.T) {
			c := testCache(t)
			copyTree(t, whole.options.Dir, c.options.Dir)
			check(t, damage(theRun(t, c)))
			covered := tr.check(t, c)
			// All is covered still where the damage lies behind the versions.
			if behind := strings.HasPrefix(name, versionsName) && (strings.Contains(name, "long") || strings.Contains(name, "end")); behind != (covered == len(tr.versions)) {
				t.Errorf("%d of %d versions are covered", covered, len(tr.versions))
			}
			if n := tr.check(t, c); n != len(tr.versions) {
				t.Errorf("what was loaded again is not kept: %d of %d versions", n, len(tr.versions))
			}
		})
	})
}

func TestDamageWhileOpenNeverGivesAWrongAnswer(t *testing.T) {
	tr := newTruth(t, 1100, 6)
	whole := testCache(t)
	tr.keep(t, whole)
	eachDamage(t, whole, func(t *testing.T, name string, damage func(string) error) {
		t.Run(name, func(t *testing.T) {
			c := testCache(t)
			copyTree(t, whole.options.Dir, c.options.Dir)
			x, err := c.Open(t.Context(), testTable)
			check(t, err)
			// Opens the database, and reads as good as nothing of it.
			if _, err := x.Lookup(t.Context(), truthFirst, "no", "such"); err != nil {
				t.Fatal(err)
			}
			check(t, damage(theRun(t, c)))
			tr.compare(t, x)
			tr.load(t, x)
			settle(t, x)
			if n := tr.compare(t, x); n != len(tr.versions) {
				t.Errorf("after it was loaded again, %d versions are covered", n)
			}
			check(t, x.Close())
			tr.check(t, c)
		})
	})
}

func TestForeignThingsInTheCache(t *testing.T) {
	tr := newTruth(t, 600, 3)
	whole := testCache(t)
	tr.keep(t, whole)
	write := func(name ...string) func(c *Cache) error {
		return func(c *Cache) error {
			run := theRun(t, c)
			return os.WriteFile(filepath.Join(append([]string{run}, name...)...), []byte("foreign"), 0o600)
		}
	}
	tableDir := func(c *Cache) string { return filepath.Join(c.options.Dir, cacheKey(testTable)) }
	for name, tt := range map[string]struct {
		// kept says that the run is still of use.
		kept bool
		put  func(c *Cache) error
	}{
		"a table in the run":        {false, write("000099.sst")},
		"a memtable in the run":     {false, write("00001.mem")},
		"a value log in the run":    {false, write("000001.vlog")},
		"a key registry in the run": {false, write("KEYREGISTRY")},
		"a file in the slot":        {true, write("..", "README")},
		"a file for a run":          {true, write("..", "77")},
		"a file in the table":       {true, write("..", "..", "README")},
		"a file in the cache":       {true, write("..", "..", "..", "README")},
		"another format": {false, func(c *Cache) error {
			run := theRun(t, c)
			s, err := parseSeal(filepath.Join(run, sealName))
			s.Format++
			return errors.Join(err, s.write(run))
		}},
		"another serial": {false, func(c *Cache) error { run := theRun(t, c); return os.Rename(run, filepath.Join(run, "..", "5")) }},
		"a run half written": {false, func(c *Cache) error {
			run := theRun(t, c)
			return os.Rename(run, run+newSuffix)
		}},
		"another table": {false, func(c *Cache) error {
			return os.WriteFile(filepath.Join(tableDir(c), tableFile), []byte("/x\n"), 0o600)
		}},
		"a file for the table": {false, func(c *Cache) error {
			return errors.Join(os.RemoveAll(tableDir(c)), os.WriteFile(tableDir(c), nil, 0o600))
		}},
		"a file for the slot": {false, func(c *Cache) error {
			slot := filepath.Join(tableDir(c), "0")
			return errors.Join(os.RemoveAll(slot), os.WriteFile(slot, nil, 0o600))
		}},
		"a directory for the lock": {true, func(c *Cache) error {
			lock := filepath.Join(tableDir(c), "0", lockFile)
			return errors.Join(os.Remove(lock), os.Mkdir(lock, 0o700))
		}},
		"a link for the slot": {false, func(c *Cache) error {
			slot := filepath.Join(tableDir(c), "0")
			return errors.Join(os.RemoveAll(slot), os.Symlink("/no/such", slot))
		}},
		"a link for the lock": {true, func(c *Cache) error {
			lock := filepath.Join(tableDir(c), "0", lockFile)
			return errors.Join(os.Remove(lock), os.Symlink("/dev/null", lock))
		}},
		"a pipe for the lock": {true, func(c *Cache) error {
			lock := filepath.Join(tableDir(c), "0", lockFile)
			return errors.Join(os.Remove(lock), unix.Mkfifo(lock, 0o600))
		}},
		"a pipe for the name of the table": {false, func(c *Cache) error {
			name := filepath.Join(tableDir(c), tableFile)
			return errors.Join(os.Remove(name), unix.Mkfifo(name, 0o600))
		}},
		"a file for the cache": {false, func(c *Cache) error {
			return errors.Join(os.RemoveAll(c.options.Dir), os.WriteFile(c.options.Dir, nil, 0o600))
		}},
		"no cache":                {false, func(c *Cache) error { return os.RemoveAll(c.options.Dir) }},
		"a cache others may fill": {false, func(c *Cache) error { return os.Chmod(c.options.Dir, 0o777) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := testCache(t)
			copyTree(t, whole.options.Dir, c.options.Dir)
			check(t, tt.put(c))
			if n := tr.check(t, c); tt.kept != (n == len(tr.versions)) {
				t.Errorf("%d of %d versions are covered", n, len(tr.versions))
			}
			tr.check(t, c)
		})
	}
}

func TestUnfinishedNameOfATableIsWrittenAgain(t *testing.T) {
	tr := newTruth(t, 600, 3)
	whole := []byte(testTable + "\n")
	for name, left := range map[string][]byte{
		"missing": nil,
		"empty":   {},
		"half":    whole[:len(whole)/2],
		"no end":  whole[:len(whole)-1],
		"zeros":   make([]byte, len(whole)),
	} {
		for _, filled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, filled %v", name, filled), func(t *testing.T) {
				c := testCache(t)
				file := filepath.Join(c.options.Dir, cacheKey(testTable), tableFile)
				if filled {
					tr.keep(t, c)
					check(t, os.Remove(file))
				} else {
					check(t, os.MkdirAll(filepath.Dir(file), 0o700))
				}
				if left != nil {
					check(t, os.WriteFile(file, left, 0o600))
				}
				tables, err := c.Tables(t.Context(), testTable)
				if check(t, err); len(tables) != 1 || tables[0].Table != "" {
					t.Errorf("looks like %+v", tables)
				}
				want := 0
				if filled {
					want = len(tr.versions)
				}
				if n := tr.check(t, c); n != want {
					t.Errorf("%d versions are covered, want %d", n, want)
				}
				if n := tr.check(t, c); n != len(tr.versions) {
					t.Errorf("what was loaded again is not kept: %d of %d versions", n, len(tr.versions))
				}
				if got, err := os.ReadFile(file); err != nil || string(got) != string(whole) {
					t.Errorf("the name is %q, %v", got, err)
				}
			})
		}
	}
}
