package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// memStore is storage in memory whose answers a test can bend.
type memStore struct {
	mu      sync.Mutex
	objects map[string][]byte
	// put, if set, answers PutIfAbsent; write is the honest implementation.
	put func(name string, data []byte, write func() store.Outcome) (store.Outcome, error)
	// open, if set, may fail a read.
	open func(name string) error
	puts int
	// prior is what the last PutIfAbsent had to come after.
	prior []string
}

func (s *memStore) Root() string { return "/table" }

func (s *memStore) write(name string, data []byte) store.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[name]; ok {
		return store.Lost
	}
	s.objects[name] = bytes.Clone(data)
	return store.Won
}

func (s *memStore) PutIfAbsent(ctx context.Context, name string, data []byte, prior ...string) (store.Outcome, error) {
	s.mu.Lock()
	s.puts++
	s.prior = prior
	put := s.put
	s.mu.Unlock()
	honest := func() store.Outcome { return s.write(name, data) }
	if put != nil {
		return put(name, data, honest)
	}
	return honest(), nil
}

func (s *memStore) Open(ctx context.Context, name string) (store.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		if err := s.open(name); err != nil {
			return nil, err
		}
	}
	data, ok := s.objects[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, store.ErrNotExist)
	}
	return memObject{bytes.NewReader(data)}, ctx.Err()
}

func (s *memStore) Head(ctx context.Context, name string) (store.Info, error) {
	o, err := s.Open(ctx, name)
	if err != nil {
		return store.Info{}, err
	}
	return o.Info(), nil
}

func (s *memStore) List(context.Context, string, string, string) iter.Seq2[store.Info, error] {
	return func(func(store.Info, error) bool) {}
}
func (s *memStore) Draft(context.Context, string, []byte, ...string) (store.Draft, error) {
	return nil, errors.ErrUnsupported
}
func (s *memStore) Put(context.Context, string, []byte) error       { return errors.ErrUnsupported }
func (s *memStore) Publish(context.Context, *os.File, string) error { return errors.ErrUnsupported }
func (s *memStore) Delete(context.Context, string) error            { return errors.ErrUnsupported }

type memObject struct{ *bytes.Reader }

func (o memObject) Close() error     { return nil }
func (o memObject) File() *os.File   { return nil }
func (o memObject) Info() store.Info { return store.Info{Size: o.Size()} }

// fakeLog is the log of a table in a memStore, read again for every question.
type fakeLog struct {
	st *memStore
	// seen is the latest version of the last Refresh.
	mu         sync.Mutex
	seen       int64
	refresh    func() error
	recreated  bool
	life       int
	readCommit func(v int64) error
}

// newFakeLog has the given versions, each as actions without commitInfo.
func newFakeLog(t *testing.T, versions ...actions) *fakeLog {
	t.Helper()
	l := &fakeLog{st: &memStore{objects: map[string][]byte{}}}
	for v, as := range versions {
		l.foreign(t, int64(v), as...)
	}
	l.seen = int64(len(versions)) - 1
	return l
}

// foreign is another writer's commit.
func (l *fakeLog) foreign(t *testing.T, v int64, as ...action.Action) {
	t.Helper()
	info := &action.CommitInfo{Raw: fmt.Appendf(nil,
		`{"operation":"WRITE","engineInfo":"other","inCommitTimestamp":%d,"txnId":"foreign-%d"}`, 1000*(v+1), v)}
	var file []byte
	for _, a := range append(actions{info}, as...) {
		line, err := action.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		file = append(append(file, line...), '\n')
	}
	if l.st.write(snapshot.CommitName(v), file) != store.Won {
		t.Fatalf("version %d exists", v)
	}
}

func (l *fakeLog) Name() string       { return "fake" }
func (l *fakeLog) Store() store.Store { return l.st }
func (l *fakeLog) Incarnation() any   { return l.life }

func (l *fakeLog) Latest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

func (l *fakeLog) Refresh(ctx context.Context) (snapshot.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refresh != nil {
		if err := l.refresh(); err != nil {
			return snapshot.Event{}, err
		}
	}
	ev := snapshot.Event{From: l.seen, Recreated: l.recreated}
	l.st.mu.Lock()
	defer l.st.mu.Unlock()
	for l.st.objects[snapshot.CommitName(l.seen+1)] != nil {
		l.seen++
	}
	ev.To = l.seen
	return ev, nil
}

func (l *fakeLog) ReadCommit(ctx context.Context, v int64) ([]action.Action, error) {
	if l.readCommit != nil {
		if err := l.readCommit(v); err != nil {
			return nil, err
		}
	}
	o, err := l.st.Open(ctx, snapshot.CommitName(v))
	if err != nil {
		return nil, err
	}
	var out actions
	for r := action.NewReader(io.NewSectionReader(o, 0, o.Info().Size), o.Info().Size); ; {
		a, err := r.Next()
		if err == io.EOF && len(out) > 0 {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", snapshot.ErrCorrupt, err)
		}
		out = append(out, a)
	}
}

func (l *fakeLog) Header(ctx context.Context, v int64) (*action.Protocol, *action.Metadata, error) {
	var h header
	for i := int64(0); i <= v; i++ {
		as, err := l.ReadCommit(ctx, i)
		if err != nil {
			return nil, nil, err
		}
		h = h.with(as)
	}
	return h.protocol, h.metadata, nil
}

func (l *fakeLog) CommitTime(ctx context.Context, v int64) (time.Time, bool, error) {
	as, err := l.ReadCommit(ctx, v)
	if err != nil {
		return time.Time{}, false, err
	}
	ms, ok := as[0].(*action.CommitInfo).InCommitTimestamp()
	return time.UnixMilli(ms), ok, nil
}

// commits returns the names of the commit files, in order.
func (l *fakeLog) commits() []string {
	l.st.mu.Lock()
	defer l.st.mu.Unlock()
	var out []string
	for name := range l.st.objects {
		if strings.HasSuffix(name, ".json") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// adds counts how often each path is added in the whole log.
func (l *fakeLog) adds(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for v := range len(l.commits()) {
		as, err := l.ReadCommit(context.Background(), int64(v))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range as {
			if add, ok := a.(*action.Add); ok {
				out[add.Path]++
			}
		}
	}
	return out
}

// testCommitter does not wait between tries.
func testCommitter(l tableLog, o Options) *committer {
	o.EngineInfo = "deltafs/test"
	c := newCommitter(l, o)
	c.pause = func(int) time.Duration { return 0 }
	c.readBackTimeout = 100 * time.Millisecond
	return c
}

// firstVersion makes the table.
func firstVersion(config ...string) actions {
	return actions{testProtocol(1, 2), testMetadata(config...)}
}
