package writer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/metacache"
	"github.com/deltafs/deltafs/snapshot"
)

// fakeBack is a table in memory, with its data files on disk, whose Parquet
// files are easy to make: they begin with PAR1 and end with fakeTail.
type fakeBack struct {
	root   string
	fields []snapshot.Field

	mu       sync.Mutex
	versions []*fakeView
	log      [][]action.Action
	specs    []*TxnSpec
	// objects are the names of the data files, in the order of their making.
	objects []string
	nextID  metacache.FileID
	adds    map[metacache.FileID]*action.Add
	judged  int
	// shown lags behind the log until Refresh.
	shown int
	// commitErr, if set, may refuse a commit; after says that it is in the log
	// all the same.
	commitErr func(spec *TxnSpec) (err error, after bool)
	// publishErr and writableErr refuse.
	publishErr, writableErr error
	// at, if set, is called at points where a mount may be killed.
	at func(point string)
	// found, if set, is called when a name was looked up in a version and
	// before the answer is used.
	found func(name string)
}

func (b *fakeBack) point(name string) {
	if b.at != nil {
		b.at(name)
	}
}

const fakeTail = "foot" + "PAR1"

// fakeFile is a complete file with the given payload.
func fakeFile(payload string) []byte { return []byte("PAR1" + payload + fakeTail) }

func newFakeBack(t *testing.T, columns ...string) *fakeBack {
	b := &fakeBack{root: t.TempDir(), adds: map[metacache.FileID]*action.Add{}}
	for _, c := range columns {
		b.fields = append(b.fields, snapshot.Field{Name: c, Type: &snapshot.Primitive{Name: "string"}, Nullable: true})
	}
	b.versions = []*fakeView{{back: b, meta: &action.Metadata{PartitionColumns: columns, Configuration: map[string]string{}}}}
	b.log = [][]action.Action{nil}
	return b
}

func (b *fakeBack) open(t *testing.T, o Options) *Live {
	t.Helper()
	if o.Report == nil {
		o.Report = func(op, name string, err error) { t.Logf("report: %s %s: %v", op, name, err) }
	}
	l, err := openLive(context.Background(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (b *fakeBack) Name() string { return "fake" }
func (b *fakeBack) Root() string { return b.root }

func (b *fakeBack) View(ctx context.Context) (view, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.versions[b.shown], nil
}

func (b *fakeBack) Refresh(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown = len(b.versions) - 1
	return nil
}

func (b *fakeBack) Actions(ctx context.Context, v int64) ([]action.Action, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log[v], nil
}

func (b *fakeBack) Writable(ctx context.Context) error { return b.writableErr }

func (b *fakeBack) Judge(ctx context.Context, v view, f *os.File, size int64, p place) (*verdict, error) {
	b.point("before the check")
	b.mu.Lock()
	b.judged++
	b.mu.Unlock()
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case !bytes.HasPrefix(data, []byte("PAR1")) || !bytes.HasSuffix(data, []byte(fakeTail)):
		return nil, errNotYet
	case bytes.Count(data, []byte(fakeTail)) > 1:
		return nil, fault.New(ErrIncomplete, "two files joined")
	case !p.full():
		return nil, p.errNotPlaced()
	case bytes.Contains(data, []byte("MISFIT")):
		return nil, fault.New(ErrMisfit, "it does not fit").WithHint("do not do that")
	}
	return &verdict{Rows: 1, Stats: `{"numRecords":1}`, For: v.Metadata()}, nil
}

func (b *fakeBack) DataPath(v view, p place, id, codec string) (object, addPath string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	object = dataFile("", id, "")
	b.objects = append(b.objects, object)
	return object, object
}

// object is the name of the n-th data file, from 1.
func (b *fakeBack) object(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[n-1]
}

func (b *fakeBack) Publish(ctx context.Context, f *os.File, object string) error {
	if b.publishErr != nil {
		return b.publishErr
	}
	b.point("before publishing")
	defer b.point("after publishing")
	return os.Link(fmt.Sprintf("%s/%s", b.root, b.staged(f)), filepath.Join(b.root, object))
}

// staged finds a name of an open file below the root.
func (b *fakeBack) staged(f *os.File) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		panic(err)
	}
	real, err := filepath.EvalSymlinks(b.root)
	if err != nil {
		panic(err)
	}
	rel, err := filepath.Rel(real, name)
	if err != nil {
		panic(err)
	}
	return rel
}

func (b *fakeBack) Unpublish(ctx context.Context, object string) error {
	return os.RemoveAll(filepath.Join(b.root, object))
}

func (b *fakeBack) OpenObject(ctx context.Context, object string) (committedReader, error) {
	f, err := os.Open(filepath.Join(b.root, object))
	if err != nil {
		return nil, err
	}
	return &fakeReader{f, f}, nil
}

type fakeReader struct {
	io.ReaderAt
	file *os.File
}

func (r *fakeReader) File() *os.File { return r.file }
func (r *fakeReader) Size() int64 {
	info, err := r.file.Stat()
	if err != nil {
		return -1
	}
	return info.Size()
}

func (r *fakeReader) Close() error { return r.file.Close() }

func (b *fakeBack) OpenFile(ctx context.Context, f snapshot.File) (committedReader, error) {
	return b.OpenObject(ctx, f.Path)
}

func (b *fakeBack) Committed(ctx context.Context, since int64, ids map[string]bool) (map[string]bool, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string]bool{}
	for v := since + 1; v < int64(len(b.log)); v++ {
		for _, a := range b.log[v] {
			if add, ok := a.(*action.Add); ok {
				if id, _, ok := dataID([]byte(add.Path)); ok && ids[id] {
					found[id] = true
				}
			}
		}
	}
	return found, true, nil
}

func (b *fakeBack) Commit(ctx context.Context, spec *TxnSpec) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if b.commitErr != nil {
		if err, after := b.commitErr(spec); err != nil {
			if after {
				if _, err := b.commit(spec); err != nil {
					return 0, err
				}
			}
			return 0, err
		}
	}
	b.point("before the commit")
	defer b.point("after the commit")
	return b.commit(spec)
}

func (b *fakeBack) commit(spec *TxnSpec) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.versions[len(b.versions)-1]
	if !spec.BlindAppend() {
		for _, read := range spec.ReadFiles {
			if !slices.ContainsFunc(last.files, func(f snapshot.File) bool { return f.Path == read }) {
				return 0, fault.New(ErrConflict, "%s is gone", read)
			}
		}
	}
	next := &fakeView{back: b, version: last.version + 1, meta: last.meta, files: slices.Clone(last.files)}
	for _, a := range spec.Actions {
		if r, ok := a.(*action.Remove); ok {
			next.files = slices.DeleteFunc(next.files, func(f snapshot.File) bool { return f.Path == r.Path })
		}
	}
	for _, a := range spec.Actions {
		if add, ok := a.(*action.Add); ok {
			next.files = slices.DeleteFunc(next.files, func(f snapshot.File) bool { return f.Path == add.Path })
			b.nextID++
			b.adds[b.nextID] = add
			next.files = append(next.files, snapshot.File{
				ID: b.nextID, Dir: snapshot.PartitionDir(b.fields, add.PartitionValues), Name: *add.Tags[snapshot.TagName],
				Size: add.Size, ModTime: time.UnixMilli(add.ModificationTime), Path: add.Path,
			})
		}
	}
	b.versions, b.log, b.specs = append(b.versions, next), append(b.log, spec.Actions), append(b.specs, spec)
	b.shown = len(b.versions) - 1
	return next.version, nil
}

// foreign commits as another writer does, unseen until Refresh.
func (b *fakeBack) foreign(t *testing.T, spec *TxnSpec) {
	t.Helper()
	shown := b.shown
	if _, err := b.commit(spec); err != nil {
		t.Fatal(err)
	}
	b.shown = shown
	b.specs = b.specs[:len(b.specs)-1]
}

// contents maps the visible files of the newest version to their bytes.
func (b *fakeBack) contents(t *testing.T) map[string]string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]string{}
	for _, f := range b.versions[len(b.versions)-1].files {
		data, err := os.ReadFile(filepath.Join(b.root, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		name := joinPath(f.Dir, f.Name)
		if _, twice := out[name]; twice {
			t.Errorf("two files are called %s", name)
		}
		out[name] = string(data)
	}
	return out
}

// commits is the number of commits of this mount.
func (b *fakeBack) commits() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.specs)
}

// fakeView is one version.
type fakeView struct {
	back    *fakeBack
	version int64
	meta    *action.Metadata
	files   []snapshot.File
	// life is the incarnation, the same for all versions if not set.
	life int
}

func (v *fakeView) Version() int64                    { return v.version }
func (v *fakeView) Incarnation() any                  { return v.life }
func (v *fakeView) Metadata() *action.Metadata        { return v.meta }
func (v *fakeView) PartitionFields() []snapshot.Field { return v.back.fields }

func (v *fakeView) Dir(ctx context.Context, dir, after string) iter.Seq2[snapshot.DirEntry, error] {
	return func(yield func(snapshot.DirEntry, error) bool) {
		found := map[string]*snapshot.File{}
		for _, f := range v.files {
			if f.Dir == dir {
				found[f.Name] = &f
			} else if rest, ok := strings.CutPrefix(f.Dir, dir); ok && (dir == "" || strings.HasPrefix(rest, "/")) {
				name, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
				found[name] = nil
			}
		}
		if len(found) == 0 && dir != "" {
			yield(snapshot.DirEntry{}, snapshot.ErrNotExist)
			return
		}
		for _, name := range slices.SortedFunc(maps.Keys(found), cmp.Compare[string]) {
			if name > after && !yield(snapshot.DirEntry{Name: name, File: found[name]}, nil) {
				return
			}
		}
	}
}

func (v *fakeView) Lookup(ctx context.Context, dir, name string) (snapshot.DirEntry, error) {
	if v.back.found != nil {
		defer v.back.found(name)
	}
	for e, err := range v.Dir(ctx, dir, "") {
		if err != nil {
			return snapshot.DirEntry{}, err
		}
		if e.Name == name {
			return e, nil
		}
	}
	return snapshot.DirEntry{}, fault.New(snapshot.ErrNotExist, "no %s in %q", name, dir)
}

func (v *fakeView) ByPath(ctx context.Context, path string) (snapshot.File, bool, error) {
	for _, f := range v.files {
		if f.Path == path {
			return f, true, nil
		}
	}
	return snapshot.File{}, false, nil
}

func (v *fakeView) Adds(ctx context.Context, files ...snapshot.File) ([]*action.Add, error) {
	v.back.mu.Lock()
	defer v.back.mu.Unlock()
	out := make([]*action.Add, len(files))
	for i, f := range files {
		out[i] = v.back.adds[f.ID]
	}
	return out, nil
}

var errDisk = errors.New("disk failed")
