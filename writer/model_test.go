package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// modelFile is what a staged file should be.
type modelFile struct {
	data              []byte
	written           []bool
	name              string // "" without one
	replaces, touched bool
	drops             string // committed name that goes with its commit
	sealed            bool
	writers           int
	closed            bool // flushed since the last write
}

func (f *modelFile) complete() bool {
	return bytes.HasPrefix(f.data, []byte("PAR1")) && bytes.HasSuffix(f.data, []byte(fakeTail)) && !slices.Contains(f.written, false)
}

func (f *modelFile) resize(n int) {
	for len(f.data) < n {
		f.data, f.written = append(f.data, 0), append(f.written, false)
	}
	f.data, f.written, f.touched, f.closed = f.data[:n], f.written[:n], true, false
}

// model is what current/ should be for the one process that works in it: the
// committed files, and those being written.
type model struct {
	table   map[string]string
	staged  map[string]*modelFile
	handles map[string]*modelFile
}

var modelNames = []string{"x.parquet", "y.parquet", ".t1", "t2.tmp"}

func (m *model) open(h, name string, truncate bool) {
	f := m.staged[name]
	if f == nil {
		f = &modelFile{name: name}
		if data, ok := m.table[name]; ok {
			f.data, f.written, f.replaces = []byte(data), slices.Repeat([]bool{true}, len(data)), true
		} else {
			f.touched = true
		}
		m.staged[name] = f
	}
	f.writers++
	m.handles[h] = f
	if truncate && len(f.data) > 0 {
		f.resize(0)
	}
}

func (m *model) write(f *modelFile, data []byte, at int) error {
	if f.sealed {
		return ErrSealed
	}
	f.resize(max(len(f.data), at+len(data)))
	copy(f.data[at:], data)
	for i := range data {
		f.written[at+i] = true
	}
	return nil
}

func (m *model) truncate(f *modelFile, n int) error {
	if n == len(f.data) {
		return nil
	}
	if f.sealed {
		return ErrSealed
	}
	f.resize(n)
	return nil
}

// finish is flush and sync: it commits what is complete.
func (m *model) finish(f *modelFile, sync bool) error {
	f.closed = f.closed || !sync
	switch {
	case f.sealed || f.name == "" || !isData(f.name) || len(f.data) == 0 || !f.touched:
		return nil
	case f.complete():
		m.commit(f, f.name)
		return nil
	case sync || f.writers != 1:
		return nil
	}
	return ErrIncomplete
}

func (m *model) commit(f *modelFile, name string) {
	delete(m.table, f.drops)
	m.table[name] = string(f.data)
	delete(m.staged, f.name)
	f.sealed, f.name = true, ""
}

func (m *model) close(h string) {
	f := m.handles[h]
	delete(m.handles, h)
	if f.writers--; f.writers == 0 && f.replaces && f.name != "" && !f.sealed {
		delete(m.staged, f.name) // gone, or kept under a hidden name
		f.name = ""
	}
}

func (m *model) unlink(name string) error {
	if f := m.staged[name]; f != nil {
		f.name = ""
		delete(m.staged, name)
		return nil
	}
	if _, ok := m.table[name]; !ok {
		return ErrNotExist
	}
	delete(m.table, name)
	return nil
}

func (m *model) rename(from, to string) error {
	f, data := m.staged[from], m.table[from]
	if f == nil && data == "" {
		return ErrNotExist
	}
	if f != nil && isData(to) && !f.complete() && len(f.data) > 0 && (f.writers == 0 || f.closed) {
		return ErrIncomplete
	}
	if old := m.staged[to]; old != nil {
		old.name = ""
		delete(m.staged, to)
	}
	switch {
	case f == nil && isData(to):
		delete(m.table, from)
		m.table[to] = data
	case f == nil:
		delete(m.table, from)
		m.staged[to] = &modelFile{
			name: to, data: []byte(data), written: slices.Repeat([]bool{true}, len(data)), touched: true,
		}
	case isData(to) && f.replaces && f.complete():
		f.drops = from
		m.commit(f, to)
	case isData(to) && f.complete():
		m.commit(f, to)
	default:
		delete(m.staged, from)
		if isData(to) && f.replaces {
			f.drops = from
		} else if !isData(to) {
			f.drops = ""
		}
		_, f.replaces = m.table[to]
		f.name = to
		m.staged[to] = f
	}
	return nil
}

func TestRandomOperationsAgreeWithAModel(t *testing.T) {
	for seed := range uint64(60) {
		runModel(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runModel(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	back := newFakeBack(t)
	l := back.open(t, Options{Report: func(string, string, error) {}})
	k := newKernel(l, 1)
	m := &model{table: map[string]string{}, staged: map[string]*modelFile{}, handles: map[string]*modelFile{}}
	var history []string
	for i := range 60 {
		step, got, want := randomStep(rnd, k, m, i)
		history = append(history, step)
		if want == nil && got != nil || want != nil && !errors.Is(got, want) {
			t.Fatalf("seed %d: got %v, want %v after\n%q", seed, got, want, history)
		}
		if diff := compareModel(l, k, m); diff != "" {
			t.Fatalf("seed %d: %s after\n%q", seed, diff, history)
		}
	}
	for h, f := range maps.Clone(m.handles) {
		if want, got := m.finish(f, false), k.step([]string{"flush", h}); !errors.Is(got, want) {
			t.Fatalf("seed %d: last flush of %s: got %v, want %v after\n%q", seed, h, got, want, history)
		}
		m.close(h)
		_ = k.step([]string{"close", h})
	}
	if err := l.SyncDir(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	if got := back.contents(t); !maps.Equal(got, m.table) {
		t.Fatalf("seed %d: table holds %q, want %q after\n%q", seed, got, m.table, history)
	}
	checkClosed(t, l, back)
}

// randomStep does one step in both worlds.
func randomStep(rnd *rand.Rand, k *kernel, m *model, i int) (step string, got, want error) {
	name := modelNames[rnd.IntN(len(modelNames))]
	handles := slices.Sorted(maps.Keys(m.handles))
	op := rnd.IntN(10)
	if len(handles) == 0 && op > 3 {
		op = 0
	}
	var h string
	if len(handles) > 0 {
		h = handles[rnd.IntN(len(handles))]
	}
	size := len(content("A"))
	do := func(words ...string) {
		step, got = fmt.Sprint(words), k.step(words)
	}
	switch op {
	case 0, 1:
		h := fmt.Sprintf("h%d", i)
		truncate := []string{"", "trunc"}[rnd.IntN(2)]
		m.open(h, name, truncate != "")
		do("create", h, name, truncate)
	case 2:
		// The kernel itself answers for a name onto itself.
		others := slices.DeleteFunc(slices.Clone(modelNames), func(n string) bool { return n == name })
		to := others[rnd.IntN(len(others))]
		want = m.rename(name, to)
		do("rename", name, to)
	case 3:
		want = m.unlink(name)
		do("unlink", name)
	case 4, 5, 6:
		letter := []string{"A", "B"}[rnd.IntN(2)]
		span := [][2]int{{0, size / 2}, {size / 2, size}, {0, size}}[rnd.IntN(3)]
		want = m.write(m.handles[h], content(letter)[span[0]:span[1]], span[0])
		do("write", h, letter, fmt.Sprint(span[0]), fmt.Sprint(span[1]))
	case 7:
		n := []int{0, size / 2, size}[rnd.IntN(3)]
		want = m.truncate(m.handles[h], n)
		do("truncate", h, fmt.Sprint(n))
	case 8:
		sync := rnd.IntN(2) == 0
		want = m.finish(m.handles[h], sync)
		do(map[bool]string{true: "sync", false: "flush"}[sync], h)
	case 9:
		// The kernel flushes what it closes.
		want = m.finish(m.handles[h], false)
		do("flush", h)
		m.close(h)
		_ = k.step([]string{"close", h})
	}
	return step, got, want
}

// compareModel says where names or bytes differ.
func compareModel(l *Live, k *kernel, m *model) string {
	ctx := context.Background()
	for _, name := range modelNames {
		own, others := "", ""
		if _, ok := m.table[name]; ok {
			own, others = "committed", "committed"
		}
		if f := m.staged[name]; f != nil {
			own = "staged"
			if !f.replaces {
				others = "staged"
			}
		}
		if a, b := meaning(l, 1, name), meaning(l, 2, name); a != own || b != others {
			return fmt.Sprintf("%s is %q for its process and %q for others, want %q and %q", name, a, b, own, others)
		}
		if n, err := l.Lookup(ctx, Caller{PID: 2}, "", name); err == nil && n.File != nil {
			r, err := l.back.OpenFile(ctx, *n.File)
			if err != nil {
				return err.Error()
			}
			data, err := io.ReadAll(io.NewSectionReader(r, 0, n.File.Size))
			r.Close()
			if err != nil || string(data) != m.table[name] {
				return fmt.Sprintf("%s holds %q, want %q", name, data, m.table[name])
			}
		}
	}
	for h, f := range m.handles {
		s := k.handles[h].s
		data, err := io.ReadAll(io.NewSectionReader(s, 0, 1<<20))
		if err != nil || !bytes.Equal(data, f.data) || s.Attr().Size != int64(len(f.data)) {
			return fmt.Sprintf("handle %s reads %q, want %q, %v", h, data, f.data, err)
		}
	}
	return ""
}

// TestProcessesInOneDirectoryDoNotDisturbEachOther lets processes do what they
// like to the same names at once. Whatever they did: names are unique, what is
// committed is whole, and nothing is left behind.
func TestProcessesInOneDirectoryDoNotDisturbEachOther(t *testing.T) {
	for seed := range uint64(8) {
		back := newFakeBack(t)
		l := back.open(t, Options{Grace: time.Hour, Report: func(string, string, error) {}})
		l.callers.lookup = func(tid uint32) uint32 { return tid }
		var wg sync.WaitGroup
		for p := range uint32(5) {
			wg.Go(func() { randomProcess(rand.New(rand.NewPCG(seed, uint64(p))), l, p+1) })
		}
		wg.Wait()
		if err := l.close(context.Background()); err != nil {
			t.Errorf("seed %d: close: %v", seed, err)
		}
		for name, data := range back.contents(t) {
			if !isData(name) || !strings.HasPrefix(data, "PAR1") || !strings.HasSuffix(data, fakeTail) {
				t.Errorf("seed %d: %s holds %q", seed, name, data)
			}
		}
		if _, err := os.Stat(filepath.Join(back.root, areaDir, mountsDir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("seed %d: the mount left behind %q", seed, leftBehind(t, back))
		}
		if _, err := l.view(context.Background()); err != nil {
			t.Error(err)
		}
		for k, s := range l.names {
			if s.state == stateSealed && s.sealedKey == k {
				t.Errorf("seed %d: %s still means the staged file", seed, k)
			}
		}
	}
}

// leftBehind are the files of mounts that are gone, and what is recorded of
// them.
func leftBehind(t *testing.T, back *fakeBack) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(back.root, areaDir, mountsDir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s: %s", filepath.Base(path), data))
	}
	return out
}

// randomProcess does random things, closes everything it opened, and does not
// mind that others are in its way.
func randomProcess(rnd *rand.Rand, l *Live, process uint32) {
	k := &kernel{l: l, process: process, handles: map[string]*openFile{}}
	size := len(content("A"))
	for i := range 60 {
		name := modelNames[rnd.IntN(len(modelNames))]
		to := modelNames[rnd.IntN(len(modelNames))]
		h := fmt.Sprintf("h%d", rnd.IntN(3))
		letter := []string{"A", "B", "C"}[rnd.IntN(3)]
		half := fmt.Sprint(rnd.IntN(2) * size / 2)
		steps := [][]string{
			{"create", h, name, []string{"", "trunc"}[rnd.IntN(2)]}, {"write", h, letter}, {"write", h, letter, half},
			{"flush", h}, {"rename", name, to}, {"unlink", name}, {"syncdir"}, {"truncate", h, half}, {"stat", name}, {"link", h, to},
		}
		step := steps[rnd.IntN(len(steps))]
		if _, open := k.handles[h]; open && step[0] == "create" {
			_ = k.step([]string{"flush", h})
			_ = k.step([]string{"close", h})
		}
		_ = k.step(step)
		if i%10 == 0 {
			for range l.List(context.Background(), "", "") {
				continue
			}
		}
	}
	for h := range maps.Clone(k.handles) {
		_ = k.step([]string{"flush", h})
		_ = k.step([]string{"close", h})
	}
}
