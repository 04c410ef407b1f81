package fsnode

import (
	"context"
	"path"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
)

// tableStatus is status.json.
type tableStatus struct {
	Table    string           `json:"table"`
	ReadOnly bool             `json:"readOnly"`
	Append   bool             `json:"appendOnly"`
	Version  *int64           `json:"version"`
	Time     *time.Time       `json:"timestamp"`
	Readable verdict          `json:"readable"`
	Writable verdict          `json:"writable"`
	Staged   []stagedStatus   `json:"staged"`
	Rejected []rejectedStatus `json:"rejected"`
	Last     *failure         `json:"lastError"`
}

// verdict says yes, or no and why.
type verdict struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitzero"`
	Hint   string `json:"hint,omitzero"`
}

func judge(err error) verdict {
	if err == nil {
		return verdict{OK: true}
	}
	return verdict{Reason: reasonOf(err), Hint: fault.Hint(err)}
}

type stagedStatus struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	State   string `json:"state"`
	Scratch bool   `json:"scratch"`
}

type rejectedStatus struct {
	Name   string    `json:"name"`
	Wanted string    `json:"wanted"`
	Size   int64     `json:"size"`
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
	Hint   string    `json:"hint,omitzero"`
}

// statusText renders status.json, also for a table that cannot be opened.
func (t *table) statusText(ctx context.Context) ([]byte, error) {
	s := tableStatus{Table: t.source, ReadOnly: t.fs.opt.ReadOnly, Append: t.fs.opt.AppendOnly,
		Staged: []stagedStatus{}, Rejected: []rejectedStatus{}}
	if f, ok := t.errs.last(); ok {
		s.Last = &f
	}
	inc, err := t.fresh(ctx)
	if err != nil {
		s.Readable, s.Writable = judge(err), judge(err)
		return pretty(s)
	}
	inc.describe(ctx, &s)
	return pretty(s)
}

// describe fills in what an open table knows of itself.
func (inc *incarnation) describe(ctx context.Context, s *tableStatus) {
	v := inc.snap.Latest()
	s.Version = &v
	if at := inc.commitTime(ctx, v); !at.IsZero() {
		at = at.UTC()
		s.Time = &at
	}
	_, err := inc.at(ctx, v)
	s.Readable = judge(err)
	s.Writable = judge(inc.w.Writable(ctx))
	for _, i := range inc.live.Staging() {
		s.Staged = append(s.Staged, stagedStatus{path.Join(i.Dir, i.Name), i.Size, i.State, i.Scratch})
	}
	rejected, err := inc.live.Rejected(ctx)
	if err != nil { // the rest is worth knowing all the more
		inc.t.fs.report(inc.t, "status", nameRejected, toErrno(err), err)
	}
	for _, r := range rejected {
		s.Rejected = append(s.Rejected, rejectedStatus{r.Name, r.Wanted, r.Size, r.Time.UTC(), r.Reason, r.Hint})
	}
}
