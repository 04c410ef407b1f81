package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// Whatever the storage answers, a commit that is in the log is reported as
// such, and one that is not is not.
func TestCommitFindsOutWhatBecameOfIt(t *testing.T) {
	noSpace := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	timeout := &fs.PathError{Op: "write", Path: "x", Err: syscall.ETIMEDOUT}
	type write = func() store.Outcome
	tests := []struct {
		name string
		// put answers attempt n, from 1, at the version.
		put func(l *fakeLog, t *testing.T, n int, data []byte, write write) (store.Outcome, error)
		// unreadable fails the first reads of the commit file.
		unreadable int
		version    int64 // that Commit returns, if it succeeds
		want       error
		inLog      bool
		puts       int
	}{
		{name: "won", version: 1, inLog: true, puts: 1,
			put: func(_ *fakeLog, _ *testing.T, _ int, _ []byte, write write) (store.Outcome, error) {
				return write(), nil
			}},
		{name: "unsure, written", version: 1, inLog: true, puts: 1,
			put: func(_ *fakeLog, _ *testing.T, _ int, _ []byte, write write) (store.Outcome, error) {
				write()
				return store.Unsure, nil
			}},
		{name: "unsure with a timeout, written", version: 1, inLog: true, puts: 1,
			put: func(_ *fakeLog, _ *testing.T, _ int, _ []byte, write write) (store.Outcome, error) {
				write()
				return store.Unsure, timeout
			}},
		{name: "unsure, not written at first", version: 1, inLog: true, puts: 2,
			put: func(_ *fakeLog, _ *testing.T, n int, _ []byte, write write) (store.Outcome, error) {
				if n == 1 {
					return store.Unsure, nil
				}
				return write(), nil
			}},
		{name: "unsure, written late", version: 1, inLog: true, puts: 2,
			put: func(_ *fakeLog, _ *testing.T, n int, _ []byte, write write) (store.Outcome, error) {
				if n == 1 {
					return store.Unsure, nil
				}
				write() // the first attempt arrives
				return write(), nil
			}},
		{name: "lost to ourselves", version: 1, inLog: true, puts: 1,
			put: func(_ *fakeLog, _ *testing.T, _ int, _ []byte, write write) (store.Outcome, error) {
				write()
				return write(), nil
			}},
		{name: "lost to another", version: 2, inLog: true, puts: 2,
			put: func(l *fakeLog, t *testing.T, n int, _ []byte, write write) (store.Outcome, error) {
				if n == 1 {
					l.foreign(t, 1, testAdd("other.parquet"))
				}
				return write(), nil
			}},
		{name: "unsure, another's", version: 2, inLog: true, puts: 2,
			put: func(l *fakeLog, t *testing.T, n int, _ []byte, write write) (store.Outcome, error) {
				if n == 1 {
					l.foreign(t, 1, testAdd("other.parquet"))
					return store.Unsure, nil
				}
				return write(), nil
			}},
		{name: "unsure, another's in the end, unsure again", version: 2, inLog: true, puts: maxSilence + 2,
			put: func(l *fakeLog, t *testing.T, n int, _ []byte, write write) (store.Outcome, error) {
				switch {
				case n == maxSilence:
					l.foreign(t, 1, testAdd("other.parquet"))
					return store.Unsure, nil
				case n < maxSilence+2:
					return store.Unsure, nil
				}
				return write(), nil
			}},
		{name: "unsure, written, unreadable for a while", version: 1, inLog: true, puts: 1, unreadable: 3,
			put: func(_ *fakeLog, _ *testing.T, _ int, _ []byte, write write) (store.Outcome, error) {
				write()
				return store.Unsure, nil
			}},
		{name: "unsure, written, unreadable", want: ErrUnsure, inLog: true, puts: 1, unreadable: 1 << 60,
			put: func(_ *fakeLog, _ *testing.T, _ int, _ []byte, write write) (store.Outcome, error) {
				write()
				return store.Unsure, nil
			}},
		{name: "lost, unreadable", want: ErrUnsure, inLog: true, puts: 1, unreadable: 1 << 60,
			put: func(_ *fakeLog, _ *testing.T, _ int, _ []byte, write write) (store.Outcome, error) {
				write()
				return store.Lost, nil
			}},
		{name: "never an answer", want: ErrUnsure, puts: maxSilence,
			put: func(*fakeLog, *testing.T, int, []byte, write) (store.Outcome, error) { return store.Unsure, nil }},
		{name: "always a timeout", want: ErrUnsure, puts: maxSilence,
			put: func(*fakeLog, *testing.T, int, []byte, write) (store.Outcome, error) { return store.Unsure, timeout }},
		{name: "no space", want: syscall.ENOSPC, puts: maxSilence,
			put: func(*fakeLog, *testing.T, int, []byte, write) (store.Outcome, error) { return store.Unsure, noSpace }},
		{name: "a timeout, then no space", want: ErrUnsure, puts: maxSilence,
			put: func(_ *fakeLog, _ *testing.T, n int, _ []byte, _ write) (store.Outcome, error) {
				if n == 1 {
					return store.Unsure, timeout
				}
				return store.Unsure, noSpace
			}},
		{name: "storage cannot commit", want: ErrReadOnly, puts: 1,
			put: func(*fakeLog, *testing.T, int, []byte, write) (store.Outcome, error) {
				return store.Unsure, store.ErrReadOnly
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newFakeLog(t, firstVersion())
			n, reads := 0, 0
			l.st.put = func(name string, data []byte, write func() store.Outcome) (store.Outcome, error) {
				n++
				return tt.put(l, t, n, data, write)
			}
			l.st.open = func(name string) error {
				if name != snapshot.CommitName(0) {
					if reads++; reads <= tt.unreadable {
						return errors.New("no connection")
					}
				}
				return nil
			}
			v, err := testCommitter(l, Options{}).commit(context.Background(), appendOf(0, "ours.parquet"))
			l.st.open = nil
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err == nil && v != tt.version {
				t.Errorf("version %d, want %d", v, tt.version)
			}
			if tt.want == ErrUnsure {
				wantText(t, err, "00000000000000000001.json", "txnId")
			} else if errors.Is(err, ErrUnsure) {
				t.Errorf("%v: the outcome is known", err)
			}
			if got := l.adds(t)["ours.parquet"]; (got == 1) != tt.inLog || got > 1 {
				t.Errorf("the file is %d times in the log", got)
			}
			if l.st.puts != tt.puts {
				t.Errorf("%d attempts, want %d", l.st.puts, tt.puts)
			}
		})
	}
}

func TestCommitNeverReplacesAFileOfTheLog(t *testing.T) {
	for name, content := range map[string]string{"commit": `{"add":{"path":"x.parquet","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}` + "\n",
		"garbage": "garbage", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			l := newFakeLog(t, firstVersion())
			l.st.put = func(_ string, _ []byte, write func() store.Outcome) (store.Outcome, error) {
				l.st.write(snapshot.CommitName(1), []byte(content))
				return write(), nil
			}
			v, err := testCommitter(l, Options{}).commit(context.Background(), appendOf(0, "ours.parquet"))
			if !bytes.Equal(l.st.objects[snapshot.CommitName(1)], []byte(content)) {
				t.Error("the file was replaced")
			}
			if name == "commit" {
				if err != nil || v != 2 {
					t.Errorf("version %d, %v; want 2", v, err)
				}
			} else if !errors.Is(err, snapshot.ErrCorrupt) || len(l.commits()) != 2 {
				t.Errorf("got %v with %v, want ErrCorrupt and no commit behind it", err, l.commits())
			}
		})
	}
}

func TestCommitWaitsForACommitFileThatIsStillWritten(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	l.foreign(t, 1, testAdd("other.parquet"))
	reads := 0
	l.readCommit = func(v int64) error {
		if v == 1 {
			if reads++; reads < 3 {
				return snapshot.ErrCorrupt
			}
		}
		return nil
	}
	v, err := testCommitter(l, Options{}).commit(context.Background(), appendOf(0, "ours.parquet"))
	if err != nil || v != 2 {
		t.Errorf("version %d, %v; want 2", v, err)
	}
}

func TestCancellingStopsACommitBeforeItsFirstAttemptOnly(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		l := newFakeLog(t, firstVersion())
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := testCommitter(l, Options{}).commit(ctx, appendOf(0, "ours.parquet"))
		if !errors.Is(err, context.Canceled) || l.st.puts != 0 {
			t.Errorf("got %v after %d attempts", err, l.st.puts)
		}
	})
	t.Run("waiting for its turn", func(t *testing.T) {
		l := newFakeLog(t, firstVersion())
		c := testCommitter(l, Options{})
		c.turn <- struct{}{}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { _, err := c.commit(ctx, appendOf(0, "ours.parquet")); done <- err }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || l.st.puts != 0 {
			t.Errorf("got %v after %d attempts", err, l.st.puts)
		}
	})
	t.Run("begun", func(t *testing.T) {
		l := newFakeLog(t, firstVersion())
		ctx, cancel := context.WithCancel(context.Background())
		l.st.put = func(_ string, _ []byte, write func() store.Outcome) (store.Outcome, error) {
			cancel()
			if l.st.puts == 1 {
				l.foreign(t, 1, testAdd("other.parquet"))
			}
			return write(), nil
		}
		v, err := testCommitter(l, Options{}).commit(ctx, appendOf(0, "ours.parquet"))
		if err != nil || v != 2 || l.Latest() != 2 {
			t.Errorf("version %d, %v, latest %d; want 2", v, err, l.Latest())
		}
	})
}

func TestEndlessLossesEndInAConflict(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	next := int64(1)
	l.st.put = func(_ string, _ []byte, write func() store.Outcome) (store.Outcome, error) {
		l.foreign(t, next, testAdd("other.parquet"))
		next++
		return write(), nil
	}
	c := testCommitter(l, Options{})
	c.timeout = 20 * time.Millisecond
	if _, err := c.commit(context.Background(), appendOf(0, "ours.parquet")); !errors.Is(err, ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	if l.adds(t)["ours.parquet"] != 0 {
		t.Error("the file is in the log")
	}
}

func TestBackoffGrowsAndIsBounded(t *testing.T) {
	for n, limit := 1, 4*time.Millisecond; n < 100; n++ {
		if d := backoff(n); d < limit/2 || d > limit {
			t.Errorf("try %d: %v, want %v to %v", n, d, limit/2, limit)
		}
		limit = min(2*limit, 500*time.Millisecond)
	}
}

// A writer that waits after a lost race must look again what is free: others
// go on committing, and what was free before the wait no longer is.
func TestCommitSeesWhatWasCommittedWhileItWaited(t *testing.T) {
	log := newFakeLog(t, actions{testProtocol(1, 2), testMetadata()})
	log.st.put = func(_ string, _ []byte, write func() store.Outcome) (store.Outcome, error) {
		if log.st.puts == 1 {
			log.foreign(t, 1, testAdd("other1.parquet"))
		}
		return write(), nil
	}
	c := newCommitter(log, Options{})
	c.pause = func(n int) time.Duration {
		if n == 1 {
			for v := int64(2); v < 6; v++ {
				log.foreign(t, v, testAdd(fmt.Sprintf("other%d.parquet", v)))
			}
		}
		return 0
	}
	v, err := c.commit(t.Context(), appendOf(0, "ours.parquet"))
	if err != nil || v != 6 {
		t.Errorf("got version %d, %v, want 6", v, err)
	}
	if log.st.puts != 2 {
		t.Errorf("%d attempts, want 2", log.st.puts)
	}
}
