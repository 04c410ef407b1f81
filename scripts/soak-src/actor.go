package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"
)

// partitions are the values of the table's partition column, day.
const partitions = 4

// actor is one process of a soak.
type actor struct {
	role   string
	number int
	table  string
	mount  string
	events string
	seed   int64

	random *rand.Rand
	log    *eventLog
	// made is the number of files made so far.
	made int64
}

func (a *actor) who() string { return fmt.Sprintf("%s-%d", a.role, a.number) }

func (a *actor) run(ctx context.Context) error {
	role, ok := roles[a.role]
	if !ok {
		return fmt.Errorf("there is no role %q", a.role)
	}
	var err error
	if a.log, err = newEventLog(a.events, a.who()); err != nil {
		return err
	}
	a.random = rand.New(rand.NewPCG(uint64(a.seed), uint64(a.number)))
	return role(ctx, a)
}

// newFile returns a number that no other process uses for a file.
func (a *actor) newFile() int64 {
	a.made++
	base := int64(a.number) * 1_000_000_000
	if a.role == "outside" {
		base += 500_000_000
	}
	return base + a.made
}

// pause waits a random time up to most, and says whether to go on.
func (a *actor) pause(ctx context.Context, most time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(a.random.Int64N(int64(most)))):
		return true
	}
}

func (a *actor) current(name string) string { return filepath.Join(a.mount, "current", name) }

// somePartition is a partition directory at random.
func (a *actor) somePartition() string { return partitionDir(a.random.IntN(partitions)) }

func partitionDir(i int) string { return fmt.Sprintf("day=%d", i) }

// find reports a finding.
func (a *actor) find(format string, args ...any) {
	a.log.write(event{Op: opFinding, Text: fmt.Sprintf(format, args...)})
}
