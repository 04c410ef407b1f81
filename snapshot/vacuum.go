package snapshot

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
)

// vacuumDepth is how many of the newest commits are searched for a VACUUM: it
// only serves a hint.
const vacuumDepth = 200

// vacuumTrace is the newest VACUUM that the history shows.
type vacuumTrace struct {
	// latest is the version up to which the history was searched.
	latest  int64
	found   bool
	version int64
}

// lastVacuum searches the newest commits for the end of a VACUUM.
func (n *incarnation) lastVacuum(ctx context.Context) vacuumTrace {
	l := n.log()
	n.mu.Lock()
	known := n.vacuum
	n.mu.Unlock()
	if known != nil && known.latest == l.latest {
		return *known
	}
	trace := vacuumTrace{latest: l.latest}
	commits := l.commits.all
	for i := len(commits) - 1; i >= 0 && i >= len(commits)-vacuumDepth; i-- {
		v := commits[i].version
		if known != nil && v <= known.latest {
			trace.found, trace.version = known.found, known.version
			break
		}
		info, err := n.table.commitInfo(ctx, v)
		if err != nil || info == nil {
			continue
		}
		if op, _ := info.Operation(); strings.EqualFold(op, "VACUUM END") {
			trace.found, trace.version = true, v
			break
		}
	}
	if ctx.Err() == nil {
		n.mu.Lock()
		n.vacuum = &trace
		n.mu.Unlock()
	}
	return trace
}

// defaultRetention is delta.deletedFileRetentionDuration's default.
const defaultRetention = 7 * 24 * time.Hour

// retention is how long the table keeps removed files.
func (n *incarnation) retention(ctx context.Context) time.Duration {
	h, err := n.header(ctx, n.log().latest)
	if err != nil {
		return defaultRetention
	}
	text, ok := h.metadata.Configuration["delta.deletedFileRetentionDuration"]
	if !ok {
		return defaultRetention
	}
	d, err := ParseInterval(text)
	if err != nil {
		return defaultRetention
	}
	return d
}

// ParseInterval parses the value of a duration property, such as "interval 1
// week" or "2 days 12 hours". Months and years have no fixed length and are
// refused, as in Spark. Errors wrap ErrTimestamp.
func ParseInterval(text string) (time.Duration, error) {
	bad := func() (time.Duration, error) {
		return 0, fault.New(ErrTimestamp, "%q is not an interval such as \"interval 7 days\"", text)
	}
	words := strings.Fields(strings.ToLower(text))
	if len(words) > 0 && words[0] == "interval" {
		words = words[1:]
	}
	if len(words) == 0 || len(words)%2 != 0 {
		return bad()
	}
	var total time.Duration
	for i := 0; i < len(words); i += 2 {
		count, err := strconv.ParseInt(words[i], 10, 32)
		unit := intervalUnit(strings.TrimSuffix(words[i+1], "s"))
		if err != nil || unit == 0 {
			return bad()
		}
		total += time.Duration(count) * unit
	}
	return total, nil
}

func intervalUnit(name string) time.Duration {
	switch name {
	case "week":
		return 7 * 24 * time.Hour
	case "day":
		return 24 * time.Hour
	case "hour":
		return time.Hour
	case "minute":
		return time.Minute
	case "second":
		return time.Second
	case "millisecond":
		return time.Millisecond
	case "microsecond":
		return time.Microsecond
	}
	return 0
}
