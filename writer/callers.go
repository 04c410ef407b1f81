package writer

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// callers finds the process of a thread: FUSE names the thread that asked,
// and all threads of a process must see the same files.
type callers struct {
	// lookup returns the process of a thread, 0 if it is not known.
	lookup func(tid uint32) uint32

	mu    sync.Mutex
	known map[uint32]callerProcess
}

type callerProcess struct {
	tgid  uint32
	until time.Time
}

// Thread ids are used again, so that what is known of them is soon forgotten.
const (
	callerTTL  = time.Second
	maxCallers = 4096
)

func newCallers() *callers {
	return &callers{lookup: processOf, known: map[uint32]callerProcess{}}
}

// process returns the process that the caller belongs to; a caller that is
// gone or cannot be seen stands for itself.
func (c *callers) process(caller Caller) uint32 {
	if caller.PID == 0 {
		return 0
	}
	now := time.Now()
	c.mu.Lock()
	p, ok := c.known[caller.PID]
	c.mu.Unlock()
	if ok && now.Before(p.until) {
		return p.tgid
	}
	tgid := c.lookup(caller.PID) // side by side for many processes
	if tgid == 0 {
		tgid = caller.PID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCallers {
		clear(c.known)
	}
	c.known[caller.PID] = callerProcess{tgid: tgid, until: now.Add(callerTTL)}
	return tgid
}

// processOf reads the thread group of a thread from proc(5).
func processOf(tid uint32) uint32 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "Tgid:"); ok {
			tgid, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
			if err != nil {
				return 0
			}
			return uint32(tgid)
		}
	}
	return 0
}
