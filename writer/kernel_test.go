package writer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kernel drives Live as a kernel and fsnode do, from scripts such as
//
//	create h x.parquet; write h A; !incomplete flush h; close h
//
// A step that must fail starts with "!" and a sentinel's name. Capital letters
// in write steps name contents; see content.
type kernel struct {
	l       *Live
	process uint32
	handles map[string]*openFile
	// looked, if set, is called between lookup and open.
	looked func()
}

type openFile struct {
	s     *Staged
	write bool
}

func newKernel(l *Live, process uint32) *kernel {
	l.callers.lookup = func(tid uint32) uint32 { return tid }
	return &kernel{l: l, process: process, handles: map[string]*openFile{}}
}

var sentinels = map[string]error{
	"incomplete": ErrIncomplete, "misfit": ErrMisfit, "exist": ErrExist, "noent": ErrNotExist, "reserved": ErrReserved,
	"sealed": ErrSealed, "conflict": ErrConflict, "notempty": ErrNotEmpty, "notpartition": ErrNotPartition,
	"readonly": ErrReadOnly, "appendonly": ErrAppendOnly, "isdir": ErrIsDir, "disk": errDisk,
}

// content is what a capital letter stands for.
func content(name string) []byte {
	switch name {
	case "MISFIT", "A", "B", "C":
		return fakeFile(strings.Repeat(name, 40))
	case "AB":
		return append(content("A"), content("B")...)
	case "TEXT":
		return []byte("this is no Parquet file, but long enough to be one")
	}
	panic("no content " + name)
}

// run runs a script.
func (k *kernel) run(t *testing.T, script string) {
	t.Helper()
	for step := range strings.SplitSeq(script, ";") {
		words := strings.Fields(step)
		if len(words) == 0 {
			continue
		}
		var want error
		if name, ok := strings.CutPrefix(words[0], "!"); ok {
			if want = sentinels[name]; want == nil {
				t.Fatalf("no sentinel %q", name)
			}
			words = words[1:]
		}
		err := k.step(words)
		if want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Fatalf("%s: got %v, want %v", strings.TrimSpace(step), err, want)
		}
	}
}

func (k *kernel) step(w []string) error {
	ctx := context.Background()
	arg := func(i int) string {
		if i < len(w) {
			return w[i]
		}
		return ""
	}
	dir, name := splitPath(arg(1))
	switch w[0] {
	case "unlink":
		return k.l.Unlink(ctx, k.caller(), dir, name)
	case "mkdir":
		return k.l.Mkdir(ctx, dir, name)
	case "rmdir":
		return k.l.Rmdir(ctx, dir, name)
	case "syncdir":
		return k.l.SyncDir(ctx, arg(1))
	case "rename":
		to, newName := splitPath(arg(2))
		return k.l.Rename(ctx, k.caller(), dir, name, to, newName, arg(3) == "noreplace")
	case "stat":
		_, err := k.l.Lookup(ctx, k.caller(), dir, name)
		return err
	case "create", "open", "append", "read":
		return k.open(w[0], w[1], w[2], arg(3) == "trunc")
	}
	h := k.handles[w[1]]
	if h == nil {
		return fmt.Errorf("no handle %s", w[1])
	}
	return k.use(ctx, h, w, arg)
}

func (k *kernel) use(ctx context.Context, h *openFile, w []string, arg func(int) string) error {
	switch w[0] {
	case "write": // write h CONTENT [from to]
		data := content(w[2])
		from, to := number(arg(3), 0, len(data)), number(arg(4), len(data), len(data))
		_, err := h.s.WriteAt(ctx, data[from:to], int64(from))
		return err
	case "writeat": // writeat h CONTENT offset
		_, err := h.s.WriteAt(ctx, content(w[2]), int64(number(w[3], 0, len(content("A")))))
		return err
	case "truncate":
		return h.s.Truncate(ctx, int64(number(w[2], 0, len(content("A")))))
	case "allocate":
		return h.s.Allocate(ctx, 0, int64(number(w[2], 0, len(content("A")))), arg(3) == "keep")
	case "mtime":
		h.s.SetModTime(time.Unix(1e9, 0))
		return nil
	case "flush":
		return h.s.Flush(ctx)
	case "sync":
		return h.s.Sync(ctx)
	case "close":
		h.s.CloseHandle(h.write)
		delete(k.handles, w[1])
		return nil
	case "link": // link h name
		dir, name := splitPath(w[2])
		_, err := k.l.Link(ctx, k.caller(), h.s, dir, name)
		return err
	case "expect": // expect h CONTENT
		got := make([]byte, len(content(w[2]))+1)
		n, _ := h.s.ReadAt(got, 0)
		if string(got[:n]) != string(content(w[2])) {
			return fmt.Errorf("read %q", got[:n])
		}
		return nil
	}
	return fmt.Errorf("no step %q", w[0])
}

// number reads an offset; "half" and "size" are those of content A.
func number(text string, otherwise, size int) int {
	switch text {
	case "":
		return otherwise
	case "half":
		return size / 2
	case "size":
		return size
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func (k *kernel) caller() Caller { return Caller{PID: k.process} }

// open opens a name as open(2) does: O_CREAT for create, and again after
// ESTALE.
func (k *kernel) open(how, handle, path string, truncate bool) error {
	ctx := context.Background()
	dir, name := splitPath(path)
	write := how != "read"
	for attempt := 0; ; attempt++ {
		n, err := k.l.Lookup(ctx, k.caller(), dir, name)
		if errors.Is(err, ErrNotExist) && how == "create" {
			s, err := k.l.Create(ctx, k.caller(), dir, name)
			if err != nil {
				return err
			}
			k.handles[handle] = &openFile{s, true}
			return nil
		}
		if err != nil {
			return err
		}
		if n.Staged == nil && !write {
			return fmt.Errorf("%s is committed", path)
		}
		if n.Staged == nil {
			if attempt > 0 {
				return fmt.Errorf("%s: ESTALE twice", path)
			}
			if err := k.l.WantWrite(ctx, k.caller(), *n.File); err != nil {
				return err
			}
			continue
		}
		if k.looked != nil {
			k.looked()
		}
		err = n.Staged.OpenHandle(ctx, write)
		if f, ok := n.Staged.Committed(ctx); ok && (errors.Is(err, ErrSealed) || errors.Is(err, ErrNotExist)) && attempt == 0 {
			if err := k.l.WantWrite(ctx, k.caller(), f); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		k.handles[handle] = &openFile{n.Staged, write}
		if truncate {
			return n.Staged.Truncate(ctx, 0)
		}
		return nil
	}
}

// meaning is what a name means for a process: "committed", "staged", "dir" or
// "".
func meaning(l *Live, process uint32, path string) string {
	dir, name := splitPath(path)
	n, err := l.Lookup(context.Background(), Caller{PID: process}, dir, name)
	switch {
	case err != nil:
		return ""
	case n.File != nil:
		return "committed"
	case n.Staged != nil:
		return "staged"
	}
	return "dir"
}

// listing are the names that a directory lists.
func listing(t *testing.T, l *Live, dir string) string {
	t.Helper()
	var names []string
	for e, err := range l.List(context.Background(), dir, "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}
