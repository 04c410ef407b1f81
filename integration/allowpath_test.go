package integration

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/integration/harness"
)

// TestAllowPathShowsAShallowClone: the files of a clone lie in the table that it
// was made of, and one of them is in a folder that nobody allowed.
func TestAllowPathShowsAShallowClone(t *testing.T) {
	base := t.TempDir()
	source := filepath.Join(base, "source, one")
	data := fixture.Parquet(fixture.Rows(0, 1000))
	for _, dir := range []string{source, filepath.Join(base, "other")} {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "a.parquet"), data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	clone, err := fixture.Create(filepath.Join(base, "clone"), fixture.Spec{})
	if err == nil {
		err = clone.Commit("CLONE", addPath("file:"+strings.ReplaceAll(source, " ", "%20")+"/a.parquet", int64(len(data))),
			addPath("file:"+base+"/other/a.parquet?", int64(len(data))))
	}
	if err != nil {
		t.Fatal(err)
	}
	m := harness.Start(t, clone.Dir, "--allow-path", source, "--allow-path", filepath.Join(base, "clone"))
	if got, err := os.ReadFile(m.Path("@v1", "a.parquet")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, err = os.ReadFile(m.Path("@v1", "a.parquet?"))
	if !errors.Is(err, syscall.EACCES) {
		t.Errorf("a file that nobody allowed: %v", err)
	}
	hinted := false
	for _, f := range m.Failures() {
		hinted = hinted || strings.Contains(f.Hint, "--allow-path "+base+"/other")
	}
	if !hinted {
		t.Errorf("nothing says how to show it: %+v", m.Failures())
	}
}
