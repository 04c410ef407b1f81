package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
)

// openAllowing opens a table that may show files in these directories.
func openAllowing(t *testing.T, dir string, allowed ...string) *Table {
	t.Helper()
	st, err := store.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(t.Context(), st, Options{Name: "t", AllowPaths: allowed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

func TestFilesOutsideTheTableAreShownWhereAllowed(t *testing.T) {
	base := t.TempDir()
	vector, size := vectorFile(t, 1, 8)
	for name, data := range map[string]string{
		"source/a b": "hello", "source/v.bin": vector, "other/c": "hello", "source/_delta_log/0.json": "hello",
	} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(base, "source")
	if err := errors.Join(os.Symlink("../other", filepath.Join(source, "link")), os.Symlink("a b", filepath.Join(source, "alias"))); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.dir = filepath.Join(base, "clone")
	f.mkdir()
	for logged, want := range map[string]error{
		"file:" + base + "/source/a%20b":                   nil,
		"file://localhost" + base + "/source/./alias":      nil,
		base + "/source/a%20b":                             nil,
		"../source/a%20b":                                  nil,
		"x/%2e%2e/../source/a%20b":                         nil,
		"file:" + base + "/source/none":                    ErrFileGone,
		"file:" + base + "/source/link/c":                  ErrOutside,
		"../source/../other/c":                             ErrOutside,
		"file:" + base + "/other/c":                        ErrOutside,
		"file:" + base + "/source/_delta_log/0.json":       ErrOutside,
		"../clone/_delta_log/00000000000000000000.json":    ErrOutside,
		"s3://bucket" + base + "/source/a%20b":             ErrOutside,
		"file:" + base + "/source%00/../../etc/passwd":     ErrOutside,
		"../../../../../../../../../../../../etc/hostname": ErrOutside,
	} {
		f.plain(addLine(logged, 5))
		table := openAllowing(t, f.dir, filepath.Join(base, "no such"), source)
		file := onlyFile(t, table, 0)
		r, err := table.Open(t.Context(), file)
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", logged, err, want)
		}
		if err == nil {
			if !r.Content().Raw() || r.File() == nil || SizeChanged(file, r) {
				t.Errorf("%s: content %+v", logged, r.Content())
			}
			r.Close()
		}
		closed := openAllowing(t, f.dir)
		if _, err := closed.Open(t.Context(), file); !errors.Is(err, ErrOutside) {
			t.Errorf("%s where nothing is allowed: %v", logged, err)
		}
	}
	add := withVector("p", "file:"+source+"/v.bin", size, 2)
	if rows, err := openAllowing(t, f.dir, source).DeletionVector(t.Context(), add); err != nil || rows.GetCardinality() != 2 {
		t.Errorf("a deletion vector: %v, %v", rows, err)
	}
	_, err := openAllowing(t, f.dir).DeletionVector(t.Context(), add)
	if !errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), "--allow-path "+source) {
		t.Errorf("a deletion vector where nothing is allowed: %v", err)
	}
}

// TestTableReachedByALinkShowsItsAbsolutePaths: the log spells the root as it
// really is.
func TestTableReachedByALinkShowsItsAbsolutePaths(t *testing.T) {
	f := newFixture(t)
	f.plain(addLine("file:"+f.dir+"/d/a", 1), addLine("../"+filepath.Base(f.dir)+"/d/b", 1)).write("d/a", "x").write("d/b", "x")
	link := filepath.Join(t.TempDir(), filepath.Base(f.dir))
	if err := os.Symlink(f.dir, link); err != nil {
		t.Fatal(err)
	}
	table := openAllowing(t, link)
	for file, err := range at(t, table, 0).Files(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := table.Open(t.Context(), file)
		if err != nil {
			t.Errorf("%s: %v", file.Path, err)
			continue
		}
		r.Close()
	}
}

// TestVectorAtAnAbsolutePathInAnOddFolder replaces a placeholder in a log by
// the URI of a folder.
func TestVectorAtAnAbsolutePathInAnOddFolder(t *testing.T) {
	root, rows := thirdPartyTables(t)
	for _, row := range rows {
		if row["class"] != "template" {
			continue
		}
		dir := filepath.Join(t.TempDir(), "a & b % c#d")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, row["table_path"]))); err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(dir, CommitName(0))
		raw, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		encoded := strings.NewReplacer("%", "%25", " ", "%20", "&", "%26", "#", "%23").Replace(dir + "/folder&with%special char")
		raw = []byte(strings.ReplaceAll(string(raw), "{{FOLDER_WITH_SPECIAL_CHAR}}", encoded))
		if err := os.WriteFile(log, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		table := openAllowing(t, dir)
		decoded := 0
		actions, err := table.ReadCommit(t.Context(), 0)
		for _, a := range actions {
			add, ok := a.(*action.Add)
			if !ok || add.DeletionVector == nil {
				continue
			}
			decoded++
			if _, err := table.DeletionVector(t.Context(), add); err != nil {
				t.Error(err)
			}
		}
		if err != nil || decoded == 0 {
			t.Errorf("%s: %d vectors, %v", row.id(), decoded, err)
		}
	}
}
