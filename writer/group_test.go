package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

type result struct {
	version int64
	err     error
}

// queued is how many transactions wait to share a commit.
func queued(c *committer) int {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return len(c.queue.members)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not %s", what)
		}
	}
}

// commitTogether begins the commits while another one has the turn, in this
// order, and returns what became of them.
func commitTogether(t *testing.T, c *committer, specs ...*TxnSpec) []result {
	t.Helper()
	out := make([]result, len(specs))
	c.turn <- struct{}{}
	var wg sync.WaitGroup
	for i, spec := range specs {
		before := queued(c)
		wg.Go(func() { out[i].version, out[i].err = c.commit(context.Background(), spec) })
		if spec.mayShare() {
			eventually(t, "waiting", func() bool { return queued(c) > before })
		}
	}
	<-c.turn
	wg.Wait()
	return out
}

func wantVersions(t *testing.T, got []result, want ...int64) {
	t.Helper()
	var versions []int64
	for i, r := range got {
		if r.err != nil {
			t.Errorf("%d: %v", i, r.err)
		}
		versions = append(versions, r.version)
	}
	if !slices.Equal(versions, want) {
		t.Errorf("versions %v, want %v", versions, want)
	}
}

func TestAppendsThatWaitShareACommit(t *testing.T) {
	l := newFakeLog(t, firstVersion(), actions{testAdd("a.parquet")})
	c := testCommitter(l, Options{})
	specs := []*TxnSpec{appendOf(1, "x.parquet"), appendOf(0, "y.parquet", "z.parquet"), appendOf(1, "w.parquet")}
	var published []string
	for i, s := range specs {
		s.Published = []string{fmt.Sprint("object", i)}
		published = append(published, s.Published...)
	}
	l.st.put = func(_ string, _ []byte, write func() store.Outcome) (store.Outcome, error) {
		if l.st.puts == 1 && !slices.Equal(l.st.prior, published) {
			t.Errorf("durable before are %q, want %q", l.st.prior, published)
		}
		return write(), nil
	}
	wantVersions(t, commitTogether(t, c, specs...), 2, 2, 2)
	as, err := l.ReadCommit(context.Background(), 2)
	if err != nil || len(as) != 5 || len(l.commits()) != 3 {
		t.Fatalf("%v in %d commits, %v", as, len(l.commits()), err)
	}
	for _, part := range []string{
		`"operation":"WRITE"`, `"mode":"Append"`, `"isBlindAppend":true`, `"readVersion":0`,
		`"numFiles":"4"`, `"numOutputRows":"40"`, `"numOutputBytes":"400"`,
	} {
		if info := as[0].(*action.CommitInfo); !bytes.Contains(info.Raw, []byte(part)) {
			t.Errorf("commitInfo %s lacks %s", info.Raw, part)
		}
	}
	wantVersions(t, commitTogether(t, c, appendOf(2, "v.parquet")), 3)
}

func TestAMemberThatCannotCommitIsRefusedAlone(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	c := testCommitter(l, Options{})
	misplaced := appendOf(0, "bad.parquet")
	misplaced.Actions[0].(*action.Add).PartitionValues = map[string]*string{"nope": nil}
	elsewhere := appendOf(0, "elsewhere.parquet")
	elsewhere.Incarnation = 7
	got := commitTogether(t, c, appendOf(0, "a.parquet"), misplaced, appendOf(0, "b.parquet"), elsewhere, appendOf(5, "late.parquet"),
		appendOf(0, "a.parquet"), appendOf(0, "c.parquet"))
	for i, want := range map[int]error{1: ErrInvalid, 3: ErrConflict, 4: ErrConflict, 5: ErrConflict} {
		if !errors.Is(got[i].err, want) {
			t.Errorf("member %d: %v, want %v", i, got[i].err, want)
		}
	}
	wantText(t, got[5].err, "fake", "@v1", "a.parquet", "added this file too")
	wantVersions(t, []result{got[0], got[2], got[6]}, 1, 1, 1)
	if got := l.adds(t); !maps.Equal(got, map[string]int{"a.parquet": 1, "b.parquet": 1, "c.parquet": 1}) || len(l.commits()) != 2 {
		t.Errorf("log holds %v in %d commits", got, len(l.commits()))
	}
}

func TestASharedCommitThatLosesARaceIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name    string
		foreign actions
		// shared says that the members still share a commit.
		shared bool
	}{
		{"append", actions{testAdd("other.parquet")}, true},
		{"the same file", actions{testAdd("b.parquet")}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newFakeLog(t, firstVersion())
			l.st.put = func(_ string, _ []byte, write func() store.Outcome) (store.Outcome, error) {
				if l.st.puts == 1 {
					l.foreign(t, 1, tt.foreign...)
				}
				return write(), nil
			}
			got := commitTogether(t, testCommitter(l, Options{}), appendOf(0, "a.parquet"), appendOf(0, "b.parquet"), appendOf(0, "c.parquet"))
			if tt.shared {
				wantVersions(t, got, 2, 2, 2)
			} else {
				if !errors.Is(got[1].err, ErrConflict) {
					t.Errorf("the loser got %v", got[1].err)
				}
				wantVersions(t, []result{got[0], got[2]}, 2, 3)
			}
			want := map[string]int{"a.parquet": 1, "b.parquet": 1, "c.parquet": 1}
			if tt.shared {
				want["other.parquet"] = 1
			}
			if got := l.adds(t); !maps.Equal(got, want) {
				t.Errorf("log holds %v, want %v", got, want)
			}
		})
	}
}

func TestASharedCommitThatFailsIsTriedMemberByMember(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	full := errors.New("no space for a long commit")
	l.st.put = func(_ string, data []byte, write func() store.Outcome) (store.Outcome, error) {
		switch {
		case bytes.Count(data, []byte("\n")) > 2:
			return store.Unsure, full
		case bytes.Contains(data, []byte("b.parquet")):
			return store.Unsure, errors.New("bad luck")
		}
		return write(), nil
	}
	got := commitTogether(t, testCommitter(l, Options{}), appendOf(0, "a.parquet"), appendOf(0, "b.parquet"), appendOf(0, "c.parquet"))
	wantVersions(t, []result{got[0], got[2]}, 1, 2)
	wantText(t, got[1].err, "bad luck")
	if got := l.adds(t); !maps.Equal(got, map[string]int{"a.parquet": 1, "c.parquet": 1}) {
		t.Errorf("log holds %v", got)
	}
}

// When nobody knows whether the shared commit exists, no member may be tried
// again.
func TestASharedCommitOfUnknownOutcomeIsUnknownToAll(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	l.st.put = func(_ string, _ []byte, write func() store.Outcome) (store.Outcome, error) {
		write()
		return store.Unsure, nil
	}
	l.st.open = func(name string) error {
		if name != snapshot.CommitName(0) {
			return errors.New("no connection")
		}
		return nil
	}
	got := commitTogether(t, testCommitter(l, Options{}), appendOf(0, "a.parquet"), appendOf(0, "b.parquet"))
	for i, r := range got {
		if !errors.Is(r.err, ErrUnsure) {
			t.Errorf("member %d: %v", i, r.err)
		}
	}
	l.st.open = nil
	if got := l.adds(t); !maps.Equal(got, map[string]int{"a.parquet": 1, "b.parquet": 1}) || l.st.puts != 1 {
		t.Errorf("log holds %v after %d attempts", got, l.st.puts)
	}
}

func TestOnlyBlindAppendsShare(t *testing.T) {
	base := func() *TxnSpec { return appendOf(0, "a.parquet") }
	if !base().mayShare() {
		t.Error("an append does not share")
	}
	for name, change := range map[string]func(*TxnSpec){
		"no actions":     func(s *TxnSpec) { s.Actions = nil },
		"removal":        func(s *TxnSpec) { s.Actions = append(s.Actions, testRemove("b.parquet")) },
		"txn":            func(s *TxnSpec) { s.Actions = append(s.Actions, &action.Txn{AppID: "app", Version: 1}) },
		"domain":         func(s *TxnSpec) { s.Actions = append(s.Actions, &action.DomainMetadata{Domain: "d"}) },
		"metadata":       func(s *TxnSpec) { s.Actions = append(s.Actions, testMetadata()) },
		"no data change": func(s *TxnSpec) { s.Actions = rearranged(s.Actions...) },
		"creation":       func(s *TxnSpec) { s.Base = -1 },
		"read file":      func(s *TxnSpec) { s.ReadFiles = []string{"b.parquet"} },
		"read table":     func(s *TxnSpec) { s.ReadWhole = true },
		"application":    func(s *TxnSpec) { s.AppIDs = []string{"app"} },
		"user metadata":  func(s *TxnSpec) { s.UserMetadata = "mine" },
		"parameters":     func(s *TxnSpec) { s.Parameters = map[string]any{} },
		"metrics":        func(s *TxnSpec) { s.Metrics = map[string]string{} },
		"operation":      func(s *TxnSpec) { s.Operation = "COPY INTO" },
	} {
		s := base()
		if change(s); s.mayShare() {
			t.Errorf("%s: shares", name)
		}
	}
	// What does not share has a commit of its own among those that do.
	l := newFakeLog(t, firstVersion())
	mine := appendOf(0, "mine.parquet")
	mine.UserMetadata = "mine"
	got := commitTogether(t, testCommitter(l, Options{}), appendOf(0, "a.parquet"), mine, appendOf(0, "b.parquet"))
	if got[0] != got[2] || got[0].version == got[1].version || len(l.commits()) != 3 {
		t.Errorf("got %v in %d commits", got, len(l.commits()))
	}
}

func TestGroupsAreBounded(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	c := testCommitter(l, Options{})
	var specs []*TxnSpec
	for i := range maxMembers + 6 {
		specs = append(specs, appendOf(0, fmt.Sprintf("%d.parquet", i)))
	}
	long := appendOf(0, "long.parquet")
	long.Actions[0].(*action.Add).Stats = `{"numRecords":1,"minValues":{"k":"` + strings.Repeat("x", maxGroupBytes) + `"}}`
	specs = append(specs, long, appendOf(0, "last.parquet"))
	got := commitTogether(t, c, specs...)
	want := slices.Repeat([]int64{1}, maxMembers)
	want = append(append(want, slices.Repeat([]int64{2}, 6)...), 3, 4)
	wantVersions(t, got, want...)
}

func TestAMemberMayLeaveUntilItsCommitBegins(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	c := testCommitter(l, Options{})
	c.turn <- struct{}{}
	ctx, cancel := context.WithCancel(context.Background())
	left, stayed := make(chan result, 1), make(chan result, 1)
	begin := func(ctx context.Context, path string, to chan result) {
		v, err := c.commit(ctx, appendOf(0, path))
		to <- result{v, err}
	}
	go begin(ctx, "left.parquet", left)
	eventually(t, "waiting", func() bool { return queued(c) == 1 })
	go begin(context.Background(), "stayed.parquet", stayed)
	eventually(t, "waiting", func() bool { return queued(c) == 2 })
	cancel()
	if r := <-left; !errors.Is(r.err, context.Canceled) {
		t.Errorf("who left got %v", r)
	}
	<-c.turn
	wantVersions(t, []result{<-stayed}, 1)
	if got := l.adds(t); got["left.parquet"] != 0 {
		t.Error("who left is committed")
	}
}

func TestSharedCommitTimesGrow(t *testing.T) {
	l := newFakeLog(t, firstVersion("delta.enableInCommitTimestamps", "true"))
	future := &action.CommitInfo{Raw: []byte(`{"inCommitTimestamp":4000000000000,"operation":"WRITE"}`)}
	line, err := action.Encode(future)
	if err != nil {
		t.Fatal(err)
	}
	l.st.write(snapshot.CommitName(1), line)
	c := testCommitter(l, Options{})
	for v := int64(2); v < 6; v++ {
		wantVersions(t, commitTogether(t, c, appendOf(0, fmt.Sprint("a", v)), appendOf(v-1, fmt.Sprint("b", v))), v, v)
		at, _, _ := l.CommitTime(context.Background(), v)
		if got := at.UnixMilli(); got != 4_000_000_000_000+v-1 {
			t.Errorf("version %d: commit time %d", v, got)
		}
	}
}

// slowStore lets a test hold the commits back.
type slowStore struct {
	store.Store
	held chan struct{}
}

func (s *slowStore) PutIfAbsent(ctx context.Context, name string, data []byte, prior ...string) (store.Outcome, error) {
	<-s.held
	return s.Store.PutIfAbsent(ctx, name, data, prior...)
}

// TestFilesOfManyProcessesShareACommit closes files of several processes while
// a commit is under way: each is visible under its own name, with its bytes and
// the time its writer gave it, and a refused one is refused alone.
func TestFilesOfManyProcessesShareACommit(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	localTable(t, dir, actions{testProtocol(1, 2), testMetadata()})
	local, err := store.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	st := &slowStore{local, make(chan struct{})}
	table, err := snapshot.Open(ctx, st, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	w, err := Open(ctx, table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := w.Live()
	const files = 9
	var wg sync.WaitGroup
	data := func(i int) []byte { return tableFile(t, int64(i), int64(i)) }
	when := func(i int) time.Time { return time.Unix(int64(1e9+i), 0).UTC() }
	for i := range files {
		s, err := l.Create(ctx, Caller{PID: uint32(i + 1)}, "", fmt.Sprintf("f%d.parquet", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.WriteAt(ctx, data(i), 0); err != nil {
			t.Fatal(err)
		}
		s.SetModTime(when(i))
		wg.Go(func() {
			if err := s.Flush(ctx); err != nil {
				t.Errorf("file %d: %v", i, err)
			}
			s.CloseHandle(true)
		})
		if i == 0 { // its commit is under way when the others come
			eventually(t, "committing", func() bool { return queued(w.commits) == 0 && len(w.commits.turn) == 1 })
		} else {
			eventually(t, "waiting", func() bool { return queued(w.commits) == i })
		}
	}
	close(st.held)
	wg.Wait()
	if got := table.Latest(); got != 2 {
		t.Errorf("%d commits, want 2", got)
	}
	for i := range files {
		n, err := l.Lookup(ctx, Caller{PID: 99}, "", fmt.Sprintf("f%d.parquet", i))
		if err != nil || n.File == nil || !n.File.ModTime.Equal(when(i)) {
			t.Fatalf("file %d is %+v, %v", i, n, err)
		}
		got, err := os.ReadFile(filepath.Join(dir, n.File.Path))
		if err != nil || !bytes.Equal(got, data(i)) {
			t.Errorf("file %d holds other bytes, %v", i, err)
		}
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, areaDir)); err == nil {
		t.Error("something is left behind")
	}
}

// A defect in a commit must not leave the others waiting.
func TestNobodyWaitsForACommitThatPanicked(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	c := testCommitter(l, Options{})
	l.st.put = func(string, []byte, func() store.Outcome) (store.Outcome, error) { panic("defect") }
	members := []*member{}
	for _, path := range []string{"a.parquet", "b.parquet"} {
		members = append(members, &member{ctx: context.Background(), spec: appendOf(0, path), done: make(chan struct{})})
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		c.commitGroup(members)
	}()
	for _, m := range members {
		var known *fault.Error
		if !m.finished() || !errors.As(m.err, &known) || !errors.Is(m.err, ErrUnsure) {
			t.Errorf("a member got %v", m.err)
		}
	}
}
