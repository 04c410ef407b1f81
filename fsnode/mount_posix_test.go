package fsnode

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"
)

// TestScratchIsAnOrdinaryFileSystem runs go-fuse's conformance tests in a
// scratch directory, but for those that need what a table does not have.
func TestScratchIsAnOrdinaryFileSystem(t *testing.T) {
	without := map[string][]string{
		"symbolic links":       {"SymlinkReadlink", "SetattrSymlink", "OpenSymlinkRace"},
		"a mode of each file":  {"FileBasic"},
		"a count of links":     {"Link", "NlinkZero", "FstatDeleted"},
		"extended attributes":  {"XAttr", "XAttrLarge"},
		"files without a name": {"Tmpfile"},
		"locks in the server":  {"FcntlFlockLocksFile"},
	}
	left := maps.Clone(posixtest.All)
	for _, names := range without {
		for _, name := range names {
			delete(left, name)
		}
	}
	m := mount(t, emptyTable(t))
	for _, name := range slices.Sorted(maps.Keys(left)) {
		t.Run(name, func(t *testing.T) {
			dir := m.join("current", "."+name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			left[name](t, dir)
		})
	}
	if got := m.latest(); got != "@v0" {
		t.Errorf("scratch was committed: latest is %s", got)
	}
}
