package fsnode

import (
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/metacache"
)

func TestNodeIDNamesFileAndBack(t *testing.T) {
	for _, ref := range []fileRef{
		{slot: 1, id: 1},
		{slot: 1, ordinal: 1, id: 1},
		{slot: maxSlot, ordinal: maxOrdinal, id: maxFileID},
		{slot: 7, ordinal: 3, id: 1 << 33},
	} {
		id, ok := ref.nodeID()
		if !ok || !isDataFile(id) || id == fuse.FUSE_ROOT_ID {
			t.Fatalf("%+v: id %#x, ok %v", ref, id, ok)
		}
		if id == ^uint64(0) {
			t.Errorf("%+v takes the id that go-fuse reserves", ref)
		}
		if got := unpackFile(id); got != ref {
			t.Errorf("%+v came back as %+v", ref, got)
		}
	}
}

func TestNodeIDRefusesWhatDoesNotFit(t *testing.T) {
	for _, ref := range []fileRef{
		{slot: maxSlot + 1, id: 1},
		{slot: 1, ordinal: maxOrdinal + 1, id: 1},
		{slot: 1, id: 0},
		{slot: 1, id: metacache.FileID(maxFileID) + 1},
	} {
		if id, ok := ref.nodeID(); ok {
			t.Errorf("%+v was numbered %#x", ref, id)
		}
	}
}

func TestNodeIDsOfOrdinalsAndSlotsDiffer(t *testing.T) {
	seen := map[uint64]fileRef{}
	for slot := range uint32(4) {
		for ordinal := range uint32(4) {
			for id := metacache.FileID(1); id < 5; id++ {
				ref := fileRef{slot + 1, ordinal, id}
				n, _ := ref.nodeID()
				if other, taken := seen[n]; taken {
					t.Fatalf("%+v and %+v have one id", ref, other)
				}
				seen[n] = ref
			}
		}
	}
}
