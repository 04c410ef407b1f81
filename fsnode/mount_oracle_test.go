package fsnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// oracle is what a correct reader finds in a published table.
type oracle struct {
	Class       string   `json:"class"`
	TablePath   string   `json:"tablePath"`
	Features    []string `json:"features"`
	Rebuildable []int64  `json:"reconstructableVersions"`
	Versions    []struct {
		Version     int64           `json:"version"`
		Rebuildable bool            `json:"reconstructable"`
		NumFiles    int             `json:"numFiles"`
		Size        int64           `json:"sizeInBytes"`
		Files       json.RawMessage `json:"files"`
	} `json:"versions"`
}

// plain says that nothing in the table may be refused.
func (o *oracle) plain() bool {
	return (o.Class == "ok" || o.Class == "log-only") && !slices.ContainsFunc(o.Features, func(f string) bool {
		return slices.Contains([]string{"DV", "CM:name", "CM:id", "TW", "V2CK", "VARIANT"}, f)
	})
}

// publishedTables returns the folder of the published tables and what is known
// of each.
func publishedTables(t *testing.T) (string, []oracle) {
	t.Helper()
	dir := os.Getenv("DELTAFS_TABLES")
	if dir == "" {
		t.Skip("DELTAFS_TABLES does not name the folder of the published tables")
	}
	var out []oracle
	err := filepath.WalkDir(filepath.Join(dir, "expected"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var o oracle
		if err := json.Unmarshal(b, &o); err != nil {
			return err
		}
		out = append(out, o)
		return nil
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%d tables, %v", len(out), err)
	}
	return dir, out
}

// TestPublishedTablesInOneLake checks the versions of every published table,
// and of every version that may be read the number of files and bytes; at the
// latest the bytes themselves.
func TestPublishedTablesInOneLake(t *testing.T) {
	dir, tables := publishedTables(t)
	all := ListAll
	m := mount(t, filepath.Join(dir, "data"), func(o *Options) { o.ReadOnly, o.ListVersions, o.Logger = true, &all, nil })
	shown, compared := 0, 0
	for _, o := range tables {
		rel := strings.TrimPrefix(o.TablePath, "data/")
		entries, err := os.ReadDir(m.join(rel))
		if err != nil && len(o.Rebuildable) > 0 {
			t.Errorf("%s: %v", rel, err)
			continue
		}
		var versions []int64
		for _, e := range entries {
			if v, ok := parseVersion(e.Name()); ok {
				versions = append(versions, v)
			}
		}
		slices.Sort(versions)
		if !slices.Equal(versions, o.Rebuildable) {
			t.Errorf("%s: shows %d versions, %d can be rebuilt", rel, len(versions), len(o.Rebuildable))
		}
		for _, v := range o.Versions {
			if !v.Rebuildable {
				continue
			}
			files, err := m.walk(rel, versionName(v.Version))
			if errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EIO) {
				if o.plain() {
					t.Errorf("%s@v%d is refused: %v", rel, v.Version, err)
				}
				continue
			}
			var bytes int64
			for _, f := range files {
				bytes += f.size
			}
			if err != nil || len(files) != v.NumFiles || bytes != v.Size {
				t.Errorf("%s@v%d: %d files of %d, %d bytes of %d, %v", rel, v.Version, len(files), v.NumFiles, bytes, v.Size, err)
			}
			shown++
			compared += compareFiles(t, filepath.Join(dir, o.TablePath), files, v.Files)
		}
	}
	if shown < 500 || compared < 400 {
		t.Errorf("only %d versions were shown and %d files compared", shown, compared)
	}
}

type walked struct {
	path string
	size int64
}

func (m *testMount) walk(parts ...string) ([]walked, error) {
	var out []walked
	err := filepath.WalkDir(m.join(parts...), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		out = append(out, walked{path, fi.Size()})
		return nil
	})
	return out, err
}

// compareFiles reads the files of a version and returns how many are, byte for
// byte, the ones that the oracle lists; a file that was published without its
// data must fail to open.
func compareFiles(t *testing.T, table string, shown []walked, listed json.RawMessage) (compared int) {
	t.Helper()
	var files []struct {
		Decoded string `json:"decoded"`
	}
	if json.Unmarshal(listed, &files) != nil {
		return 0 // the oracle lists paths only, or nothing, for older versions
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(table, f.Decoded))
		name := strings.TrimSuffix(filepath.Base(f.Decoded), ".parquet")
		found := false
		for _, s := range shown {
			if !strings.HasPrefix(filepath.Base(s.path), name) {
				continue
			}
			got, readErr := os.ReadFile(s.path)
			found = found || err == nil && bytes.Equal(got, want) || err != nil && errors.Is(readErr, syscall.EIO)
		}
		if !found {
			t.Errorf("%s: %s is not shown as it is", table, f.Decoded)
		}
		if err == nil {
			compared++
		}
	}
	return compared
}
