package fsnode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// filling makes files of some bytes, and counts how many it made.
func filling(made *atomic.Int64, n int) func(context.Context, *os.File) error {
	return func(_ context.Context, f *os.File) error {
		made.Add(1)
		_, err := f.Write(make([]byte, n))
		return err
	}
}

func spoolKey(n int64) nodeKey { return nodeKey{kind: kindSpooled, number: n} }

func TestSpoolMakesAFileOnceForAllWhoAsk(t *testing.T) {
	s := newSpool("", filepath.Join(t.TempDir(), "missing"), t.TempDir())
	var made atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			e, err := s.acquire(context.Background(), spoolKey(1), filling(&made, 10))
			if err != nil || e.size != 10 {
				t.Errorf("%v, %v", e, err)
				return
			}
			s.release(e)
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestSpoolKeepsNoMoreThanItsLimitButWhatIsOpen(t *testing.T) {
	dir := t.TempDir()
	s := newSpool(dir)
	s.limit = 25
	var made atomic.Int64
	acquire := func(n int64) *spooled {
		t.Helper()
		e, err := s.acquire(context.Background(), spoolKey(n), filling(&made, 10))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	open := acquire(1)
	for n := int64(2); n <= 4; n++ {
		s.release(acquire(n))
	}
	if s.size != 20 || made.Load() != 4 {
		t.Errorf("%d bytes kept, %d made", s.size, made.Load())
	}
	if _, err := open.file.ReadAt(make([]byte, 10), 0); err != nil {
		t.Errorf("the open file: %v", err)
	}
	s.release(open)
	s.release(acquire(4))
	if made.Load() != 4 {
		t.Error("the file used last was made again")
	}
	s.release(acquire(2))
	if made.Load() != 5 {
		t.Error("a file that had to go was not made again")
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("the directory has %v, %v", names, err)
	}
}

func TestSpoolTriesAgainAfterAFailure(t *testing.T) {
	s := newSpool(t.TempDir())
	broken := errors.New("broken")
	if _, err := s.acquire(context.Background(), spoolKey(1), func(context.Context, *os.File) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	var made atomic.Int64
	e, err := s.acquire(context.Background(), spoolKey(1), filling(&made, 3))
	if err != nil || e.size != 3 || len(s.byKey) != 1 {
		t.Errorf("%v, %v, %d known", e, err, len(s.byKey))
	}
	s.clear(nil)
	if len(s.byKey) != 0 || s.size != 0 {
		t.Errorf("after clear %d are known, of %d bytes", len(s.byKey), s.size)
	}
	if _, err := e.file.ReadAt(make([]byte, 3), 0); err != nil {
		t.Errorf("the open file: %v", err)
	}
	s.release(e)
	if _, err := e.file.Stat(); err == nil {
		t.Error("the file is open after its last release")
	}
}
