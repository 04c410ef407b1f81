package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

// settled waits until a checkpointer has nothing to do.
func settled(t *testing.T, k *checkpointer) {
	t.Helper()
	k.mu.Lock()
	idle := k.idle
	k.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(time.Minute):
		t.Fatal("the checkpointer does not come to rest")
	}
}

// checkpoints are the versions that have one.
func (c *checkpointTable) checkpoints() string {
	c.t.Helper()
	var out []string
	for _, name := range strings.Fields(c.logNames()) {
		if v, ok := strings.CutSuffix(name, ".checkpoint.parquet"); ok {
			out = append(out, strings.TrimLeft(v, "0"))
		}
	}
	return strings.Join(out, " ")
}

func TestCommitsMakeCheckpointsDue(t *testing.T) {
	for _, tt := range []struct{ name, interval, want string }{
		{"every ten", "", "10 20"},
		{"the property", "7", "7 14 21"},
		{"one", "1", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"},
		{"rare", "100", ""},
		{"no number", "often", "10 20"},
		{"not positive", "0", "10 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := testMetadata()
			if tt.interval != "" {
				m.Configuration["delta.checkpointInterval"] = tt.interval
			}
			c := newCheckpointTable(t).commit(testProtocol(1, 2), m)
			w, err := Open(t.Context(), c.open(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for v := range int64(22) {
				if _, err := w.Commit(t.Context(), appendOf(v, fmt.Sprintf("f%d", v))); err != nil {
					t.Fatal(err)
				}
				settled(t, w.checkpoints)
			}
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.checkpoints(); got != tt.want {
				t.Errorf("checkpoints of %q, want %q", got, tt.want)
			}
			c.version = 22
			if n := len(c.files(22)); n != 22 {
				t.Errorf("%d files", n)
			}
		})
	}
}

// TestCommitDoesNotWaitForACheckpoint: while one is being written, others only
// note what is due, and of that the newest one follows.
func TestCommitDoesNotWaitForACheckpoint(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata("delta.checkpointInterval", "2"))
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := c.withStore(func(op, name string) error {
		if op == "Stage" {
			once.Do(func() { close(begun); <-goOn })
		}
		return nil
	})
	w, err := Open(t.Context(), slow.table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for v := range int64(2) {
		if _, err := w.Commit(t.Context(), appendOf(v, fmt.Sprintf("f%d", v))); err != nil {
			t.Fatal(err)
		}
	}
	<-begun
	for v := int64(2); v < 9; v++ {
		if _, err := w.Commit(t.Context(), appendOf(v, fmt.Sprintf("f%d", v))); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	settled(t, w.checkpoints)
	if got := c.checkpoints(); got != "2 8" {
		t.Errorf("checkpoints of %q, want those of 2 and 8", got)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestFailedCheckpointIsToldOnceAndFailsNoCommit: it would fail again with every
// commit.
func TestFailedCheckpointIsToldOnceAndFailsNoCommit(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata("delta.checkpointInterval", "2"))
	var full error = errors.New("no space left")
	broken := c.withStore(func(op, name string) error {
		if op == "Publish" && strings.Contains(name, "checkpoint") {
			return full
		}
		return nil
	})
	var told []string
	var log bytes.Buffer
	w, err := Open(t.Context(), broken.table, Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Report: func(op, name string, err error) { told = append(told, op+": "+err.Error()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(v int64) {
		t.Helper()
		if got, err := w.Commit(t.Context(), appendOf(v, fmt.Sprintf("f%d", v))); err != nil || got != v+1 {
			t.Fatalf("version %d, %v", got, err)
		}
		settled(t, w.checkpoints)
	}
	for v := range int64(6) {
		commit(v)
	}
	// The version is another each time, the failure is not.
	if len(told) != 1 || !strings.Contains(told[0], "checkpoint: ") || !strings.Contains(told[0], "no space left") {
		t.Errorf("told %q", told)
	}
	if n := strings.Count(log.String(), "checkpoint failed"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
	full = nil
	commit(6)
	commit(7)
	full = errors.New("no space left")
	commit(8)
	commit(9)
	if len(told) != 2 {
		t.Errorf("a failure after a success is told %d times", len(told)-1)
	}
	if got := c.checkpoints(); got != "8" {
		t.Errorf("checkpoints of %q", got)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTableWithoutCheckpointsIsLoggedAndNotReported(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata("delta.checkpointInterval", "1"))
	c.commit(&action.Unknown{Name: "future", Raw: []byte(`{}`)})
	var log bytes.Buffer
	w, err := Open(t.Context(), c.open(), Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Report: func(op, name string, err error) { t.Errorf("reported %s: %v", op, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(1); v < 4; v++ {
		if _, err := w.Commit(t.Context(), appendOf(v, fmt.Sprintf("f%d", v))); err != nil {
			t.Fatal(err)
		}
		settled(t, w.checkpoints)
	}
	if text := log.String(); strings.Count(text, "no checkpoint") != 1 || !strings.Contains(text, "future") {
		t.Errorf("logged %s", text)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCloseGivesALongCheckpointUp: it has no name yet.
func TestCloseGivesALongCheckpointUp(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata("delta.checkpointInterval", "1"))
	begun, goOn := make(chan struct{}), make(chan struct{})
	slow := c.withStore(func(op, name string) error {
		if op == "Stage" {
			close(begun)
			<-goOn
		}
		return nil
	})
	var log bytes.Buffer
	w, err := Open(t.Context(), slow.table, Options{
		Report: func(op, name string, err error) { t.Errorf("reported %s: %v", op, err) },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.checkpoints.grace = time.Millisecond
	if _, err := w.Commit(t.Context(), appendOf(0, "f")); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	settled(t, w.checkpoints)
	if !strings.Contains(log.String(), `msg="checkpoint given up"`) {
		t.Errorf("nobody is told: %s", &log)
	}
	c.wantLog("00000000000000000000.json 00000000000000000001.json")
	// Nothing begins any more.
	w.checkpoints.committed(10, header{})
	if w.checkpoints.running {
		t.Error("a checkpoint begins after the end")
	}
	c.wantLog("00000000000000000000.json 00000000000000000001.json")
}

// TestCheckpointsRest: the next one is written later, or when the mount ends.
func TestCheckpointsRest(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata("delta.checkpointInterval", "1"))
	w, err := Open(t.Context(), c.open(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	rests := make(chan time.Duration, 2)
	w.checkpoints.grace = time.Hour
	w.checkpoints.rest = func(took time.Duration) time.Duration {
		rests <- took
		return time.Hour
	}
	if _, err := w.Commit(t.Context(), appendOf(0, "f")); err != nil {
		t.Fatal(err)
	}
	if took := <-rests; took <= 0 {
		t.Errorf("took %v", took)
	}
	if _, err := w.Commit(t.Context(), appendOf(1, "g")); err != nil {
		t.Fatal(err)
	}
	c.wantLog("00000000000000000000.json 00000000000000000001.checkpoint.parquet 00000000000000000001.json 00000000000000000002.json _last_checkpoint")
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.wantLog("00000000000000000000.json 00000000000000000001.checkpoint.parquet 00000000000000000001.json " +
		"00000000000000000002.checkpoint.parquet 00000000000000000002.json _last_checkpoint")
}

func TestCloseWaitsForAShortCheckpoint(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata("delta.checkpointInterval", "1"))
	w, err := Open(t.Context(), c.open(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.checkpoints.grace = time.Hour
	if _, err := w.Commit(t.Context(), appendOf(0, "f")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.checkpoints(); got != "1" {
		t.Errorf("checkpoints of %q", got)
	}
}

// TestCheckpointOnDemand is the command.
func TestCheckpointOnDemand(t *testing.T) {
	c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata(), testAdd("a")).commit(testAdd("b"), testRemove("a"))
	out, err := Checkpoint(context.Background(), c.open(), Options{})
	if err != nil || !out.Written || out.Version != 1 || out.Files != 1 || out.Actions != 3 || out.Size == 0 || out.Deleted != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	again, err := Checkpoint(context.Background(), c.open(), Options{})
	if err != nil || again.Written || again.Version != 1 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := snapshot.Open(context.Background(), c.st, snapshot.Options{}); err != nil {
		t.Error(err)
	}
}
