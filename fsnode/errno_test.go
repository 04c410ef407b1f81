package fsnode

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/deltafs/deltafs/writer"
)

// sentinelsOf returns the error variables of a package's source.
func sentinelsOf(t *testing.T, dir, prefix string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				for _, name := range s.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, prefix) {
						out = append(out, name.Name)
					}
				}
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no sentinels in %s", dir)
	}
	return out
}

func TestEverySentinelHasAnErrno(t *testing.T) {
	mapped := map[string]bool{}
	for _, m := range errnos() {
		mapped[m.name] = true
	}
	for _, pkg := range []struct{ dir, name, prefix string }{
		{"../snapshot", "snapshot.", "Err"},
		{"../writer", "writer.", "Err"},
		{"../internal/store", "store.", "Err"},
		{".", "", "err"},
	} {
		for _, s := range sentinelsOf(t, pkg.dir, pkg.prefix) {
			if !mapped[pkg.name+s] {
				t.Errorf("%s%s has no errno", pkg.name, s)
			}
		}
	}
}

func TestErrnoOfFailures(t *testing.T) {
	inner := fmt.Errorf("read: %w", store.ErrNotExist)
	for _, tc := range []struct {
		name string
		err  error
		want syscall.Errno
	}{
		{"missing name", snapshot.ErrNotExist, syscall.ENOENT},
		{"wrapped twice", fmt.Errorf("x: %w", fault.New(writer.ErrMisfit, "column a")), syscall.EINVAL},
		{"file that storage lost", fault.Wrap(snapshot.ErrFileGone, inner, "vacuumed"), syscall.EIO},
		{"object that must be there", inner, syscall.EIO},
		{"operating system says not found", &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, syscall.EIO},
		{"operating system says no permission", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, syscall.EACCES},
		{"disk full behind a sentinel", fault.Wrap(writer.ErrConflict, syscall.ENOSPC, "x"), syscall.ENOSPC},
		{"quota", syscall.EDQUOT, syscall.EDQUOT},
		{"conflict before its cause", fault.Wrap(writer.ErrConflict, store.ErrExist, "x"), syscall.EBUSY},
		{"unsupported feature", fault.New(snapshot.ErrUnsupported, "variantType"), syscall.ENOTSUP},
		{"interrupted", context.Canceled, syscall.EINTR},
		{"too slow", context.DeadlineExceeded, syscall.ETIMEDOUT},
		{"anything else", errors.New("?"), syscall.EIO},
	} {
		if got := toErrno(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func reportTree(t *testing.T) (*FS, *table) {
	t.Helper()
	f, inc := testTree(t)
	f.log = slog.New(slog.DiscardHandler)
	return f, inc.t
}

func TestFailuresAreKeptOnceWithReasonAndHint(t *testing.T) {
	f, tab := reportTree(t)
	err := fault.New(writer.ErrMisfit, "column v is a string").WithHint("cast it")
	for range 3 { // every FLUSH repeats the result of a commit
		if s := f.fail(tab, "flush", "x.parquet", err); s != fuse.EINVAL {
			t.Fatalf("status %v", s)
		}
	}
	text, jerr := tab.errs.jsonl()
	if jerr != nil {
		t.Fatal(jerr)
	}
	if n := strings.Count(string(text), "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, text)
	}
	for _, want := range []string{`"op":"flush"`, `"name":"x.parquet"`, `"errno":"EINVAL"`, "column v is a string", `"hint":"cast it"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
}

func TestAnswersAreNotFailures(t *testing.T) {
	f, tab := reportTree(t)
	for _, err := range []error{errNotFound, writer.ErrExist, writer.ErrNotEmpty, errStale, context.Canceled, errCrossArea} {
		f.fail(tab, "lookup", "x", err)
	}
	if text, _ := tab.errs.jsonl(); len(text) != 0 {
		t.Errorf("reported: %s", text)
	}
}

func TestRefusedRenameIsNotCalledInvalid(t *testing.T) {
	f, tab := reportTree(t)
	if s := f.failRename(tab, "rename", "a -> b", fault.New(writer.ErrMisfit, "x")); s != fuse.EPERM {
		t.Errorf("status %v", s)
	}
	if s := f.failRename(tab, "rename", "a -> b", writer.ErrConflict); s != fuse.EBUSY {
		t.Errorf("conflict is %v", s)
	}
}

func TestErrorLogForgetsTheOldest(t *testing.T) {
	var l errorLog
	for i := range errorLogSize + 7 {
		l.add("op", fmt.Sprint(i), "EIO", fault.New(writer.ErrMisfit, "failure %d", i))
	}
	text, err := l.jsonl()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != errorLogSize || !strings.Contains(lines[0], `"name":"7"`) ||
		!strings.Contains(lines[len(lines)-1], fmt.Sprintf(`"name":"%d"`, errorLogSize+6)) {
		t.Errorf("%d lines, first %s, last %s", len(lines), lines[0], lines[len(lines)-1])
	}
	if len(l.seen) > errorLogSize {
		t.Errorf("%d failures remembered", len(l.seen))
	}
}
