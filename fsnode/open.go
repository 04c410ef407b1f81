package fsnode

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// Open implements fuse.RawFileSystem.
func (f *FS) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	ctx := f.begin(cancel)
	defer ctx.end()
	n, err := f.resolve(ctx, in.NodeId)
	if err != nil {
		return f.fail(nil, "open", "", err)
	}
	wants := in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY
	if wants {
		err = f.mayWrite()
	}
	if err == nil {
		err = f.openNode(ctx, in, n, wants, out)
	}
	return f.failAt(n, "open", "", err)
}

// openNode opens what the node is.
func (f *FS) openNode(ctx context.Context, in *fuse.OpenIn, n node, wants bool, out *fuse.OpenOut) error {
	switch n := n.(type) {
	case *dataFile:
		if wants {
			return f.wantWrite(ctx, in, n)
		}
		return f.openData(ctx, n, out)
	case *stagedFile:
		return f.openStaged(ctx, in, n, wants, out)
	case *rowsFile:
		if wants {
			return errImmutable
		}
		return f.openRows(ctx, n, out)
	case *spoolFile:
		if wants {
			return refusal(n)
		}
		return f.openSpooled(ctx, n, out)
	case *logFile:
		if wants {
			return refusal(n)
		}
		return f.openLogFile(ctx, n, out)
	case *textFile, *reasonFile, *rejectedFile:
		if wants {
			return fault.New(errForbidden, "cannot be written").WithHint("copy it out of the mount")
		}
		return f.openText(ctx, n, out)
	}
	return errIsDir
}

// wantWrite answers a write open of a committed file. The inode is shared with
// every snapshot that holds the file and is never written: the writer binds a
// staged file to the name, and on ESTALE the kernel looks the name up again.
func (f *FS) wantWrite(ctx context.Context, in *fuse.OpenIn, d *dataFile) error {
	file, err := d.inc.snap.FileByID(ctx, d.ID)
	file.SchemaOrdinal = d.SchemaOrdinal
	if errors.Is(err, snapshot.ErrNotExist) {
		return errStale // it went with the versions that the index has dropped
	}
	if err == nil {
		err = d.inc.live.WantWrite(ctx, caller(&in.InHeader), file)
	}
	if err != nil {
		return err
	}
	return errStale
}

// dataHandle reads a committed file.
type dataHandle struct {
	files *openFiles
	of    *openFile
}

func (f *FS) openData(ctx context.Context, d *dataFile, out *fuse.OpenOut) error {
	of, err := f.files.acquire(ctx, d)
	if errors.Is(err, snapshot.ErrFileGone) && d.goneWithTable(ctx) {
		return errStale // the kernel looks the name up again
	}
	if err != nil {
		return err
	}
	if snapshot.SizeChanged(*d.File, of.reader) {
		f.notifier.do(func() { f.invalidate(d.id) })
	}
	out.Fh = f.handles.add(&dataHandle{f.files, of})
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH
	if of.backing > 0 {
		out.OpenFlags, out.BackingID = fuse.FOPEN_PASSTHROUGH|fuse.FOPEN_NOFLUSH, of.backing
	}
	return nil
}

func (h *dataHandle) release() { h.files.release(h.of) }

// spliceFrom is how many bytes are spliced rather than copied: splicing takes
// more system calls.
const spliceFrom = 32 << 10

// read gives the kernel the file's descriptor to splice from where many bytes
// are served as they lie on disk. More than is there must not be promised, or
// the splice has to be done again.
func (h *dataHandle) read(ctx context.Context, buf []byte, off int64) (fuse.ReadResult, error) {
	r := h.of.reader
	buf = buf[:max(0, min(int64(len(buf)), r.Content().Size-off))]
	if len(buf) >= spliceFrom {
		if file, at := r.RawRange(off, int64(len(buf))); file != nil {
			return fuse.ReadResultFd(file.Fd(), at, len(buf)), nil
		}
	}
	n, err := r.ReadAtContext(ctx, buf, off)
	return readResult(buf, n, err)
}

// readAt reads what there is; less than was asked for is the end of the file.
func readAt(r io.ReaderAt, buf []byte, off int64) (fuse.ReadResult, error) {
	n, err := r.ReadAt(buf, off)
	return readResult(buf, n, err)
}

func readResult(buf []byte, n int, err error) (fuse.ReadResult, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return fuse.ReadResultData(buf[:n]), nil
}

// textHandle reads text as it was when it was opened.
type textHandle struct{ text []byte }

func (h *textHandle) release() {}

func (h *textHandle) read(_ context.Context, buf []byte, off int64) (fuse.ReadResult, error) {
	if off >= int64(len(h.text)) {
		return fuse.ReadResultData(nil), nil
	}
	return fuse.ReadResultData(h.text[off:min(int64(len(h.text)), off+int64(len(buf)))]), nil
}

// localHandle reads a file of the staging area.
type localHandle struct{ file *os.File }

func (h *localHandle) release() { h.file.Close() }

func (h *localHandle) read(_ context.Context, buf []byte, off int64) (fuse.ReadResult, error) {
	return readAt(h.file, buf, off)
}

func (f *FS) openText(ctx context.Context, n node, out *fuse.OpenOut) error {
	if r, ok := n.(*rejectedFile); ok {
		file, err := os.Open(r.Path)
		if err != nil {
			return err
		}
		out.Fh = f.handles.add(&localHandle{file})
		return nil
	}
	text, err := n.(interface {
		content(context.Context) ([]byte, error)
	}).content(ctx)
	if err != nil {
		return err
	}
	out.Fh = f.handles.add(&textHandle{text})
	if isImmutable(n) {
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH
	} else {
		out.OpenFlags = fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NOFLUSH // the size at stat may be another by now
	}
	return nil
}

// Read implements fuse.RawFileSystem.
func (f *FS) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	ctx := f.begin(cancel)
	defer ctx.end()
	h, ok := lookupHandle[fileHandle](&f.handles, in.Fh)
	if !ok {
		return nil, fuse.EBADF
	}
	res, err := h.read(ctx, buf[:min(len(buf), int(in.Size))], int64(in.Offset))
	if err != nil {
		return nil, f.failNode(in.NodeId, "read", "", err)
	}
	return res, fuse.OK
}

// Release implements fuse.RawFileSystem. It commits nothing: the kernel sends
// it some time after close(2) has returned.
func (f *FS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) { f.handles.remove(in.Fh) }

// failNode is fail for operations that know only a node id, and perhaps a
// name below it.
func (f *FS) failNode(id uint64, op, name string, err error) fuse.Status {
	n, rerr := f.resolve(f.ctx, id)
	if rerr != nil {
		return f.fail(nil, op, name, err)
	}
	return f.failAt(n, op, name, err)
}

// nodeName is how messages call a node.
func nodeName(n node) string {
	switch n := n.(type) {
	case *dataFile:
		return path.Join(n.Dir, n.Name)
	case *liveDir:
		return path.Join(nameCurrent, n.path)
	case *snapshotDir:
		return path.Join(versionName(n.version), n.path)
	case *textFile:
		return n.name
	case *rowsFile:
		return n.name
	case *spoolFile:
		return path.Join(versionName(n.version), n.dir, n.name)
	case *servedLog:
		return path.Join(versionName(n.version), logDir)
	case *rawLog:
		return path.Join(versionName(n.version), logDir, n.sub)
	case *rawDir:
		return path.Join(versionName(n.version), n.path)
	case *logFile:
		return path.Join(versionName(n.version), n.dir, n.name)
	case *rejectedFile:
		return n.Name
	case *controlDir:
		return nameControl
	case *stageDir:
		return nameStage
	case *rejectedDir:
		return path.Join(nameStage, nameRejected)
	case *lakeDir:
		return n.rel
	}
	return ""
}

func (f *FS) invalidate(id uint64) {
	if k := f.kernel(); k != nil {
		k.InodeNotify(id, 0, 0)
	}
}
