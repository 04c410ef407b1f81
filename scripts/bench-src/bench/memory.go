package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"time"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

// idleTime is how long a mount rests before its memory is looked at.
const idleTime = 30 * time.Second

// memory compares the memory of a mount with that of delta-rs holding the same
// table: after the first listing, at the peak of a walk over all files, and at
// rest afterwards.
func (b *bench) memory() error {
	l, err := b.newListing(tables.MillionLatest)
	if err != nil {
		return err
	}
	rs, err := b.peer("list_delta_rs.py", b.million(), -1, l.date())
	if err != nil {
		return err
	}
	cache, err := b.newDir("cache")
	if err != nil {
		return err
	}
	m, err := b.mountTable(b.million(), cache)
	if err != nil {
		return err
	}
	defer m.stop()
	if err := l.list(m); err != nil {
		return err
	}
	const holding = "delta-rs, the table held"
	compare := func(what, field string) error {
		ours, err := memoryOf(m.pid, field)
		if err == nil {
			b.report.add(what, megabytes, ours, holding, rs.Memory[field])
		}
		return err
	}
	if err := compare("peak resident after the first listing", "VmHWM"); err != nil {
		return err
	}
	var found int
	walked, err := took(func() (err error) {
		found, err = countFiles(fmt.Sprintf("%s/@v%d", m.point, tables.MillionLatest))
		return err
	})
	if err != nil {
		return err
	}
	if found != tables.MillionFiles {
		return fmt.Errorf("find found %d files, not %d", found, tables.MillionFiles)
	}
	if err := compare("peak resident after find over all files", "VmHWM"); err != nil {
		return err
	}
	b.report.alone("time of that find", milliseconds, walked)
	time.Sleep(idleTime)
	if err := compare("resident, idle for 30 s after that", "VmRSS"); err != nil {
		return err
	}
	return compare("anonymous part of it", "RssAnon")
}

// countFiles counts what find finds.
func countFiles(dir string) (int, error) {
	cmd := exec.Command("find", dir, "-type", "f")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	n := 0
	for s := bufio.NewScanner(out); s.Scan(); {
		n++
	}
	return n, cmd.Wait()
}
