package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

// appendedTo are tables to append to.
type appendedTo struct {
	what, table, partition string
}

// historyVersions are the latest versions of the tables with a long history, 40
// commits after a checkpoint if there is one.
func (b *bench) historyVersions() []int64 {
	if b.full {
		return []int64{10, 10_040, 100_040}
	}
	return []int64{10, 10_040}
}

func (b *bench) makeHistories() error {
	_, err := b.appendTables()
	return err
}

func (b *bench) appendTables() ([]appendedTo, error) {
	var out []appendedTo
	for _, v := range b.historyVersions() {
		table := filepath.Join(b.keep, fmt.Sprintf("history-%d", v))
		sayMaking(table, "the table with %d versions", v)
		partition, err := tables.MakeHistory(table, v)
		if err != nil {
			return nil, err
		}
		out = append(out, appendedTo{fmt.Sprintf("version %d", v), table, partition})
	}
	sayMaking(b.million(), "the table of a million files")
	about, err := tables.MakeMillion(b.million())
	return append(out, appendedTo{"a million files", b.million(), about.Partition}), err
}

// append compares appends through the mount, durable when close returns, with
// as many processes that write plain files and sync file and directory.
func (b *bench) append() error {
	appended, err := b.appendTables()
	if err != nil {
		return err
	}
	source := filepath.Join(b.work, "append.parquet")
	if err := fixture.WriteParquet(source, fixture.Rows(1, 1000)); err != nil {
		return err
	}
	for _, a := range appended {
		if err := b.appendTo(a, source); err != nil {
			return fmt.Errorf("%s: %w", a.what, err)
		}
	}
	return nil
}

func (b *bench) appendTo(a appendedTo, source string) error {
	table, remove, err := b.scratch(a.table)
	if err != nil {
		return err
	}
	defer remove()
	cache, err := b.newDir("cache")
	if err != nil {
		return err
	}
	m, err := b.mountTable(table, cache)
	if err != nil {
		return err
	}
	defer m.stop()
	current := filepath.Join(m.point, "current", a.partition)
	if _, err := os.ReadDir(current); err != nil {
		return err
	}
	if err := waitIdle(m.pid); err != nil {
		return err
	}
	// Beside the partitions, where ext4 takes inodes from the same place: without
	// a journal it passes over those that were freed in the last minutes one by
	// one, which may take longer than the append.
	plain := filepath.Join(table, "_plain")
	if err := os.Mkdir(plain, 0o755); err != nil {
		return err
	}
	var single float64
	for _, writers := range []int{1, 4, 16} {
		ours, theirs, err := b.appendBeside(current, plain, source, writers)
		if err != nil {
			return err
		}
		b.reportAppends(a.what, writers, ours, theirs)
		if writers == 1 {
			single = median(ours.Whole)
		}
	}
	return b.appendDeltaRS(a, single)
}

func (b *bench) reportAppends(what string, writers int, ours, theirs appends) {
	const peer = "cp, fsync file and directory"
	name := fmt.Sprintf("%s, %d writers", what, writers)
	if writers == 1 {
		name = what + ", 1 writer"
	}
	b.report.add(name+": open to durable", milliseconds, median(ours.Whole), peer, median(theirs.Whole))
	b.report.add(name+": last write to durable", milliseconds, median(ours.Last), peer, median(theirs.Last))
	b.report.add(name+": throughput", perSecond, median(ours.perSecond), peer, median(theirs.perSecond))
}

// appendDeltaRS lets delta-rs append to a copy of its own.
func (b *bench) appendDeltaRS(a appendedTo, ours float64) error {
	table, remove, err := b.scratch(a.table)
	if err != nil {
		return err
	}
	defer remove()
	r, err := b.peer("append_delta_rs.py", table, a.partition[len("date="):])
	if err == nil {
		b.report.inform(a.what+", 1 writer: open to durable", milliseconds, ours, "delta-rs append, table held", r.Milliseconds)
	}
	return err
}

// appends are the measurements of one way to append.
type appends struct {
	appendResult
	// perSecond has the throughput of each run.
	perSecond []float64
}

// appendBeside lets so many processes append to each directory in turn.
func (b *bench) appendBeside(current, plain, source string, writers int) (ours, theirs appends, err error) {
	for run := range b.runs {
		prefix := fmt.Sprintf("w%d-r%d", writers, run)
		if err := ours.measure(current, source, prefix, writers, false); err != nil {
			return ours, theirs, fmt.Errorf("in the mount: %w", err)
		}
		if err := theirs.measure(plain, source, prefix, writers, true); err != nil {
			return ours, theirs, fmt.Errorf("plain files: %w", err)
		}
	}
	return ours, theirs, nil
}

// appendsPerRun is the number of files that the writers write in one run.
func appendsPerRun(writers int) int { return max(20, 10*writers) }

// measure lets the writers run once, all started at the same moment.
func (a *appends) measure(dir, source, prefix string, writers int, fsync bool) error {
	var workers []*worker
	for i := range writers {
		w, err := startWorker(dir, source, fmt.Sprintf("%s-%d", prefix, i), appendsPerRun(writers)/writers, fsync)
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	start := time.Now()
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			return err
		}
	}
	end := start
	for _, w := range workers {
		r, err := w.result()
		if err != nil {
			return err
		}
		if r.End.After(end) {
			end = r.End
		}
		a.Whole, a.Last = append(a.Whole, r.Whole...), append(a.Last, r.Last...)
	}
	a.perSecond = append(a.perSecond, float64(appendsPerRun(writers))/end.Sub(start).Seconds())
	return nil
}
