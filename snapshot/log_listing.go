package snapshot

import (
	"cmp"
	"context"
	"iter"
	"math"
	"path"
	"slices"
	"sort"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/metacache"
)

// listing is what the log directory held when it was listed: an immutable
// value. The listing alone decides which versions exist and from where each is
// rebuilt. _last_checkpoint would only save a part of it, may be missing,
// stale, damaged or point to nothing, and is not read.
type listing struct {
	// commits in ascending order.
	commits series[commitFile]
	// checkpoints, complete ones only, from the worst to the best for the
	// newest version: by version, kind, number of parts and name.
	checkpoints []checkpointFile
	// spans are the versions that can be rebuilt, ascending.
	spans  []metacache.Span
	latest int64
}

type commitFile struct {
	version int64
	info    stamp
}

// stamp is what is kept of a commit file's store.Info: nothing that a garbage
// collector looks at, for a log may have very many.
type stamp struct {
	Size     int64
	ModTime  int64 // in milliseconds
	Identity store.Identity
	Changed  int64 // as in store.Info
}

func stampOf(info store.Info) stamp {
	return stamp{info.Size, info.ModTime.UnixMilli(), info.Identity, info.Changed}
}

// logFile is a file of the log, to be recognised.
type logFile struct {
	name     string
	identity store.Identity
	changed  int64 // as in store.Info
}

func logFileOf(info store.Info) logFile { return logFile{info.Name, info.Identity, info.Changed} }

func (c commitFile) file() logFile {
	return logFile{CommitName(c.version), c.info.Identity, c.info.Changed}
}

func (c checkpointFile) file() logFile { return logFileOf(c.parts[0]) }

// logFiles are all its parts, and the sidecars that were found.
func (c checkpointFile) logFiles() []logFile {
	out := make([]logFile, 0, len(c.parts)+len(c.sidecars))
	for _, part := range slices.Concat(c.parts, c.sidecars) {
		out = append(out, logFileOf(part))
	}
	return out
}

// size is that of all parts, and of the sidecars that are known.
func (c checkpointFile) size() (bytes int64) {
	for _, part := range c.parts {
		bytes += part.Size
	}
	if c.named != nil {
		bytes += c.named.bytes
	}
	return bytes
}

type checkpointFile struct {
	version int64
	kind    checkpointKind
	// parts are the files, in the order of their part numbers.
	parts []store.Info
	// named are the sidecars that the parts name, once they were read, and
	// sidecars are what was found of them.
	named    *sidecars
	sidecars []store.Info
}

// list reads the log directory. ErrNotTable if it holds no version.
func list(ctx context.Context, st store.Store) (*listing, error) {
	names := newLogNames()
	l := &listing{latest: -1}
	var commits []commitFile
	groups := map[partGroup][]store.Info{}
	for info, err := range st.List(ctx, logDir+"/", "", "/") {
		if err != nil {
			return nil, err
		}
		name, ok := names.parse(path.Base(info.Name))
		switch {
		case !ok || info.IsPrefix:
		case name.commit:
			commits = append(commits, commitFile{name.version, stampOf(info)})
		case info.Size > 0:
			l.addPart(groups, name, info)
		}
	}
	slices.SortFunc(commits, func(a, b commitFile) int { return cmp.Compare(a.version, b.version) })
	slices.SortFunc(l.checkpoints, compareCheckpoints)
	l.commits = newSeries(commits)
	if n := len(commits); n > 0 {
		l.latest = commits[n-1].version
	}
	if n := len(l.checkpoints); n > 0 {
		l.latest = max(l.latest, l.checkpoints[n-1].version)
	}
	if l.latest < 0 {
		return nil, fault.New(ErrNotTable, "not a Delta table: there is no %s with a commit or a complete checkpoint", logDir).
			WithHint("point at a directory that has a %s", logDir)
	}
	l.spans = l.versions()
	return l, nil
}

// partGroup identifies the multi-part checkpoint that a part belongs to.
type partGroup struct {
	version int64
	parts   int
}

// addPart adds a checkpoint file; a multi-part checkpoint counts when its last
// missing part was seen.
func (l *listing) addPart(groups map[partGroup][]store.Info, name logName, info store.Info) {
	if name.kind != multiPartCheckpoint {
		l.checkpoints = append(l.checkpoints, checkpointFile{version: name.version, kind: name.kind, parts: []store.Info{info}})
		return
	}
	// Parts come in the order of their names, so the n-th must be number n:
	// memory grows with the files present, not with the count a name claims.
	key := partGroup{name.version, name.parts}
	if name.part != len(groups[key])+1 {
		return
	}
	groups[key] = append(groups[key], info)
	if len(groups[key]) == name.parts {
		l.checkpoints = append(l.checkpoints, checkpointFile{version: name.version, kind: name.kind, parts: groups[key]})
	}
}

func compareCheckpoints(a, b checkpointFile) int {
	return cmp.Or(
		cmp.Compare(a.version, b.version),
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(len(a.parts), len(b.parts)),
		cmp.Compare(a.parts[0].Name, b.parts[0].Name),
	)
}

// commit returns the commit file of a version.
func (l *listing) commit(v int64) (commitFile, bool) {
	i, ok := l.find(v)
	if !ok {
		return commitFile{}, false
	}
	return l.commits.all[i], true
}

// find returns where the first commit of a version >= v is, and whether it is
// that of v.
func (l *listing) find(v int64) (int, bool) {
	commits := l.commits.all
	return sort.Find(len(commits), func(i int) int { return cmp.Compare(v, commits[i].version) })
}

// checkpointsUpTo yields the checkpoints of versions <= v, the best first.
func (l *listing) checkpointsUpTo(v int64) iter.Seq2[int, checkpointFile] {
	n := sort.Search(len(l.checkpoints), func(i int) bool { return l.checkpoints[i].version > v })
	return slices.Backward(l.checkpoints[:n])
}

// checkpointAfter is the version of the first checkpoint after v; if there is
// none, one that no version reaches.
func (l *listing) checkpointAfter(v int64) int64 {
	n := sort.Search(len(l.checkpoints), func(i int) bool { return l.checkpoints[i].version > v })
	if n == len(l.checkpoints) {
		return math.MaxInt64
	}
	return l.checkpoints[n].version
}

// contiguous reports whether the commits from first to last are all there.
func (l *listing) contiguous(first, last int64) bool {
	i, _ := l.find(first)
	for v := first; v <= last; v, i = v+1, i+1 {
		if i >= len(l.commits.all) || l.commits.all[i].version != v || l.commits.all[i].info.Size == 0 {
			return false
		}
	}
	return true
}

// commitBytes is the size of the commits from first to last; false if one is
// missing.
func (l *listing) commitBytes(first, last int64) (bytes int64, ok bool) {
	if !l.contiguous(first, last) {
		return 0, false
	}
	i, _ := l.find(first)
	for _, c := range l.commits.all[i : i+int(last-first+1)] {
		bytes += c.info.Size
	}
	return bytes, true
}

// start is the file from which v, a version that can be rebuilt, is rebuilt:
// the nearest checkpoint or the first commit.
func (l *listing) start(v int64) logFile {
	for _, c := range l.checkpointsUpTo(v) {
		return c.file()
	}
	return l.commits.all[0].file()
}

// extended is the listing with newer commits, which must be in order.
func (l *listing) extended(more []commitFile) *listing {
	out := &listing{
		commits:     l.commits.with(more...),
		checkpoints: l.checkpoints,
		spans:       slices.Clone(l.spans),
		latest:      max(l.latest, more[len(more)-1].version),
	}
	for _, c := range more {
		out.follow(c)
	}
	return out
}

// versions returns the versions that can be rebuilt: those with an unbroken
// run of commits from version 0 or from a complete checkpoint.
func (l *listing) versions() []metacache.Span {
	out := &listing{}
	next := 0
	checkpointsBefore := func(v int64) {
		for next < len(l.checkpoints) && l.checkpoints[next].version <= v {
			out.reach(l.checkpoints[next].version)
			next++
		}
	}
	for _, c := range l.commits.all {
		checkpointsBefore(c.version)
		out.follow(c)
	}
	checkpointsBefore(l.latest)
	return out.spans
}

// follow adds a commit's version to the spans if the one before can be rebuilt;
// no greater version was added yet.
func (l *listing) follow(c commitFile) {
	if c.info.Size > 0 && (c.version == 0 || l.covered(c.version-1)) {
		l.reach(c.version)
	}
}

func (l *listing) reach(v int64) {
	switch {
	case l.covered(v):
	case l.covered(v - 1):
		l.spans[len(l.spans)-1].Last = v
	default:
		l.spans = append(l.spans, metacache.Span{First: v, Last: v})
	}
}

func (l *listing) covered(v int64) bool {
	return len(l.spans) > 0 && l.spans[len(l.spans)-1].Last >= v
}

// check explains why v cannot be rebuilt, or returns nil.
func (l *listing) check(v int64) error {
	spans := l.spans
	for _, s := range spans {
		if s.First <= v && v <= s.Last {
			return nil
		}
	}
	if v < 0 || v > l.latest {
		return fault.New(ErrNoVersion, "the table has no such version").AtVersion(v).
			WithHint("the latest version is %d", l.latest)
	}
	if len(spans) > 0 && v < spans[0].First {
		return fault.New(ErrNoVersion, "the log no longer goes back to this version").AtVersion(v).
			WithHint("the first version that can be rebuilt is %d", spans[0].First)
	}
	return l.explainGap(v, spans)
}

// explainGap names the first commit that v lacks.
func (l *listing) explainGap(v int64, spans []metacache.Span) error {
	missing := int64(0)
	for _, s := range spans {
		if s.Last < v {
			missing = s.Last + 1
		}
	}
	name := path.Base(CommitName(missing))
	if c, ok := l.commit(missing); ok && c.info.Size == 0 {
		return fault.New(ErrCorrupt, "the commit file of version %d is empty", missing).AtVersion(v).InFile(name).
			WithHint("restore the file; earlier versions are not affected")
	}
	return fault.New(ErrCorrupt, "the commit file of version %d is missing", missing).AtVersion(v).InFile(name).
		WithHint("restore the file; versions that do not need it are not affected")
}
