package writer

import (
	"cmp"
	"context"
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// defaultLogRetention is delta.logRetentionDuration when not set.
const defaultLogRetention = 30 * day

// cleanUp deletes the part of the log that has expired (protocol section
// "Metadata Cleanup"), and returns how many files. What a version needs that
// was current at the cutoff, or came after it, stays.
func (c *checkpointer) cleanUp(ctx context.Context, life any, h header) (int, error) {
	if isOff(h.config(), "delta.enableExpiredLogCleanup") {
		return 0, nil
	}
	keep, err := duration(h.config(), "delta.logRetentionDuration", defaultLogRetention)
	if err != nil {
		return 0, err
	}
	cutoff, err := c.table.VersionAsOf(ctx, logCutoff(c.now(), keep))
	if errors.Is(err, snapshot.ErrNoVersion) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	// Most of the time everything before was deleted already.
	if first, ok := c.table.CheckpointBefore(cutoff); !ok || first < protectedBefore(h) {
		return 0, nil
	} else if files, err := c.before(ctx, first); err != nil || len(files) == 0 {
		return 0, err
	}
	first, err := c.firstKept(ctx, cutoff)
	if err != nil || first < protectedBefore(h) {
		return 0, err
	}
	expired, err := c.before(ctx, first)
	if err != nil {
		return 0, err
	}
	// What was listed is of the table that all this was decided on.
	if err := c.table.SameLog(ctx, life); err != nil {
		return 0, err
	}
	n, err := c.delete(ctx, expired)
	c.logger.Info("deleted expired log files", "files", n, "before", first)
	// From here on this process does not offer the versions that are gone.
	return n, errors.Join(err, c.table.Relist(ctx))
}

// logCutoff is the midnight, in UTC, before which the log expires: so a log is
// cleaned up once a day.
func logCutoff(now time.Time, keep time.Duration) time.Time {
	return now.Add(-keep).UTC().Truncate(day)
}

// firstKept is the version of the checkpoint from which on the log stays, -1 to
// keep everything: the newest one before the version that was current at the
// cutoff. It stands in for what is deleted, so it is read to its last byte.
func (c *checkpointer) firstKept(ctx context.Context, cutoff int64) (int64, error) {
	base, err := c.table.OpenCheckpoint(ctx, cutoff)
	if err != nil || base == nil {
		return -1, err
	}
	defer base.Close()
	for _, g := range base.Groups() {
		for _, err := range g.Adds(ctx) {
			if err != nil {
				return -1, err
			}
		}
		for _, err := range g.Removes(ctx) {
			if err != nil {
				return -1, err
			}
		}
	}
	return base.Version(), nil
}

// logFile is a file of the log that goes when its version does.
type logFile struct {
	info    store.Info
	version int64
	// rank orders the files of a version: a commit goes before its checkpoint,
	// so that what is left can always be read.
	rank int
}

// before lists the files of versions before first, the oldest first: whenever
// deleting them ends, what is left is a log.
func (c *checkpointer) before(ctx context.Context, first int64) ([]logFile, error) {
	names := newLogNames()
	var out []logFile
	for info, err := range c.table.Store().List(ctx, path.Dir(snapshot.CommitName(0))+"/", "", "/") {
		if err != nil {
			return nil, err
		}
		if f, ok := names.parse(info); ok && f.version < first {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b logFile) int {
		return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.rank, b.rank), cmp.Compare(a.info.Name, b.info.Name))
	})
	return out, nil
}

// logNames recognises the files that are deleted with their version: commits,
// checkpoints, checksums and compacted commits, and the checksum that Hadoop
// puts beside a file. Whatever else lies in the log stays.
type logNames struct{ file *regexp.Regexp }

func newLogNames() logNames {
	return logNames{regexp.MustCompile(`^(\d{20})\.(?:json|crc|(checkpoint)(?:\.\d{10}\.\d{10}|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)|` +
		`(\d{20}\.compacted)\.json)$`)}
}

func (n logNames) parse(info store.Info) (logFile, bool) {
	name := path.Base(info.Name)
	if hidden, ok := strings.CutPrefix(name, "."); ok {
		if name, ok = strings.CutSuffix(hidden, ".crc"); !ok {
			return logFile{}, false
		}
	}
	m := n.file.FindStringSubmatch(name)
	if m == nil || info.IsPrefix {
		return logFile{}, false
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	f := logFile{info: info, version: v}
	if m[2] != "" {
		f.rank = 1
	}
	if m[3] != "" {
		// It begins with this version, and is of no use beside its checkpoint.
		f.version--
	}
	return f, err == nil
}

// delete deletes files and returns how many it did. One that is not the file
// that was listed belongs to another table.
func (c *checkpointer) delete(ctx context.Context, files []logFile) (int, error) {
	st := c.table.Store()
	for n, f := range files {
		now, err := st.Head(ctx, f.info.Name)
		if errors.Is(err, store.ErrNotExist) {
			continue // another writer cleans up too
		}
		if err == nil && now.Identity != f.info.Identity {
			return n, nil
		}
		if err == nil {
			err = st.Delete(ctx, f.info.Name)
		}
		if err != nil {
			return n, err
		}
	}
	return len(files), nil
}
