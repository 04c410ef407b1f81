package writer

import "time"

// leftoverTTL is how long after its refusal a program may clean up.
const leftoverTTL = 10 * time.Second

// leftovers remember which process wrote a replacement that was refused, by
// the name it was written to. Programs that clean up after a failed write
// unlink what they take for their half-written file (pyarrow does); under that
// name there is the committed file again, and a failed write must not remove
// it. Live.mu guards them.
type leftovers map[key]leftover

type leftover struct {
	process uint32
	until   time.Time
}

// leave notes that the replacement b was refused.
func (o leftovers) leave(b binding, now time.Time) {
	for k, left := range o {
		if now.After(left.until) {
			delete(o, k)
		}
	}
	o[b.key()] = leftover{b.process, now.Add(leftoverTTL)}
}

// take reports whether an unlink by this process means the refused file. It
// does so once.
func (o leftovers) take(k key, process uint32, now time.Time) bool {
	left, ok := o[k]
	if !ok || left.process != process {
		return false
	}
	delete(o, k)
	return !now.After(left.until)
}

// takeLeftover is leftovers.take for who does not hold l.mu.
func (l *Live) takeLeftover(k key, process uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leftovers.take(k, process, time.Now())
}
