package fsnode

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/metacache"
)

func testTree(t *testing.T) (*FS, *incarnation) {
	t.Helper()
	f := &FS{opt: Options{Source: "/lake"}.settings(), spool: newSpool()}
	f.nodes = newNodeTable(&lakeDir{fs: f})
	f.tables, f.slots = map[string]*table{}, map[uint32]*incarnation{}
	f.keeper = newKeeper(f)
	inc := &incarnation{t: f.table("a/b")}
	if err := f.assignSlot(inc); err != nil {
		t.Fatal(err)
	}
	return f, inc
}

func TestEqualNodesShareOneIDUntilForgotten(t *testing.T) {
	f, inc := testTree(t)
	id, _ := f.nodes.enter(fuse.FUSE_ROOT_ID, "current", inc.liveDir(""))
	again, n := f.nodes.enter(fuse.FUSE_ROOT_ID, "current", inc.liveDir(""))
	if id != again {
		t.Fatalf("one directory has ids %d and %d", id, again)
	}
	if got, ok := f.nodes.get(id); !ok || got != n {
		t.Fatalf("get(%d) = %v, %v", id, got, ok)
	}
	f.nodes.forget(id, 1)
	if _, ok := f.nodes.get(id); !ok {
		t.Fatal("forgotten while the kernel still counts one lookup")
	}
	f.nodes.forget(id, 1)
	if _, ok := f.nodes.get(id); ok || inc.t.known.Load() != 0 {
		t.Fatalf("still known after the last lookup, %d counted", inc.t.known.Load())
	}
	if next, _ := f.nodes.enter(fuse.FUSE_ROOT_ID, "current", inc.liveDir("")); next == id {
		t.Error("a forgotten id was used again")
	}
}

func TestRootIsNeverForgotten(t *testing.T) {
	f, _ := testTree(t)
	f.nodes.forget(fuse.FUSE_ROOT_ID, 100)
	if _, ok := f.nodes.get(fuse.FUSE_ROOT_ID); !ok {
		t.Fatal("root is gone")
	}
}

func TestDataFilesAreNotKept(t *testing.T) {
	f, inc := testTree(t)
	before := f.nodes.count()
	ref := fileRef{inc.slot, 0, 42}
	want, _ := ref.nodeID()
	id, _ := f.nodes.enter(fuse.FUSE_ROOT_ID, "x.parquet", &dataFile{inc: inc, id: want})
	if id != want || f.nodes.count() != before {
		t.Errorf("id %#x instead of %#x, %d nodes instead of %d", id, want, f.nodes.count(), before)
	}
}

func TestRemovedDirectoryGetsANewNode(t *testing.T) {
	f, inc := testTree(t)
	first := inc.liveDir("p=1")
	id, _ := f.nodes.enter(2, "p=1", first)
	inc.retire("p=1")
	second := inc.liveDir("p=1")
	again, _ := f.nodes.enter(2, "p=1", second)
	if id == again {
		t.Error("the kernel takes the removed directory's node for dead")
	}
	if first.key().ino() == second.key().ino() {
		t.Error("both have one inode number")
	}
}

func TestRenamedDirectoryKeepsItsNode(t *testing.T) {
	f, inc := testTree(t)
	dir, _ := f.nodes.enter(2, "_tmp", inc.liveDir("_tmp"))
	sub, _ := f.nodes.enter(dir, "a", inc.liveDir("_tmp/a"))
	other, _ := f.nodes.enter(2, "_tmp2", inc.liveDir("_tmp2"))
	f.moveDirs(inc, "_tmp", "_done")
	for id, want := range map[uint64]string{dir: "_done", sub: "_done/a", other: "_tmp2"} {
		n, ok := f.nodes.get(id)
		if !ok || n.(*liveDir).path != want {
			t.Errorf("node %d is at %v, not at %s", id, n, want)
		}
		if again, ok := f.nodes.idOf(inc.liveDir(want).key()); !ok || again != id {
			t.Errorf("%s is found as node %d, not %d", want, again, id)
		}
	}
	if id, _ := f.nodes.enter(2, "_tmp", inc.liveDir("_tmp")); id == dir {
		t.Error("a new directory at the old name has the moved one's node")
	}
}

func TestInodeNumbersOfNodesNeverMeetThoseOfFiles(t *testing.T) {
	_, inc := testTree(t)
	seen := map[uint64]nodeKey{}
	for v := range int64(1000) {
		for _, k := range []nodeKey{
			inc.snapshotDir(v, "").key(), inc.snapshotDir(v, "p=1").key(), inc.controlAt(v).key(),
			(&link{inc, "latest", v}).key(), (&textFile{inc.controlAt(v), textDDL}).key(),
		} {
			ino := k.ino()
			if other, taken := seen[ino]; taken && other != k {
				t.Fatalf("%+v and %+v have one number", k, other)
			}
			if isDataFile(ino) || ino <= fuse.FUSE_ROOT_ID {
				t.Fatalf("%+v has number %#x", k, ino)
			}
			seen[ino] = k
		}
	}
}

func TestPlacesAreThoseOfTheTable(t *testing.T) {
	f, inc := testTree(t)
	other := &incarnation{t: f.table("other")}
	parent, _ := f.nodes.enter(fuse.FUSE_ROOT_ID, "b", &tableDir{inc.t})
	f.nodes.enter(parent, "@v3", inc.snapshotDir(3, ""))
	f.nodes.enter(9, "@v4", other.snapshotDir(4, ""))
	got := f.nodes.places(inc.t)
	if len(got) != 2 {
		t.Fatalf("places = %v", got)
	}
	for _, p := range got {
		if p != (place{fuse.FUSE_ROOT_ID, "b"}) && p != (place{parent, "@v3"}) {
			t.Errorf("unexpected %v", p)
		}
	}
}

func TestSlotsAreNotUsedTwiceInARow(t *testing.T) {
	f, inc := testTree(t)
	old := inc.slot
	f.end(inc)
	next := &incarnation{t: inc.t}
	if err := f.assignSlot(next); err != nil {
		t.Fatal(err)
	}
	if next.slot == old {
		t.Error("the slot of a dead incarnation was used again at once")
	}
	if _, ok := f.incarnation(old); ok {
		t.Error("the old slot still resolves")
	}
}

func TestSlotIsKeptAsLongAsTheKernelKnowsItsNodes(t *testing.T) {
	f, inc := testTree(t)
	id, _ := f.nodes.enter(fuse.FUSE_ROOT_ID, "@v1", inc.snapshotDir(1, ""))
	f.end(inc)
	f.lastSlot = inc.slot - 1
	next := &incarnation{t: inc.t}
	if err := f.assignSlot(next); err != nil {
		t.Fatal(err)
	}
	if next.slot == inc.slot {
		t.Error("a file of the old incarnation would pass for one of the new")
	}
	if _, err := f.dataFile(t.Context(), dataID(t, inc, 7)); !errors.Is(err, errStale) {
		t.Errorf("a file of the old incarnation: %v", err)
	}
	f.Forget(id, 1)
	if _, ok := f.incarnation(inc.slot); ok {
		t.Error("the slot is kept when the kernel has forgotten the incarnation")
	}
}

func dataID(t *testing.T, inc *incarnation, file metacache.FileID) uint64 {
	t.Helper()
	id, ok := fileRef{inc.slot, 0, file}.nodeID()
	if !ok {
		t.Fatal("no id")
	}
	return id
}

func TestForgottenNodesTakeNoMemory(t *testing.T) {
	f, inc := testTree(t)
	const nodes, kept = 2 * smallTable, 100
	ids := map[string]uint64{}
	for i := range nodes {
		path := fmt.Sprintf("day=%d", i)
		ids[path], _ = f.nodes.enter(fuse.FUSE_ROOT_ID, path, inc.liveDir(path))
	}
	for i := kept; i < nodes; i++ {
		f.nodes.forget(ids[fmt.Sprintf("day=%d", i)], 1)
	}
	if most := f.nodes.most; most > nodes/shrinkBelow || len(f.nodes.byKey) != len(f.nodes.byID) {
		t.Errorf("the maps have room for %d of %d nodes; %d and %d are there", most, nodes, len(f.nodes.byID), len(f.nodes.byKey))
	}
	for i := range kept {
		path := fmt.Sprintf("day=%d", i)
		if id, _ := f.nodes.enter(fuse.FUSE_ROOT_ID, path, inc.liveDir(path)); id != ids[path] {
			t.Errorf("%s was %d and is %d", path, ids[path], id)
		}
	}
}
