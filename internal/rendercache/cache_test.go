package rendercache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// chunk makes a chunk of some bytes at its beginning and zeros behind.
func chunk(name byte, written, length int, renders *atomic.Int32) *Chunk {
	return &Chunk{Key: Key{name}, Length: int64(length), Render: func(_ context.Context, w io.WriterAt) error {
		if renders != nil {
			renders.Add(1)
		}
		// From behind, as pages may come in any order.
		for at := written - written%1000; at >= 0; at -= 1000 {
			n := min(1000, written-at)
			if _, err := w.WriteAt(bytes.Repeat([]byte{name}, n), int64(at)); err != nil {
				return err
			}
		}
		return nil
	}}
}

func check(t *testing.T, c *Cache, want *Chunk, written int) {
	t.Helper()
	got := make([]byte, want.Length)
	if err := c.ReadAt(t.Context(), want, got, 0); err != nil {
		t.Fatal(err)
	}
	expect := append(bytes.Repeat([]byte{want.Key[0]}, written), make([]byte, int(want.Length)-written)...)
	if !bytes.Equal(got, expect) {
		t.Errorf("chunk %x differs", want.Key[:1])
	}
	part := make([]byte, 10)
	if err := c.ReadAt(t.Context(), want, part, int64(written-5)); err != nil || !bytes.Equal(part, expect[written-5:written+5]) {
		t.Errorf("part %x, %v", part, err)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAChunkIsRenderedOnce(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "made")} {
		var renders atomic.Int32
		c := New(Options{Dir: dir, Size: 1 << 20})
		one := chunk(1, 2500, 4000, &renders)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { check(t, c, one, 2500) })
		}
		all.Wait()
		if n := renders.Load(); n != 1 {
			t.Errorf("rendered %d times in %q", n, dir)
		}
		c.Close()
		again := New(Options{Dir: dir, Size: 1 << 20})
		defer again.Close()
		check(t, again, one, 2500)
		want := int32(1)
		if dir == "" {
			want = 2
		}
		if n := renders.Load(); n != want {
			t.Errorf("rendered %d times by two caches in %q", n, dir)
		}
	}
}

func TestDamageIsRenderedAnew(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"bit": func(path string) error {
			data, err := os.ReadFile(path)
			data[headerSize+100] ^= 1
			return errors.Join(err, os.WriteFile(path, data, 0o600))
		},
		"header": func(path string) error {
			data, err := os.ReadFile(path)
			data[len(magic)+len(Key{})] ^= 1
			return errors.Join(err, os.WriteFile(path, data, 0o600))
		},
		"zeros": func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, 0), os.Truncate(path, info.Size()))
		},
		"short": func(path string) error { return os.Truncate(path, headerSize+1) },
		"empty": func(path string) error { return os.Truncate(path, 0) },
		"link": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path))
		},
		"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		dir := t.TempDir()
		var renders atomic.Int32
		one := chunk(1, 2500, 4000, &renders)
		first := New(Options{Dir: dir, Size: 1 << 20})
		check(t, first, one, 2500)
		first.Close()
		if err := harm(filepath.Join(dir, one.Key.name())); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			c := New(Options{Dir: dir, Size: 1 << 20})
			check(t, c, one, 2500)
			c.Close()
		}
		if n := renders.Load(); n != 2 {
			t.Errorf("%s: rendered %d times", name, n)
		}
	}
}

func TestAFileThatIsCutWhileOpenIsRenderedAnew(t *testing.T) {
	dir := t.TempDir()
	c := New(Options{Dir: dir, Size: 1 << 20})
	defer c.Close()
	one := chunk(1, 2500, 4000, nil)
	check(t, c, one, 2500)
	if err := os.Truncate(filepath.Join(dir, one.Key.name()), 10); err != nil {
		t.Fatal(err)
	}
	check(t, c, one, 2500)
}

func TestTheBoundHolds(t *testing.T) {
	dir := t.TempDir()
	const size = 1 << 20
	c := New(Options{Dir: dir, Size: size})
	defer c.Close()
	const each = 100_000
	for i := range byte(40) {
		check(t, c, chunk(i, each, 2*each, nil), each)
		// Times of files must differ for their order to be known.
		old := time.Now().Add(time.Duration(i)*time.Second - time.Hour/2)
		if err := os.Chtimes(filepath.Join(dir, Key{i}.name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	held := int64(0)
	for _, name := range files(t, dir) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		held += blocks(info)
	}
	if held > size+size/recountShare || held < size/2 {
		t.Errorf("the directory holds %d bytes", held)
	}
	if _, err := os.Stat(filepath.Join(dir, Key{0}.name())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the oldest stays: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, Key{39}.name())); err != nil {
		t.Error(err)
	}
	if c.bytes > size {
		t.Errorf("%d bytes are open", c.bytes)
	}
}

func TestUnnamedFilesAreBounded(t *testing.T) {
	c := New(Options{Size: 1 << 20})
	defer c.Close()
	for i := range byte(40) {
		check(t, c, chunk(i, 100_000, 200_000, nil), 100_000)
	}
	if c.bytes > 1<<20 || c.order.Len() > 11 {
		t.Errorf("%d bytes in %d chunks are open", c.bytes, c.order.Len())
	}
}

func TestAFullDiskLeavesMemory(t *testing.T) {
	dir := t.TempDir()
	c := New(Options{Dir: dir, Size: 1 << 20, Floor: 1 << 60})
	defer c.Close()
	check(t, c, chunk(1, 2500, 4000, nil), 2500)
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("%v was left", left)
	}
	err := c.ReadAt(t.Context(), chunk(2, 2500, maxInMemory+1, nil), make([]byte, 1), 0)
	if !errors.Is(err, ErrNoRoom) {
		t.Errorf("without room: %v", err)
	}
}

func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-2 * abandoned)
	for name, stays := range map[string]bool{
		"notes.txt": true, tempPrefix + "x": true,
		tempPrefix + "01234567-89ab-cdef-0123-456789abcdef": false,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, long, long)); err != nil {
			t.Fatal(err)
		}
		c := New(Options{Dir: dir, Size: 1})
		check(t, c, chunk(1, 2500, 4000, nil), 2500)
		c.Close()
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClearLeavesWhatIsRead(t *testing.T) {
	dir := t.TempDir()
	var renders atomic.Int32
	one := chunk(1, 2500, 4000, &renders)
	c := New(Options{Dir: dir, Size: 1 << 20})
	defer c.Close()
	check(t, c, one, 2500)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if freed, err := Clear(dir); err != nil || freed < 2500 {
		t.Errorf("%d bytes freed, %v", freed, err)
	}
	if left := files(t, dir); len(left) != 1 || filepath.Base(left[0]) != "notes.txt" {
		t.Errorf("%v was left", left)
	}
	check(t, c, one, 2500)
	if n := renders.Load(); n != 1 {
		t.Errorf("rendered %d times", n)
	}
	if freed, err := Clear(filepath.Join(dir, "none")); freed != 0 || err != nil {
		t.Errorf("of no directory: %d, %v", freed, err)
	}
}

func TestADirectoryOfOthersIsNotUsed(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, link} {
		c := New(Options{Dir: dir, Size: 1 << 20})
		check(t, c, chunk(1, 2500, 4000, nil), 2500)
		c.Close()
		if left := files(t, dir); len(left) > 0 {
			t.Errorf("%v was made", left)
		}
	}
}

func TestWhatRendersTooMuchFails(t *testing.T) {
	c := New(Options{Size: 1 << 20})
	defer c.Close()
	err := c.ReadAt(t.Context(), chunk(1, 5000, 4000, nil), make([]byte, 1), 0)
	if !errors.Is(err, errBeyond) {
		t.Errorf("%v", err)
	}
}

func TestAPanicIsAnError(t *testing.T) {
	c := New(Options{Size: 1 << 20})
	defer c.Close()
	bad := &Chunk{Length: 10, Render: func(context.Context, io.WriterAt) error { panic("bad page") }}
	if err := c.ReadAt(t.Context(), bad, make([]byte, 1), 0); err == nil {
		t.Error("no error")
	}
	check(t, c, chunk(1, 2500, 4000, nil), 2500)
}

func TestTheLastWhoGivesUpEndsIt(t *testing.T) {
	c := New(Options{Size: 1 << 20})
	defer c.Close()
	began, ended := make(chan struct{}, 2), make(chan error, 2)
	slow := &Chunk{Length: 10, Render: func(ctx context.Context, _ io.WriterAt) error {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}
	first, stopFirst := context.WithCancel(t.Context())
	second, stopSecond := context.WithCancel(t.Context())
	result := make(chan error, 2)
	go func() { result <- c.ReadAt(first, slow, make([]byte, 1), 0) }()
	<-began
	go func() { result <- c.ReadAt(second, slow, make([]byte, 1), 0) }()
	for joined := false; !joined; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		joined = c.flights[slow.Key].waiters == 2
		c.mu.Unlock()
	}
	stopFirst()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the first got %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("ended with one waiting: %v", err)
	default:
	}
	stopSecond()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the second got %v", err)
	}
	<-ended
	// Who comes after that is not harmed.
	fine := chunk(0, 8, 20, nil)
	fine.Key = slow.Key
	check(t, c, fine, 8)
}
