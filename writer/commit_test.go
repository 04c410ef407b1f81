package writer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

func TestCommitRebasesOnWhatIsKnown(t *testing.T) {
	l := newFakeLog(t, firstVersion(), actions{testAdd("a.parquet")})
	l.foreign(t, 2, testAdd("b.parquet"))
	l.foreign(t, 3, testRemove("a.parquet"))

	v, err := testCommitter(l, Options{}).commit(context.Background(), appendOf(1, "n.parquet"))
	if err != nil || v != 4 || l.st.puts != 1 {
		t.Errorf("version %d after %d attempts, %v; want 4 after 1", v, l.st.puts, err)
	}

	spec := &TxnSpec{Operation: "WRITE", Base: 1, Actions: actions{testRemove("a.parquet"), testAdd("m.parquet")}}
	_, err = testCommitter(l, Options{}).commit(context.Background(), spec)
	var e *fault.Error
	if !errors.Is(err, ErrConflict) || !errors.As(err, &e) || *e.Version != 3 || e.File != "a.parquet" || e.Table != "fake" {
		t.Errorf("got %v, want a conflict with version 3 over a.parquet", err)
	}
	if len(l.commits()) != 5 {
		t.Errorf("log is %v", l.commits())
	}
}

func TestCommitChecksBeforeItWrites(t *testing.T) {
	removal := &TxnSpec{Operation: "DELETE", Base: 0, Actions: actions{testRemove("a.parquet")}}
	tests := []struct {
		name  string
		first actions
		opts  Options
		spec  *TxnSpec
		want  error
	}{
		{"read-only mount", firstVersion(), Options{ReadOnly: true}, appendOf(0, "n.parquet"), ErrReadOnly},
		{"append-only mount", firstVersion(), Options{AppendOnly: true}, removal, ErrAppendOnly},
		{"append-only table", firstVersion("delta.appendOnly", "true"), Options{}, removal, ErrAppendOnly},
		{"unsupported feature", firstVersion("delta.constraints.c", "v > 0"), Options{}, appendOf(0, "n.parquet"), ErrReadOnly},
		{"unsupported feature by the commit", firstVersion(), Options{},
			&TxnSpec{Operation: "ADD CONSTRAINT", Base: 0, Actions: actions{testMetadata("delta.constraints.c", "v > 0")}}, ErrReadOnly},
		{"broken invariant", firstVersion(), Options{}, appendOf(0, "n.parquet", "n.parquet"), ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newFakeLog(t, tt.first)
			_, err := testCommitter(l, tt.opts).commit(context.Background(), tt.spec)
			if !errors.Is(err, tt.want) || l.st.puts != 0 {
				t.Errorf("got %v after %d attempts, want %v after none", err, l.st.puts, tt.want)
			}
		})
	}
}

func TestCommitOnATableMadeAgainLeavesNoGap(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	if _, err := testCommitter(l, Options{}).commit(context.Background(), appendOf(7, "n.parquet")); !errors.Is(err, ErrConflict) {
		t.Errorf("shorter log: got %v, want ErrConflict", err)
	}
	l.recreated = true
	if _, err := testCommitter(l, Options{}).commit(context.Background(), appendOf(0, "n.parquet")); !errors.Is(err, ErrConflict) {
		t.Errorf("other log: got %v, want ErrConflict", err)
	}
	if l.st.puts != 0 {
		t.Errorf("%d attempts", l.st.puts)
	}
}

func TestCommitCreatesATable(t *testing.T) {
	l := newFakeLog(t)
	spec := &TxnSpec{Operation: "CREATE TABLE", Base: -1, Actions: firstVersion()}
	if v, err := testCommitter(l, Options{}).commit(context.Background(), spec); err != nil || v != 0 {
		t.Fatalf("version %d, %v", v, err)
	}
	other := newFakeLog(t, firstVersion())
	if _, err := testCommitter(other, Options{}).commit(context.Background(), spec); !errors.Is(err, ErrConflict) {
		t.Errorf("table exists: got %v, want ErrConflict", err)
	}
}

func TestCommitTellsWhatItsRefreshFound(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	var got []snapshot.Event
	o := Options{OnRefresh: func(_ context.Context, ev snapshot.Event) { got = append(got, ev) }}
	l.foreign(t, 1, testAdd("a.parquet"))
	if _, err := testCommitter(l, o).commit(context.Background(), appendOf(0, "n.parquet")); err != nil {
		t.Fatal(err)
	}
	if want := []snapshot.Event{{From: 0, To: 1}, {From: 1, To: 2}}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

func TestCommitStandsWhenTheRefreshAfterItFails(t *testing.T) {
	l := newFakeLog(t, firstVersion())
	l.refresh = func() error {
		if l.st.puts > 0 {
			return errors.New("no connection")
		}
		return nil
	}
	if v, err := testCommitter(l, Options{}).commit(context.Background(), appendOf(0, "n.parquet")); err != nil || v != 1 {
		t.Errorf("version %d, %v", v, err)
	}
}

func TestCommitTimesGrowThroughConflicts(t *testing.T) {
	future := int64(4_000_000_000_000)
	l := newFakeLog(t, firstVersion("delta.enableInCommitTimestamps", "true"))
	l.st.put = func(_ string, _ []byte, write func() store.Outcome) (store.Outcome, error) {
		if l.st.puts == 1 {
			info := &action.CommitInfo{Raw: []byte(`{"inCommitTimestamp":4000000000000,"operation":"WRITE"}`)}
			line, _ := action.Encode(info)
			l.st.write(snapshot.CommitName(1), line)
		}
		return write(), nil
	}
	c := testCommitter(l, Options{})
	for want := int64(2); want < 5; want++ {
		v, err := c.commit(context.Background(), appendOf(l.Latest(), snapshot.CommitName(want)))
		if err != nil || v != want {
			t.Fatalf("version %d, %v", v, err)
		}
		at, _, _ := l.CommitTime(context.Background(), v)
		if got := at.UnixMilli(); got != future+want-1 {
			t.Errorf("version %d: commit time %d, want %d", v, got, future+want-1)
		}
	}
}

func TestWritableByTheLatestVersion(t *testing.T) {
	l := newFakeLog(t, firstVersion(), actions{testMetadata("delta.constraints.c", "v > 0")}, actions{testMetadata()})
	c := testCommitter(l, Options{})
	for v, ok := range []bool{true, false, true} {
		l.seen = int64(v)
		err := c.writable(context.Background())
		if ok != (err == nil) || err != nil && !errors.Is(err, ErrReadOnly) {
			t.Errorf("version %d: %v", v, err)
		}
		if err != nil {
			wantText(t, err, "fake", "CHECK constraint c")
		}
	}
	if err := testCommitter(l, Options{ReadOnly: true}).writable(context.Background()); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only mount: %v", err)
	}
}
