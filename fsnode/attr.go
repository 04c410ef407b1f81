package fsnode

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// blockSize is the preferred I/O size shown for everything.
const blockSize = 1 << 20

// stat is what a node says of itself; everything else of its attributes is
// the same for all nodes of its kind.
type stat struct {
	kind  statKind
	size  int64
	mtime time.Time
}

type statKind uint8

const (
	frozenDir  statKind = iota // no name in it can be changed
	openDir                    // shows that names can be made
	frozenFile                 // text that is generated
	dataStat                   // a committed data file
	stagedStat                 // a file being written
	linkStat                   // a symbolic link
)

// fill writes the attributes of an inode.
//
// A committed file shows write permission although its inode is never written: an
// ordinary user's `cp` onto its name in current/ must reach OPEN, and with
// default_permissions the kernel checks the mode first. Directories of a
// snapshot show it too: who may write is told EROFS, not EACCES, and a copy
// made by `cp -r` can be written and removed. A file's link count is 2,
// whatever was unlinked, because another version may name it. A directory's
// count is 1, which tools read as "not counted".
func (f *FS) fill(out *fuse.Attr, ino uint64, st stat) {
	*out = fuse.Attr{Ino: ino, Nlink: 1, Blksize: blockSize}
	switch st.kind {
	case frozenDir:
		out.Mode = syscall.S_IFDIR | f.opt.dirMode&^0o222
	case openDir:
		out.Mode = syscall.S_IFDIR | f.opt.dirMode
	case frozenFile:
		out.Mode = syscall.S_IFREG | f.opt.fileMode&^0o222
	case dataStat:
		out.Mode, out.Nlink = syscall.S_IFREG|f.opt.fileMode, 2
	case stagedStat:
		out.Mode = syscall.S_IFREG | f.opt.fileMode
	case linkStat:
		out.Mode = syscall.S_IFLNK | 0o777
	}
	out.Owner = fuse.Owner{Uid: f.opt.uid, Gid: f.opt.gid}
	out.Size = uint64(max(st.size, 0))
	out.Blocks = (out.Size + 511) / 512
	t := st.mtime
	if t.IsZero() || t.Unix() < 0 {
		t = time.Unix(0, 0)
	}
	out.SetTimes(&t, &t, &t)
}

// modeType is the type of a node as readdir shows it.
func (k statKind) modeType() uint32 {
	switch k {
	case frozenDir, openDir:
		return syscall.S_IFDIR
	case linkStat:
		return syscall.S_IFLNK
	}
	return syscall.S_IFREG
}
