package fsnode

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/writer"
)

// nodeKind is part of a node's identity.
type nodeKind uint8

const (
	kindLake nodeKind = iota + 1
	kindTable
	kindSnapshotDir
	kindLiveDir
	kindControl
	kindText
	kindSpooled
	kindRows
	kindLogFile
	kindServedLog
	kindRawDir
	kindLink
	kindStage
	kindRejectedDir
	kindRejected
	kindStaged
	kindData
)

// nodeKey identifies a node: equal keys are one inode.
type nodeKey struct {
	kind nodeKind
	// table is nil in a lake, above the tables.
	table *table
	// inc is the table's incarnation; nil for nodes that outlive it.
	inc *incarnation
	// number is a version, an epoch or the id of a staged file.
	number int64
	// path is relative to what the other members name.
	path string
}

// ino is the inode number shown for the key: stable while the mount lives,
// and never equal to the number of a data file, which is its node id.
func (k nodeKey) ino() uint64 {
	h := fnv.New64a()
	var head [13]byte
	head[0] = byte(k.kind)
	if k.inc != nil {
		binary.LittleEndian.PutUint32(head[1:], k.inc.slot)
	}
	binary.LittleEndian.PutUint64(head[5:], uint64(k.number))
	h.Write(head[:])
	if k.table != nil {
		h.Write([]byte(k.table.rel))
	}
	h.Write([]byte{0})
	h.Write([]byte(k.path))
	ino := h.Sum64() &^ dataBit
	if ino <= 1 { // 0 means "none" to many tools and 1 is the root
		ino += 2
	}
	return ino
}

// count counts a node that the kernel begins (1) or ceases (-1) to know.
func (k nodeKey) count(n int64) {
	if k.table != nil {
		k.table.known.Add(n)
	}
	if k.inc != nil {
		k.inc.known.Add(n)
	}
}

// node is anything in the tree.
type node interface {
	// key is the node's identity; of a data file only the table is set.
	key() nodeKey
	// kind is what the node is, without I/O.
	kind() statKind
	// stat returns the node's attributes.
	stat(ctx context.Context) (stat, error)
	// attrTTL is how long the kernel may keep them.
	attrTTL() time.Duration
}

// directory is a node that holds names.
type directory interface {
	node
	// lookup resolves a name. A child without a node says that there is none
	// and that the kernel may remember it; so does a not-found error, without
	// the remembering.
	lookup(ctx context.Context, c writer.Caller, name string) (child, error)
	// list yields the visible names in a stable order. An error ends it. What a
	// child holds is valid until the next step.
	list(ctx context.Context) iter.Seq2[child, error]
}

// resumable is a directory that lists the same names whenever it is asked, so
// that a listing can go on after a name.
type resumable interface {
	directory
	listAfter(ctx context.Context, name string) iter.Seq2[child, error]
	// settled reports whether the attributes of what was listed are those that
	// a listing would give now.
	settled() bool
}

// child is what a name in a directory means.
type child struct {
	name string
	node node
	// ttl is how long the kernel may keep the name.
	ttl time.Duration
}

// inode is a node that the kernel knows.
type inode struct {
	id uint64
	node
	// lookups is the kernel's count; parent and name say where it was last
	// found, for invalidation.
	lookups uint64
	parent  uint64
	name    string
}

// nodeTable holds the nodes that the kernel knows.
type nodeTable struct {
	mu     sync.Mutex
	serial uint64
	byID   map[uint64]*inode
	byKey  map[nodeKey]*inode
	// most is how many nodes there were since the maps were made: they do not
	// shrink by themselves.
	most int
}

const (
	// shrinkBelow is the part of most at which the maps are made again, and
	// smallTable is not worth it.
	shrinkBelow = 4
	smallTable  = 10_000
)

// shrink makes the maps again if the kernel has forgotten most of what it knew;
// t.mu is held.
func (t *nodeTable) shrink() {
	if t.most < smallTable || len(t.byID) > t.most/shrinkBelow {
		return
	}
	byID, byKey := make(map[uint64]*inode, len(t.byID)), make(map[nodeKey]*inode, len(t.byKey))
	maps.Copy(byID, t.byID)
	maps.Copy(byKey, t.byKey)
	t.byID, t.byKey, t.most = byID, byKey, len(byID)
}

// newNodeTable makes the table with its root, which is never forgotten.
func newNodeTable(root node) *nodeTable {
	in := &inode{id: fuse.FUSE_ROOT_ID, node: root, lookups: 1}
	root.key().count(1)
	return &nodeTable{
		serial: fuse.FUSE_ROOT_ID,
		byID:   map[uint64]*inode{in.id: in},
		byKey:  map[nodeKey]*inode{root.key(): in},
	}
}

// get returns the node with this id.
func (t *nodeTable) get(id uint64) (node, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, ok := t.byID[id]
	if !ok {
		return nil, false
	}
	return in.node, true
}

// enter counts one lookup of n, found as name in parent, and returns its id
// and the node that stands for it (an equal one entered before wins). A data
// file needs no entry.
func (t *nodeTable) enter(parent uint64, name string, n node) (uint64, node) {
	if d, ok := n.(*dataFile); ok {
		return d.id, d
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := n.key()
	in, ok := t.byKey[k]
	if !ok {
		t.serial++
		in = &inode{id: t.serial, node: n}
		t.byID[in.id], t.byKey[k] = in, in
		t.most = max(t.most, len(t.byID))
		k.count(1)
	}
	if in.id != fuse.FUSE_ROOT_ID {
		in.lookups++
		in.parent, in.name = parent, name
	}
	return in.id, in.node
}

// forget takes n lookups back. With the last it drops the node and returns its
// key.
func (t *nodeTable) forget(id, n uint64) (gone nodeKey, last bool) {
	if isDataFile(id) || id == fuse.FUSE_ROOT_ID {
		return nodeKey{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	in, ok := t.byID[id]
	if !ok {
		return nodeKey{}, false
	}
	if in.lookups > n {
		in.lookups -= n
		return nodeKey{}, false
	}
	delete(t.byID, id)
	k := in.key()
	if t.byKey[k] == in {
		delete(t.byKey, k)
	}
	k.count(-1)
	t.shrink()
	return k, true
}

// idOf returns the id under which the kernel knows the node with this key.
func (t *nodeTable) idOf(k nodeKey) (uint64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, ok := t.byKey[k]
	if !ok {
		return 0, false
	}
	return in.id, true
}

// rename moves the live directories at and below old, of one incarnation, to
// their new path: the kernel keeps their node ids.
func (t *nodeTable) rename(inc *incarnation, old, new string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, in := range t.byID {
		d, ok := in.node.(*liveDir)
		if !ok || d.inc != inc || (d.path != old && !strings.HasPrefix(d.path, old+"/")) {
			continue
		}
		if k := in.key(); t.byKey[k] == in {
			delete(t.byKey, k)
		}
		in.node = inc.liveDir(new + strings.TrimPrefix(d.path, old))
		t.byKey[in.key()] = in
	}
}

// place is where a node was found.
type place struct {
	parent uint64
	name   string
}

// places returns where the kernel found the nodes of a table, and how many
// there are.
func (t *nodeTable) places(of *table) []place {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []place
	for _, in := range t.byID {
		if in.id != fuse.FUSE_ROOT_ID && in.key().table == of {
			out = append(out, place{in.parent, in.name})
		}
	}
	return out
}

// liveDirs returns the ids of the directories of current/ that the kernel knows.
func (t *nodeTable) liveDirs(of *incarnation) []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []uint64
	for _, in := range t.byID {
		if d, ok := in.node.(*liveDir); ok && d.inc == of {
			out = append(out, in.id)
		}
	}
	return out
}

// count returns how many nodes are known.
func (t *nodeTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
