package writer

import (
	"context"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

// graveyard remembers names that other writers removed, so that a reader
// between its listing and its open still finds them. Live.mu guards it.
type graveyard struct {
	files map[key]goneFile
	// order is the order of burial, the oldest first.
	order []key
}

type goneFile struct {
	file  snapshot.File
	until time.Time
}

const (
	maxGone = 10000
	// maxGoneCommits is how many commits back removals are looked for: who
	// missed more has not listed lately.
	maxGoneCommits = 100
)

func newGraveyard() graveyard { return graveyard{files: map[key]goneFile{}} }

// bury remembers the files, except own ones, which this mount removed.
func (g *graveyard) bury(files []snapshot.File, own func(addPath string) bool, until time.Time) {
	for _, f := range files {
		if own(f.Path) {
			continue
		}
		k := key{f.Dir, f.Name}
		if _, known := g.files[k]; !known {
			g.order = append(g.order, k)
		}
		g.files[k] = goneFile{f, until}
	}
	now := time.Now()
	for len(g.order) > 0 && (len(g.order) > maxGone || now.After(g.files[g.order[0]].until)) {
		delete(g.files, g.order[0])
		g.order = g.order[1:]
	}
}

func (g *graveyard) find(k key) (snapshot.File, bool) {
	f, ok := g.files[k]
	if !ok || time.Now().After(f.until) {
		return snapshot.File{}, false
	}
	return f.file, true
}

func (g *graveyard) forget(k key) { delete(g.files, k) }

// removedBetween returns files of the old version that commits up to the new
// one removed; what this mount appended need not be read. It is best effort: what
// it cannot read it leaves out.
func (l *Live) removedBetween(ctx context.Context, old, next view) []snapshot.File {
	var out []snapshot.File
	for v := max(old.Version(), next.Version()-maxGoneCommits) + 1; v <= next.Version(); v++ {
		if l.isAppended(v) {
			continue
		}
		actions, err := l.back.Actions(ctx, v)
		if err != nil {
			continue
		}
		for _, a := range actions {
			r, ok := a.(*action.Remove)
			if !ok || len(out) >= maxGone {
				continue
			}
			if f, ok, err := old.ByPath(ctx, r.Path); err == nil && ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func (l *Live) isAppended(v int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appended[v]
}
