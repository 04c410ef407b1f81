package main

import (
	"fmt"
	"slices"
)

const clock = "15:04:05.000000"

// checker matches what the processes reported with the log.
type checker struct {
	events eventReader
	log    *replay
	// findings are all that was found so far.
	findings []string
	adds     map[int64]event
	// fresh has the adds of names that meant nothing before, removes the removals.
	fresh, removes map[string][]event
	// ended has the event that ended the life of a file.
	ended   map[int64]event
	refused []event
	// unread are the names that were listed in current/ and could not be read.
	unread   []event
	listings listings
	// samples, listed and reads are counted for the report.
	samples, listed, reads int
}

func newChecker(table, events string) *checker {
	return &checker{events: eventReader{events, map[string]int64{}}, log: newReplay(table),
		adds: map[int64]event{}, ended: map[int64]event{}, removes: map[string][]event{}, fresh: map[string][]event{}, listings: newListings()}
}

func (c *checker) find(format string, args ...any) {
	c.findings = append(c.findings, fmt.Sprintf(format, args...))
}

// look takes in what was reported since the last time and then the log, so
// that whatever was reported as added has to be in it.
func (c *checker) look() error {
	events, err := c.events.next()
	if err != nil {
		return err
	}
	if err := c.log.catchUp(); err != nil {
		return err
	}
	for _, f := range c.log.findings {
		c.find("%s", f)
	}
	c.log.findings = nil
	var listed []event
	for _, e := range events {
		if e.Op == opListing {
			listed = append(listed, e)
			c.listed++
			continue
		}
		c.take(e)
	}
	c.listings.check(c.find, listed)
	return nil
}

func (c *checker) take(e event) {
	switch e.Op {
	case opAdd:
		c.listings.change(e)
		c.adds[e.File] = e
		version, ok := c.log.added[e.File]
		if !ok {
			c.find("%s: adding file %d as %s was reported done at %v and is not in the log up to version %d", e.Who, e.File, e.Name, e.End, c.log.latest())
		}
		if e.Old == 0 {
			c.fresh[e.Name] = append(c.fresh[e.Name], e)
		} else {
			c.ended[e.Old] = e
			if removed, ok := c.log.removed[e.Old]; !ok || removed != version {
				c.find("%s: file %d replaced file %d in version %d, which was removed in version %d (%v)", e.Who, e.File, e.Old, version, removed, ok)
			}
		}
	case opRemove:
		c.listings.change(e)
		c.ended[e.File] = e
		c.removes[e.Name] = append(c.removes[e.Name], e)
	case opRefused:
		c.refused = append(c.refused, e)
	case opMissing, opPartial:
		c.unread = append(c.unread, e)
	case opSample:
		c.samples++
		c.reads += e.Count
		if e.Version > c.log.latest() {
			c.find("%s: saw version %d, and the log ends at %d", e.Who, e.Version, c.log.latest())
		} else if want := c.log.prints[e.Version].String(); e.Print != want {
			c.find("%s: version %d showed %s, the log says %s", e.Who, e.Version, e.Print, want)
		}
	case opRead:
		c.reads += e.Count
	case opFinding:
		c.find("%s at %v: %s", e.Who, e.End.Format(clock), e.Text)
	default:
		c.find("%s: unknown event %q", e.Who, e.Op)
	}
}

// finish looks a last time, when every process has ended, and checks what could
// not be known before.
func (c *checker) finish() error {
	if err := c.look(); err != nil {
		return err
	}
	c.listings.check(c.find, nil)
	for file, version := range c.log.added {
		if _, ok := c.adds[file]; !ok {
			c.find("version %d adds file %d, which nobody was told", version, file)
		}
	}
	for file, version := range c.log.removed {
		if _, ok := c.ended[file]; !ok {
			c.find("version %d removes file %d, which nobody was told", version, file)
		}
	}
	for file, e := range c.ended {
		if _, ok := c.log.removed[file]; !ok {
			c.find("%s: the end of file %d, %s, was reported at %v and is not in the log", e.Who, file, e.Name, e.End)
		}
	}
	for _, e := range c.refused {
		if version, ok := c.log.added[e.File]; ok {
			c.find("%s: file %d was refused and is in version %d", e.Who, e.File, version)
		}
	}
	for _, e := range c.unread {
		c.checkUnread(e)
	}
	return nil
}

// checkUnread allows a listed name to be missing when it was unlinked through
// the mount between the listing and the open, and to be half a file when it was
// also written anew: until it is committed the new file resolves by name. What
// others remove resolves for longer than a reader takes.
func (c *checker) checkUnread(e event) {
	meanwhile := func(other event) bool { return !other.End.Before(e.Start) && !other.Start.After(e.End) }
	allowed := slices.ContainsFunc(c.removes[e.Name], meanwhile)
	if e.Op == opPartial {
		allowed = allowed && slices.ContainsFunc(c.fresh[e.Name], meanwhile)
	}
	if !allowed {
		c.find("%s: %s was listed in current after %v and %s at %v, and nobody unlinked it then: %s", e.Who, e.Name,
			e.Start.Format(clock), e.Op, e.End.Format(clock), e.Text)
	}
}
