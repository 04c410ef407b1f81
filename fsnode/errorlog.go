package fsnode

import (
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/fault"
)

// errorLogSize is how many failures errors.jsonl remembers.
const errorLogSize = 1000

// opRefresh is the operation of the refresher, which repeats for ever.
const opRefresh = "refresh"

// failure is one line of errors.jsonl.
type failure struct {
	Time    time.Time `json:"time"`
	Op      string    `json:"op"`
	Name    string    `json:"name,omitzero"`
	Version *int64    `json:"version,omitzero"`
	Errno   string    `json:"errno,omitzero"`
	Reason  string    `json:"reason"`
	Hint    string    `json:"hint,omitzero"`
}

// errorLog keeps the newest failures of a table. A failure that several
// operations report (every FLUSH repeats the result of a commit) is kept once,
// and so is one that a retrying program repeats within a second, or the
// refresher for as long as the log cannot be probed.
type errorLog struct {
	mu    sync.Mutex
	ring  []failure
	next  int
	seen  map[*fault.Error]struct{}
	order []*fault.Error
}

// add records err and reports whether it is new.
func (l *errorLog) add(op, name, errno string, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var fe *fault.Error
	if errors.As(err, &fe) && !l.firstSight(fe) {
		return false
	}
	if n := len(l.ring); n > 0 {
		last := l.ring[(l.next+n-1)%n]
		if last.Op == op && last.Name == name && last.Reason == reasonOf(err) &&
			(op == opRefresh || time.Since(last.Time) < time.Second) {
			return false
		}
	}
	f := failure{Time: time.Now().UTC(), Op: op, Name: name, Errno: errno, Reason: reasonOf(err), Hint: fault.Hint(err)}
	if fe != nil {
		f.Version = fe.Version
	}
	if len(l.ring) < errorLogSize {
		l.ring = append(l.ring, f)
		return true
	}
	l.ring[l.next] = f
	l.next = (l.next + 1) % errorLogSize
	return true
}

// reasonOf is the message of an error without the way out, which is shown by
// itself.
func reasonOf(err error) string {
	// Not errors.As: of a wrapped fault the text around it counts too.
	if fe, ok := err.(*fault.Error); ok {
		e := *fe
		e.Hint = ""
		return e.Error()
	}
	return err.Error()
}

// firstSight remembers fe, for as long as the ring would.
func (l *errorLog) firstSight(fe *fault.Error) bool {
	if _, ok := l.seen[fe]; ok {
		return false
	}
	if l.seen == nil {
		l.seen = map[*fault.Error]struct{}{}
	}
	if len(l.order) == errorLogSize {
		delete(l.seen, l.order[0])
		l.order = l.order[1:]
	}
	l.seen[fe] = struct{}{}
	l.order = append(l.order, fe)
	return true
}

// jsonl renders the failures, oldest first, a line each.
func (l *errorLog) jsonl() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []byte
	for i := range l.ring {
		line, err := json.Marshal(l.ring[(l.next+i)%len(l.ring)], jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// last returns the newest failure.
func (l *errorLog) last() (failure, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) == 0 {
		return failure{}, false
	}
	return l.ring[(l.next+len(l.ring)-1)%len(l.ring)], true
}
